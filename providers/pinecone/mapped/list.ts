import {
  type Call,
  type ListQuery,
  type Memory,
  OmpError,
  type Position,
  providerError,
  recordBytes,
  upToBytes,
} from '#contract';
import { PROVIDER } from '../client/errors.ts';
import { userFilter } from '../filter.ts';
import { createPace } from './pace.ts';
import type { Existing } from './parts.ts';
import { requireTagsField } from './places.ts';
import { toMemory } from './record.ts';

export type List = (query: ListQuery, call: Call) => Promise<Memory[]>;

/** An answer of more bytes is refused. A record has at most so many beside its vector, and a component so many digits. */
const ANSWER_BYTES = 4_000_000;
const RECORD_BYTES = 42_000;
const COMPONENT_BYTES = 24;

/** Of the records of a user that are put in order at once. */
const MOST_BYTES = 64 * 1024 * 1024;

/** The service takes five a second for a namespace: one is left to the owner, and a little time to the network. */
const PACE = { most: 4, window_ms: 1_100, longest_wait_ms: 5_000 };

/**
 * The list of a user, where neither ids nor times can be asked for in order: all the user's records are read, and sorted
 * here. More than `max_listed` is an error, never a part of them.
 */
export function createList(existing: Existing): List {
  const { service, namespace, fields, embedder, overlay, max_listed } = existing;
  const largest = Math.floor(ANSWER_BYTES / (RECORD_BYTES + COMPONENT_BYTES * embedder.dimensions));
  const limit = Math.max(1, Math.min(largest, max_listed + 1));
  const pace = createPace(PACE);

  const read = async ({ user_id, tags }: ListQuery, call: Call): Promise<Memory[]> => {
    const filter = userFilter(user_id, tags, { user: fields.user, tags: fields.tags ?? '' });
    // By id: whether a record that moves between pages is shown twice is not established.
    const found = new Map<string, Memory | undefined>();
    let bytes = 0;
    for (let token: string | undefined; ; ) {
      await pace(call);
      const page = await service.fetchByMetadata(namespace, { filter, limit, token }, call);
      // It did at the start, or there were no list.
      if (!page) throw providerError(PROVIDER, 'Pinecone does not list by metadata any more');
      for (const { id, metadata } of page.records) {
        const memory = toMemory(fields, id, metadata);
        found.set(id, memory);
        if (memory) bytes += recordBytes(memory);
      }
      if (found.size > max_listed || bytes > MOST_BYTES) throw tooMany(max_listed, fields.tags !== undefined);
      token = page.next;
      if (token === undefined) return [...found.values()].filter((memory) => memory !== undefined);
    }
  };

  return async (query, call) => {
    requireTagsField(fields, query.tags);
    const stored = (await read(query, call)).filter(({ id }) => overlay.get(id) === undefined);
    const recent = overlay.of(query.user_id).live.map(({ memory }) => memory);
    const page = [...stored, ...recent].filter(isWanted(query)).sort(newestFirst).slice(0, query.limit);
    return upToBytes(page, query.max_bytes, (memory) => memory);
  };
}

/** The user and the tags too: what a filter let through is not believed. */
const isWanted =
  ({ user_id, tags, since, until, after }: ListQuery) =>
  (memory: Memory): boolean =>
    memory.user_id === user_id &&
    tags.every((tag) => memory.tags.includes(tag)) &&
    (since === undefined || memory.created_at >= since) &&
    (until === undefined || memory.created_at <= until) &&
    (after === undefined || newestFirst(after, memory) < 0);

/** The order of lists; ids are ASCII. */
export function newestFirst(a: Position, b: Position): number {
  if (a.created_at !== b.created_at) return a.created_at > b.created_at ? -1 : 1;
  if (a.id === b.id) return 0;
  return a.id > b.id ? -1 : 1;
}

const tooMany = (most: number, tagged: boolean) =>
  new OmpError(
    'unsupported_capability',
    `list: there are more memories than the ${most} that can be put in order here; search${tagged ? ', or list by tag,' : ''} instead`,
    { provider: PROVIDER },
  );
