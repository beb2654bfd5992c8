import { type Call, type Embedder, OmpError } from '#contract';

export interface BatchingLimits {
  /** Texts in one inner call, at most. */
  readonly batchSize: number;
  /** Inner calls under way at the same time, at most. */
  readonly concurrency: number;
  /** Texts that wait for their turn, at most; by default any number. */
  readonly maxWaiting?: number;
}

type Purpose = Parameters<Embedder['embed']>[1];

interface Item {
  readonly text: string;
  readonly call: Call;
  readonly resolve: (vector: Float32Array) => void;
  readonly reject: (error: unknown) => void;
  /** Takes the item out of where it is now: the queue, or a batch under way. */
  leave: (reason?: unknown) => void;
}

/** Of one inner call, and of the texts that wait; one text always goes. */
const MOST_BATCH_BYTES = 1024 * 1024;
const MOST_WAITING_BYTES = 64 * 1024 * 1024;

/** At most, and near enough: what a string takes of memory. */
const sizeOf = (text: string): number => 2 * text.length;

/**
 * Coalesces texts that wait at the same time into batches, whichever calls they came with.
 * Queries and documents wait apart and take turns, so neither starves behind the other. A call that is aborted
 * rejects at once with its signal's reason: its waiting texts are never computed, and a batch under way is
 * cancelled, with the reason of the last of its callers, when that one has gone.
 */
export function withBatching(inner: Embedder, limits: BatchingLimits): Embedder {
  const waiting: Record<Purpose, Set<Item>> = { query: new Set(), document: new Set() };
  const { maxWaiting = Number.POSITIVE_INFINITY } = limits;
  let lastServed: Purpose = 'document';
  let running = 0;
  let waitingBytes = 0;
  let scheduled = false;

  /** The rest of this turn of the event loop may bring more texts: they share the batch, and nobody waits for a clock. */
  function schedule(): void {
    if (scheduled) return;
    scheduled = true;
    setImmediate(() => {
      scheduled = false;
      startBatches();
    });
  }

  function startBatches(): void {
    while (running < limits.concurrency) {
      const other = lastServed === 'query' ? 'document' : 'query';
      const purpose = waiting[other].size > 0 ? other : lastServed;
      const items = firstOf(waiting[purpose], limits.batchSize);
      if (items.length === 0) return;
      for (const item of items) remove(waiting[purpose], item);
      lastServed = purpose;
      running += 1;
      void runBatch(inner, items, purpose).finally(() => {
        running -= 1;
        schedule();
      });
    }
  }

  const remove = (queue: Set<Item>, item: Item) => {
    if (queue.delete(item)) waitingBytes -= sizeOf(item.text);
  };
  const waitingNow = () => waiting.query.size + waiting.document.size;

  /** What the next batches have room for does not wait. Where nobody waits, a call is taken whatever its length. */
  function refuseTooMany(texts: readonly string[]): void {
    const before = waitingNow();
    const room = (limits.concurrency - running) * limits.batchSize;
    const bytes = texts.reduce((sum, text) => sum + sizeOf(text), waitingBytes);
    if (before === 0 || (before + texts.length <= room + maxWaiting && bytes <= MOST_WAITING_BYTES)) return;
    throw new OmpError('rate_limited', 'too many texts wait for their embedding; retry in 1 s', { retryAfter: 1 });
  }

  return {
    model: inner.model,
    dimensions: inner.dimensions,
    async embed(texts, purpose, call) {
      call.signal.throwIfAborted();
      refuseTooMany(texts);
      const queue = waiting[purpose];
      const items: Item[] = [];
      const vectors = texts.map(
        (text) =>
          new Promise<Float32Array>((resolve, reject) => {
            const item: Item = { text, call, resolve, reject, leave: () => remove(queue, item) };
            items.push(item);
            queue.add(item);
            waitingBytes += sizeOf(text);
          }),
      );
      schedule();
      try {
        return await unlessAborted(Promise.all(vectors), call.signal);
      } catch (error) {
        for (const item of items) item.leave(error);
        throw error;
      }
    },
    stats: () => ({ waiting: waitingNow(), cache_hits: 0, cache_misses: 0 }),
    /** Texts still waiting then meet a closed inner embedder, which refuses them. */
    close: () => inner.close(),
  };
}

function firstOf(queue: Iterable<Item>, count: number): Item[] {
  const items: Item[] = [];
  let bytes = 0;
  for (const item of queue) {
    bytes += sizeOf(item.text);
    if (items.length === count || (items.length > 0 && bytes > MOST_BATCH_BYTES)) break;
    items.push(item);
  }
  return items;
}

/** Settles every item that is still present; never rejects. */
async function runBatch(inner: Embedder, items: readonly Item[], purpose: Purpose): Promise<void> {
  const [first] = items;
  if (first === undefined) return;
  const present = new Set(items);
  const cancel = new AbortController();
  for (const item of items) {
    item.leave = (reason) => {
      present.delete(item);
      if (present.size === 0) cancel.abort(reason);
    };
  }
  try {
    const texts = items.map((item) => item.text);
    const vectors = await inner.embed(texts, purpose, { ...identity(first.call), signal: cancel.signal });
    items.forEach((item, i) => {
      item.resolve(vectors[i] as Float32Array);
    });
  } catch (error) {
    const refused = error instanceof OmpError && error.code === 'invalid_request';
    if (!refused || items.length === 1) {
      for (const item of present) item.reject(error);
      return;
    }
    // One caller's bad text must not fail the others: halve until it stands alone.
    const rest = [...present];
    const middle = rest.length >> 1;
    await runBatch(inner, rest.slice(0, middle), purpose);
    await runBatch(
      inner,
      rest.slice(middle).filter((item) => present.has(item)),
      purpose,
    );
  }
}

async function unlessAborted<Value>(work: Promise<Value>, signal: AbortSignal): Promise<Value> {
  let stop = (): void => {};
  const aborted = new Promise<never>((_, reject) => {
    stop = () => reject(signal.reason);
  });
  signal.addEventListener('abort', stop, { once: true });
  try {
    return await Promise.race([work, aborted]);
  } finally {
    signal.removeEventListener('abort', stop);
  }
}

/** A batch is known by the request that came first, and part of its trace. */
const identity = ({ requestId, caller, trace }: Call) => ({ requestId, caller, ...(trace && { trace }) });
