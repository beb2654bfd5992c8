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
import { effectivePatch } from '#toolbox';
import { startIngestion } from './ingestion.ts';

/** A query whose vector need not be computed yet. */
export type TextQuery = Omit<SearchQuery, 'vector'> & { readonly vector?: Vector | undefined };

/** A provider with its embedder: its methods take texts without their vectors. */
export interface Memories extends Omit<Provider, 'check' | 'add' | 'idempotency' | 'update' | 'search' | 'ingestion'> {
  add?(input: NewMemory, call: Call): Promise<Memory>;
  /**
   * Idempotent add: repeated adds with this key return the result of the first, also if they run concurrently on several
   * replicas. Throws `invalid_request` if the key was used with another input.
   */
  addIdempotent?(input: NewMemory, key: IdempotencyKey, call: Call): Promise<Memory>;
  update?(ref: Ref, patch: MemoryPatch, call: Call): Promise<Memory | undefined>;
  search?(query: TextQuery, call: Call): Promise<SearchHit[]>;
  /** The vector of a query, for several searches. */
  queryVector?(query: Pick<TextQuery, 'text' | 'scope'>, call: Call): Promise<Vector>;
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
  const { check, add, idempotency, update, search, ingestion: queue, close, ...rest } = provider;
  const deferred = embedder !== undefined && queue?.deferred === true;
  const ingestion = embedder && queue && startIngestion({ queue, embedder, log });
  const vectorOf = async (text: string, purpose: 'document' | 'query', call: Call): Promise<Vector> => {
    const [vector = null] = (await embedder?.embed([text], purpose, call)) ?? [];
    return vector;
  };
  /** Of a new content. What the backend would reject anyway is not embedded. */
  const contentVector = async (content: string, given: Partial<NewMemory>, call: Call): Promise<Vector> => {
    if (!embedder || deferred) return null;
    check?.(given);
    const vector = await vectorOf(content, 'document', call);
    // An aborted call writes nothing.
    call.signal.throwIfAborted();
    return vector;
  };
  const queryVector: Memories['queryVector'] = async ({ text, scope }, call) => {
    if (embedder) check?.(scope === undefined ? {} : { scope });
    return vectorOf(text, 'query', call);
  };
  const kickQueue = <Result>(result: Result): Result => {
    if (deferred && result !== undefined) ingestion?.kick();
    return result;
  };

  return {
    ...rest,
    ...(add && {
      add: async (input, call) => kickQueue(await add(input, await contentVector(input.content, input, call), call)),
    }),
    ...(idempotency && {
      async addIdempotent(input, key, call) {
        let vector: Vector | undefined;
        for (;;) {
          const first = await idempotency.firstAnswer(input, key, call);
          if (first) return first;
          vector ??= await contentVector(input.content, input, call);
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
        if (current.content === content) {
          const updated = await update(ref, others, null, call);
          // Unless another request has changed the content meanwhile.
          if (!updated || updated.content === content) return updated;
        }
        const vector = await contentVector(content, effectivePatch(current, patch) ?? {}, call);
        return update(ref, patch, vector, call);
      },
    }),
    ...(search && {
      queryVector,
      search: async (query, call) =>
        search({ ...query, vector: query.vector ?? (await queryVector(query, call)) }, call),
    }),
    async close() {
      await ingestion?.close();
      await close();
    },
  };
}
