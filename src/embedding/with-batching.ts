import { createHash } from 'node:crypto';
import { LRUCache } from 'lru-cache';
import { type Call, type Embedder, OmpError } from '#contract';

export interface BatchingLimits {
  /** Maximum texts of a batch. */
  readonly batchSize: number;
  /** Maximum concurrent batches. */
  readonly concurrency: number;
  /** Longest queue, in texts; by default unlimited. */
  readonly maxQueued?: number;
}

type Purpose = Parameters<Embedder['embed']>[1];

interface Item {
  readonly text: string;
  readonly call: Call;
  readonly resolve: (vector: Float32Array) => void;
  readonly reject: (error: unknown) => void;
  /** Removes the item from the queue or the running batch. */
  leave: (reason?: unknown) => void;
}

/** Maximum bytes of a batch with several texts, and of the queue. */
const MAX_BATCH_BYTES = 1024 * 1024;
const MAX_QUEUED_BYTES = 64 * 1024 * 1024;

/** The cause of an `OmpError`: the service answered with this status. */
export class FailedStatus extends Error {
  readonly status: number;
  constructor(status: number, message: string) {
    super(message);
    this.status = status;
  }
}

/** Largest size of a string in memory, in bytes. */
const sizeOf = (text: string): number => 2 * text.length;

/**
 * Puts queued texts of all calls into batches. Queries and documents have separate queues that alternate, so neither
 * starves. An aborted call rejects at once with its signal's reason: its queued texts are never computed, and a running
 * batch is cancelled when its last caller aborts, with that caller's reason.
 */
export function withBatching(inner: Embedder, limits: BatchingLimits): Embedder {
  const queues: Record<Purpose, Set<Item>> = { query: new Set(), document: new Set() };
  const { maxQueued = Number.POSITIVE_INFINITY } = limits;
  let lastServed: Purpose = 'document';
  let running = 0;
  let queuedBytes = 0;
  let scheduled = false;

  /** Texts that arrive in the same iteration of the event loop share a batch, without a timer. */
  function schedule(): void {
    if (scheduled) return;
    scheduled = true;
    setImmediate(startBatches);
  }

  function startBatches(): void {
    scheduled = false;
    while (running < limits.concurrency) {
      const other = lastServed === 'query' ? 'document' : 'query';
      const purpose = queues[other].size > 0 ? other : lastServed;
      const items = firstOf(queues[purpose], limits.batchSize);
      if (items.length === 0) return;
      for (const item of items) remove(queues[purpose], item);
      lastServed = purpose;
      running += 1;
      void runBatch(inner, items, purpose).finally(() => {
        running -= 1;
        schedule();
      });
    }
  }

  const remove = (queue: Set<Item>, item: Item) => {
    if (queue.delete(item)) queuedBytes -= sizeOf(item.text);
  };
  const queueLength = () => queues.query.size + queues.document.size;

  /** Texts that fit into the next batches do not count as queued. With an empty queue a call of any size is accepted. */
  function requireRoom(texts: readonly string[]): void {
    const before = queueLength();
    const room = (limits.concurrency - running) * limits.batchSize;
    let bytes = queuedBytes;
    for (const text of texts) bytes += sizeOf(text);
    if (before === 0 || (before + texts.length <= room + maxQueued && bytes <= MAX_QUEUED_BYTES)) return;
    throw new OmpError('rate_limited', 'too many texts are queued for embedding; retry in 1 s', {
      retryAfter: 1,
    });
  }

  return {
    model: inner.model,
    dimensions: inner.dimensions,
    async embed(texts, purpose, call) {
      call.throwIfAborted();
      requireRoom(texts);
      const queue = queues[purpose];
      const items: Item[] = [];
      const vectors = texts.map(
        (text) =>
          new Promise<Float32Array>((resolve, reject) => {
            const item: Item = { text, call, resolve, reject, leave: () => remove(queue, item) };
            items.push(item);
            queue.add(item);
            queuedBytes += sizeOf(text);
          }),
      );
      schedule();
      try {
        return await call.unlessAborted(Promise.all(vectors));
      } catch (error) {
        for (const item of items) item.leave(error);
        throw error;
      }
    },
    stats: () => ({ queue_length: queueLength(), cache_hits: 0, cache_misses: 0 }),
    /** Texts still queued fail in the closed embedder. */
    close: () => inner.close(),
  };
}

function firstOf(queue: Iterable<Item>, count: number): Item[] {
  const items: Item[] = [];
  let bytes = 0;
  for (const item of queue) {
    bytes += sizeOf(item.text);
    if (items.length === count || (items.length > 0 && bytes > MAX_BATCH_BYTES)) break;
    items.push(item);
  }
  return items;
}

/** Settles every item whose caller has not aborted; never rejects. */
async function runBatch(inner: Embedder, items: readonly Item[], purpose: Purpose): Promise<void> {
  const present = new Set(items);
  const cancel = new AbortController();
  for (const item of items) {
    item.leave = (reason) => {
      present.delete(item);
      if (present.size === 0) cancel.abort(reason);
    };
  }
  const stillPresent = (some: readonly Item[]) => some.filter((item) => present.has(item));
  const reject = (some: readonly Item[], error: unknown) => {
    for (const item of stillPresent(some)) item.reject(error);
  };
  /** Answers with the error if these fail. */
  const embed = async (some: readonly Item[]): Promise<unknown> => {
    const [first] = some;
    if (first === undefined) return undefined;
    const apps = some.map(({ call }) => call.caller.app);
    try {
      const texts = some.map(({ text }) => text);
      // A batch belongs to the request and trace of its first text.
      const call = first.call.with({ consistency: undefined, abortedBy: cancel.signal });
      const vectors = await inner.embed(texts, purpose, call, apps);
      for (const [i, item] of some.entries()) item.resolve(vectors[i] as Float32Array);
      return undefined;
    } catch (error) {
      return error;
    }
  };
  /**
   * The service has embedded all others: if it fails for this one alone too, that is because of the text. It may have refused the number
   * of texts, or all of them together.
   */
  const judge = async (alone: readonly Item[]): Promise<void> => {
    const error = await embed(stillPresent(alone));
    if (error === undefined) return;
    reject(alone, mayBeOneText(error) && !isRejection(error) ? rejectedText(error as OmpError) : error);
  };
  /** A text must not fail the others. `failed`: one of them makes them fail together, the shortest first. */
  const isolate = async (failed: readonly Item[], error: unknown, isFirst = false): Promise<void> => {
    const rest = stillPresent(failed);
    // The one at fault may have left.
    const reason = rest.length < failed.length ? await embed(rest) : error;
    if (reason === undefined) return;
    if (rest.length <= 1 || !mayBeOneText(reason)) return reject(rest, reason);
    // Most are rejected because they are too long.
    const size = isFirst ? rest.length - 1 : rest.length >> 1;
    const [shorter, longer] = [rest.slice(0, size), rest.slice(size)];
    const failure = await embed(shorter);
    if (failure === undefined) return longer.length === 1 ? judge(longer) : isolate(longer, reason);
    // A service that fails again for half of them may fail whatever it gets.
    if (!isRejection(failure)) return isFirst ? isolate(rest, reason) : reject(rest, failure);
    await isolate(shorter, failure);
    const others = stillPresent(longer);
    const another = await embed(others);
    if (another !== undefined) await isolate(others, another);
  };
  const error = await embed(items);
  if (error === undefined) return;
  const byLength = items.toSorted((one, other) => one.text.length - other.text.length);
  await isolate(byLength, error, true);
}

const isRejection = (error: unknown): boolean => error instanceof OmpError && error.code === 'invalid_request';
/** Some services answer 500 for a text that is too long. */
const mayBeOneText = (error: unknown): boolean =>
  isRejection(error) ||
  (error instanceof OmpError && error.cause instanceof FailedStatus && error.cause.status === 500);

/** About one text: a batch of memories has it in the place of that text, and stores the others. */
export const rejectedText = ({ provider, cause }: Pick<OmpError, 'provider' | 'cause'>): OmpError =>
  new OmpError('invalid_request', 'The embedding service rejected this text.', {
    ...(provider && { provider }),
    cause,
  });

/** Size of all cached vectors, and of an entry without its vector. */
const MAX_CACHE_BYTES = 64 * 1024 * 1024;
const ENTRY_BYTES = 300;

/** A digest, since a text may be a mebibyte long. */
const keyOf = (text: string): string => createHash('sha256').update(text).digest('base64');

/**
 * Caches the vectors of the `size` most recently used queries (0: none), in at most 64 MiB. Does not cache documents, which
 * are embedded once. Callers share a cached vector and must not change it.
 */
export function withQueryCache(inner: Embedder, size: number): Embedder {
  if (size === 0) return inner;
  const cache = new LRUCache<string, Float32Array>({
    max: size,
    maxSize: MAX_CACHE_BYTES,
    sizeCalculation: ({ byteLength }) => ENTRY_BYTES + byteLength,
  });
  let [hits, misses] = [0, 0];
  return {
    model: inner.model,
    dimensions: inner.dimensions,
    async embed(texts, purpose, call) {
      if (purpose === 'document') return inner.embed(texts, purpose, call);
      const keys = texts.map(keyOf);
      const cached = keys.map((key) => cache.get(key));
      const missing = texts.filter((_, i) => cached[i] === undefined);
      misses += missing.length;
      hits += texts.length - missing.length;
      if (missing.length === 0) return cached as Float32Array[];
      const fresh = await inner.embed(missing, purpose, call);
      const next = fresh.values();
      return cached.map((vector, i) => {
        if (vector) return vector;
        const computed = next.next().value as Float32Array;
        cache.set(keys[i] as string, computed);
        return computed;
      });
    },
    stats: () => ({ queue_length: inner.stats?.().queue_length ?? 0, cache_hits: hits, cache_misses: misses }),
    close: () => inner.close(),
  };
}
