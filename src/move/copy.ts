import { setTimeout } from 'node:timers/promises';
import {
  type ExportedMemory,
  type ImportResult,
  InvalidRequestError,
  PayloadTooLargeError,
} from '../../clients/typescript/src/index.ts';
import type { GatewayStore } from './store.ts';

export type OnConflict = 'skip' | 'replace' | 'fail';

export interface CopyOptions {
  readonly onConflict: OnConflict;
  /** Requests at a time. */
  readonly concurrency: number;
  readonly perMinute: number | undefined;
  readonly signal: AbortSignal;
  /** Times the requests; by default the clock of the machine. */
  readonly clock?: Clock;
  /** Called after each request. */
  stored(counts: Counts): void;
  /** Called with each memory that the target rejects, or has of another user. */
  rejected?(memory: ExportedMemory, message: string): void;
  /** Where a memory stands in its file, such as `line 7`. */
  placeOf?(memory: ExportedMemory): string | undefined;
}

/** What became of the memories so far. */
export interface Counts {
  stored: number;
  /** Stored already, as they are. */
  unchanged: number;
  /** Their ids are stored already, with other fields or of another user. */
  skipped: number;
  /** Why memories were rejected: the first of them. */
  rejected: { readonly id: string; readonly place?: string | undefined; readonly message: string }[];
  rejections: number;
  /** Versions that are left out, the oldest of their memories, because an answer of the source or a request to the target holds no more. */
  versions_left_out: number;
}

export const noCounts = (): Counts => ({
  stored: 0,
  unchanged: 0,
  skipped: 0,
  rejected: [],
  rejections: 0,
  versions_left_out: 0,
});
export const total = ({ stored, unchanged, skipped, rejections }: Counts): number =>
  stored + unchanged + skipped + rejections;

/** What one request may hold. */
const MAX_BYTES = 500_000;
const MAX_NAMED = 20;

/** Stores pages of memories, each before the next one. Throws if an id exists and `onConflict` is `fail`. */
export function createCopy(target: GatewayStore, options: CopyOptions) {
  const { onConflict, concurrency, perMinute, signal } = options;
  const counts = noCounts();
  const pace = createPace(perMinute, signal, options.clock);

  const send = async (
    memories: readonly ExportedMemory[],
    on_conflict: 'skip' | 'replace',
  ): Promise<ImportResult[]> => {
    signal.throwIfAborted();
    try {
      const whole = memories.map(({ versions_left_out: _, ...memory }) => memory);
      return (await target.client.import(whole, { on_conflict, signal })).results;
    } catch (error) {
      if (!(error instanceof PayloadTooLargeError || error instanceof InvalidRequestError)) throw error;
      const { code, message, type } = error;
      const [memory] = memories;
      if (memory && memories.length === 1 && error instanceof PayloadTooLargeError && memory.versions?.length)
        return send([withFewer(memory)], on_conflict);
      if (memories.length === 1) return [{ error: { code, message, type } }];
      // The target takes smaller requests, or rejects one for a memory in it.
      const half = memories.length >> 1;
      const first = await send(memories.slice(0, half), on_conflict);
      return [...first, ...(await send(memories.slice(half), on_conflict))];
    }
  };
  /** With the newer half of its versions, from now on. */
  const withFewer = (memory: ExportedMemory): ExportedMemory => {
    const { versions = [] } = memory;
    const half = versions.slice(0, versions.length >> 1);
    counts.versions_left_out += versions.length - half.length;
    return Object.assign(memory, { versions: half });
  };
  const nameOf = (memory: ExportedMemory) => {
    const place = options.placeOf?.(memory);
    return `${JSON.stringify(memory.id)}${place === undefined ? '' : ` (${place})`}`;
  };
  const note = (memory: ExportedMemory, { outcome, error }: ImportResult) => {
    if (outcome === 'stored') counts.stored++;
    else if (outcome === 'unchanged') counts.unchanged++;
    else if (outcome === 'exists') {
      counts.skipped++;
      options.rejected?.(memory, 'another user has a memory with this id');
    } else {
      counts.rejections++;
      options.rejected?.(memory, error?.message ?? 'rejected');
      if (counts.rejected.length === MAX_NAMED) return;
      const { message = 'rejected' } = error ?? {};
      counts.rejected.push({ id: memory.id, place: options.placeOf?.(memory), message });
    }
  };
  const store = async (memories: readonly ExportedMemory[]) => {
    await pace.turn();
    const present: ExportedMemory[] = [];
    for (const [i, result] of (await send(memories, 'skip')).entries()) {
      const memory = memories[i] as ExportedMemory;
      if (result.outcome === 'exists' && onConflict !== 'skip') present.push(memory);
      else note(memory, result);
    }
    if (onConflict === 'fail' && present[0]) {
      throw new Error(
        `the memory ${nameOf(present[0])} is stored already, with other fields; use --on-conflict skip or replace`,
      );
    }
    // What is stored already as it is, is not written again.
    if (present.length === 0) return;
    for (const [i, result] of (await send(present, 'replace')).entries()) note(present[i] as ExportedMemory, result);
  };
  return {
    counts,
    /** Counts a memory that is not sent. */
    reject: (memory: ExportedMemory, message: string) =>
      note(memory, { error: { code: 'invalid_request', message, type: 'invalid' } }),
    async page(memories: readonly ExportedMemory[]): Promise<void> {
      for (const { versions_left_out = 0 } of memories) counts.versions_left_out += versions_left_out;
      const rest = chunks(memories, pace.chunk);
      const worker = async () => {
        for (let chunk = rest.shift(); chunk; chunk = rest.shift()) {
          await store(chunk);
          options.stored(counts);
        }
      };
      await Promise.all(Array.from({ length: concurrency }, worker));
    },
  };
}

/** `most`: memories of one. */
function chunks(memories: readonly ExportedMemory[], most: number): ExportedMemory[][] {
  const all: ExportedMemory[][] = [];
  let bytes = 0;
  for (const memory of memories) {
    const size = Buffer.byteLength(JSON.stringify(memory));
    const last = all.at(-1);
    // A request has each id once.
    const isNew = memory.id === undefined || !last?.some(({ id }) => id === memory.id);
    if (last && isNew && last.length < most && bytes + size <= MAX_BYTES) {
      last.push(memory);
      bytes += size;
    } else {
      all.push([memory]);
      bytes = size;
    }
  }
  return all;
}

/** Memories of one request at most. */
const MAX_MEMORIES = 100;
const MINUTE_MS = 60_000;

/** Both in milliseconds. `sleep` rejects when the signal aborts. */
interface Clock {
  now(): number;
  sleep(ms: number, signal: AbortSignal): Promise<void>;
}

const CLOCK: Clock = {
  now: () => performance.now(),
  sleep: (ms, signal) => setTimeout(ms, undefined, { signal }),
};

export interface Pace {
  /** Memories of one request. */
  readonly chunk: number;
  /** Resolves when the next request may begin. */
  turn(): Promise<void>;
}

/**
 * Requests at even distances, from the first one on: in no minute they hold more than so many memories together. A request that
 * comes late is not made up for. Undefined: no limit.
 */
function createPace(perMinute: number | undefined, signal: AbortSignal, { now, sleep }: Clock = CLOCK): Pace {
  if (perMinute === undefined) return { chunk: MAX_MEMORIES, turn: async () => {} };
  const chunk = Math.min(MAX_MEMORIES, Math.ceil(perMinute / 60));
  const distance = MINUTE_MS / Math.max(1, Math.floor(perMinute / chunk));
  let last = Number.NEGATIVE_INFINITY;
  let waiting = Promise.resolve();
  const next = async () => {
    // A timer may end a little early.
    for (let left = last + distance - now(); left > 0; left = last + distance - now()) {
      await sleep(Math.ceil(left), signal);
    }
    last = now();
  };
  return {
    chunk,
    turn() {
      waiting = waiting.then(next);
      return waiting;
    },
  };
}
