import type {
  Call,
  Embedder,
  IdempotencyKey,
  Log,
  Memory,
  MemoryPatch,
  NewMemory,
  Provider,
  Ref,
  SearchHit,
  SearchQuery,
  Vector,
} from '#contract';
import { startIngestion } from './ingestion.ts';

/** A query whose vector is not computed yet. */
export type TextQuery = Omit<SearchQuery, 'vector'>;

/** A provider with its embedder: its methods take texts without their vectors. */
export interface Memories extends Omit<Provider, 'add' | 'idempotency' | 'update' | 'search' | 'ingestion'> {
  add?(input: NewMemory, call: Call): Promise<Memory>;
  /**
   * Idempotent add: repeated adds with this key return the result of the first, also if they run concurrently on several
   * replicas. Throws `invalid_request` if the key was used with another input.
   */
  addIdempotent?(input: NewMemory, key: IdempotencyKey, call: Call): Promise<Memory>;
  update?(ref: Ref, patch: MemoryPatch, call: Call): Promise<Memory | undefined>;
  search?(query: TextQuery, call: Call): Promise<SearchHit[]>;
}

/** Memories with an `add`. */
export type WritableMemories = Memories & Required<Pick<Memories, 'add'>>;

/**
 * Computes each vector of a request once, before it calls the backend: retries, deadlines and circuit breaker of the
 * backend do not include the embedding. Embeds nothing for a repeated add, for an update that keeps the content, or for
 * contents that go into the ingestion queue. Processes that queue until it is closed. Without an embedder all vectors are
 * null.
 */
export function withEmbedder(provider: Provider, embedder: Embedder | undefined, log: Log): Memories {
  const { add, idempotency, update, search, ingestion: queue, close, ...rest } = provider;
  const deferred = embedder !== undefined && queue?.deferred === true;
  const ingestion = embedder && queue && startIngestion({ queue, embedder, log });
  const vectorOf = async (text: string, purpose: 'document' | 'query', call: Call): Promise<Vector> => {
    const [vector = null] = (await embedder?.embed([text], purpose, call)) ?? [];
    return vector;
  };
  const contentVector = async (text: string, call: Call): Promise<Vector> => {
    if (!embedder || deferred) return null;
    const vector = await vectorOf(text, 'document', call);
    // An aborted call writes nothing.
    call.signal.throwIfAborted();
    return vector;
  };
  const kickQueue = <Result>(result: Result): Result => {
    if (deferred && result !== undefined) ingestion?.kick();
    return result;
  };

  return {
    ...rest,
    ...(add && {
      add: async (input, call) => kickQueue(await add(input, await contentVector(input.content, call), call)),
    }),
    ...(idempotency && {
      async addIdempotent(input, key, call) {
        let vector: Vector | undefined;
        for (;;) {
          const first = await idempotency.firstAnswer(input, key, call);
          if (first) return first;
          vector ??= await contentVector(input.content, call);
          const added = await idempotency.add(input, vector, key, call);
          if (added) return kickQueue(added);
          // Another request has used the key meanwhile: return its result.
        }
      },
    }),
    ...(update && {
      async update(ref, patch, call) {
        const { content, ...others } = patch;
        if (content === undefined) return update(ref, patch, null, call);
        if (!embedder || deferred) return kickQueue(await update(ref, patch, null, call));
        const current = await provider.get(ref, call);
        if (!current) return undefined;
        // The content does not change.
        if (current.content === content) return update(ref, others, null, call);
        return update(ref, patch, await contentVector(content, call), call);
      },
    }),
    ...(search && {
      search: async (query, call) => search({ ...query, vector: await vectorOf(query.text, 'query', call) }, call),
    }),
    async close() {
      await ingestion?.close();
      await close();
    },
  };
}
