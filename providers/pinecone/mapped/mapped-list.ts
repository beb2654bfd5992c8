import { setTimeout as sleep } from 'node:timers/promises';
import {
  type Call,
  type ListQuery,
  type Memory,
  newestFirst,
  OmpError,
  providerError,
  recordBytes,
  upToBytes,
} from '#provider';
import { PROVIDER } from '../client/pinecone-errors.ts';
import { userFilter } from '../filter.ts';
import { type MappedIndex, requireTagsField, toMemory } from './mapped-record.ts';

export type List = (query: ListQuery, call: Call) => Promise<Memory[]>;

/** Pinecone rejects a larger answer. At most so many bytes of a record besides its vector, and of a vector's component. */
const ANSWER_BYTES = 4_000_000;
export const RECORD_BYTES = 42_000;
const COMPONENT_BYTES = 24;

/** Maximum records, vectors included, that fit into one answer. */
export const largestPage = (dimensions: number): number =>
  Math.max(1, Math.floor(ANSWER_BYTES / (RECORD_BYTES + COMPONENT_BYTES * dimensions)));

/** Maximum bytes of a user's records that are sorted at once. */
const MAX_BYTES = 64 * 1024 * 1024;

/** Pinecone takes five a second for a namespace. One is left to the application, and some time to the network. */
export const RATE_LIMIT = { count: 4, window_ms: 1_100, longest_wait_ms: 5_000 };

/**
 * Lists a user's memories. Neither ids nor times can be requested in order: all records of the user are read and sorted
 * here. More than `max_listed` is an error, never a part of them.
 */
export function createMappedList(index: MappedIndex, waitForRate: RateLimit): List {
  const { service, namespace, fields, dimensions, overlay, max_listed } = index;
  const limit = Math.min(largestPage(dimensions), max_listed + 1);

  const read = async ({ user_id, tags }: ListQuery, call: Call): Promise<Memory[]> => {
    const filter = userFilter(user_id, tags, { user: fields.user, tags: fields.tags ?? '' });
    // By id: a record that moves between pages might be shown twice.
    const memories = new Map<string, Memory | undefined>();
    let bytes = 0;
    for (let token: string | undefined; ; ) {
      await waitForRate(call);
      const page = await service.fetchByMetadata(namespace, { filter, limit, token }, call);
      // The index supported it at the start.
      if (!page) throw providerError(PROVIDER, 'Pinecone does not list by metadata any more');
      for (const { id, metadata } of page.records) {
        const memory = toMemory(fields, id, metadata);
        memories.set(id, memory);
        if (memory) bytes += recordBytes(memory);
      }
      if (memories.size > max_listed || bytes > MAX_BYTES) throw tooMany(max_listed, fields.tags !== undefined);
      token = page.next;
      if (token === undefined) return [...memories.values()].filter((memory) => memory !== undefined);
    }
  };

  return async (query, call) => {
    requireTagsField(fields, query.tags);
    const storedMemories = (await read(query, call)).filter(({ id }) => overlay.get(id) === undefined);
    const recent = overlay.of(query.user_id).live.map(({ memory }) => memory);
    const page = [...storedMemories, ...recent].filter(matches(query)).sort(newestFirst).slice(0, query.limit);
    return upToBytes(page, query.max_bytes, (memory) => memory);
  };
}

/** Checks the user and the tags again: the filter's result is not trusted. */
const matches =
  ({ user_id, tags, since, until, after }: ListQuery) =>
  (memory: Memory): boolean =>
    memory.user_id === user_id &&
    tags.every((tag) => memory.tags.includes(tag)) &&
    (since === undefined || memory.created_at >= since) &&
    (until === undefined || memory.created_at <= until) &&
    (after === undefined || newestFirst(after, memory) < 0);

const tooMany = (max: number, hasTags: boolean) =>
  new OmpError(
    'unsupported_capability',
    `list: the user has more memories than the ${max} that can be sorted here; search${hasTags ? ', or list by tag,' : ''} instead`,
    { provider: PROVIDER },
  );

export interface RateLimitOptions {
  /** Maximum number of starts within the window; `window_ms` is its length in milliseconds. */
  readonly count: number;
  readonly window_ms: number;
  /** A caller that would wait longer, in milliseconds, gets `rate_limited`. */
  readonly longest_wait_ms: number;
}

export type RateLimit = (call: Call) => Promise<void>;

/** Delays callers so that the rate is kept, first come, first served. Throws `rate_limited` if the wait is too long. */
export function createRateLimit({ count, window_ms, longest_wait_ms }: RateLimitOptions): RateLimit {
  /** The latest `count` starts, including future ones. */
  const starts: number[] = [];
  return async ({ signal }) => {
    const now = performance.now();
    const start = Math.max(now, (starts.at(-count) ?? Number.NEGATIVE_INFINITY) + window_ms);
    const wait = start - now;
    if (wait > longest_wait_ms) {
      throw new OmpError('rate_limited', 'too many concurrent lists for the rate limit of the backend', {
        provider: PROVIDER,
        retryAfter: Math.ceil(wait / 1_000),
      });
    }
    starts.push(start);
    if (starts.length > count) starts.shift();
    if (wait > 0) await sleep(wait, undefined, { signal }).catch(() => signal.throwIfAborted());
  };
}
