import { type Written } from '../overlay.ts';
import type { Call, Ref } from '#contract';
import type { Metadata } from '../client/client.ts';
import { newMetadata, toMemory } from './mapped-record.ts';
import type { Existing } from './parts.ts';

/** A record as far as this gateway knows. */
export interface Found extends Written {
  /** As the index shows it, which may be older. */
  readonly metadata: Metadata;
}

export type Find = (ref: Ref, call: Call) => Promise<Found | undefined>;

/** Finds one record. What this gateway wrote lately wins: the index may not show it yet. */
export function createFind({ service, namespace, fields, overlay }: Existing): Find {
  return async ({ id, users }, call) => {
    const record = (await service.fetch(namespace, [id], call)).get(id);
    // Only now: what was written here while the service was asked counts too.
    const written = overlay.get(id);
    const memory = written === undefined ? record && toMemory(fields, id, record.metadata) : written?.memory;
    if (!memory || !(users === null || users.includes(memory.user_id))) return undefined;
    return {
      memory,
      vector: written?.vector ?? Float32Array.from(record?.values ?? []),
      metadata: record?.metadata ?? newMetadata(fields, memory, memory.created_at),
    };
  };
}
