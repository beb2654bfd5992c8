import type { Call, Ref } from '#contract';
import { waitUntil } from './gateway-index/consistency.ts';
import { parseId } from './gateway-index/ids.ts';
import { newest } from './overlay.ts';
import type { Own, Written } from './parts.ts';
import { toMemory, toVector } from './record.ts';

/** A record as far as this gateway knows, and where it is. */
export interface Found extends Written {
  readonly namespace: string;
}

export interface FindOptions {
  /** A record older than this is shown by every read, or is not there. */
  readonly settle_ms: number;
  readonly consistency_wait_ms: number;
}

/**
 * Finds one record: the newer of what the service has and what this process wrote. The service is asked also for what
 * was written here, since another gateway may have changed it meanwhile.
 */
export function createFind(own: Own, { settle_ms, consistency_wait_ms }: FindOptions) {
  const { service, ids, namespaces, overlay, visibility, model } = own;

  const look = async (namespace: string, id: string, call: Call): Promise<Found | undefined> => {
    const record = (await service.fetch(namespace, [id], call)).get(id);
    const stored = record && toMemory(id, record.metadata, model);
    // Only now: what was written here while the service was asked counts too.
    const written = overlay.get(id);
    if (written === null) return undefined;
    const memory = newest(written?.memory, stored);
    if (written && memory === written.memory) return { ...written, namespace };
    return record && memory && { memory, vector: toVector(record), namespace };
  };

  return async ({ id, users }: Ref, call: Call): Promise<Found | undefined> => {
    const parts = parseId(id);
    // The id tells whose it is: one out of reach is absent before anything is asked or waited for, made or never made.
    const isInReach = users === null || users.some((user) => ids.userPart(user) === parts?.userPart);
    if (!parts || !isInReach || overlay.get(id) === null) return undefined;
    const namespace = namespaces.of(parts.userPart);
    await visibility.caughtUp(namespace, call);
    let found: Found | undefined;
    const looked = async () => {
      found = await look(namespace, id, call);
      return found !== undefined;
    };
    // The client may have it from another gateway. Fetch does not tell how far it sees: only looking again helps.
    const expected = visibility.names(namespace, call) && Date.now() - parts.created_ms < settle_ms;
    if (!(await waitUntil(looked, expected ? consistency_wait_ms : 0, call)) && expected) call.consistency?.behind();
    return found && (users === null || users.includes(found.memory.user_id)) ? found : undefined;
  };
}
