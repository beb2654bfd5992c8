import {
  type BatchItem,
  type BatchOutcome,
  type Call,
  type Embedder,
  type EmbedderIdentity,
  type IdempotencyKey,
  type IdempotentAdd,
  isAborted,
  type Log,
  MAX_BATCH_SIZE,
  type Memory,
  type MemoryPatch,
  type MovedMemory,
  type NewMemory,
  OmpError,
  type Provider,
  type Ref,
  type SearchHit,
  type SearchQuery,
  type Vector,
} from '#contract';
import { effectivePatch, requireVersion } from '#toolbox';
import { startIngestion } from './ingestion.ts';

/** A query whose vector need not be computed yet. */
export type TextQuery = Omit<SearchQuery, 'vector'> & { readonly vector?: Vector | undefined };

/** A provider with its embedder: its methods take texts without their vectors. */
export interface Memories
  extends Omit<Provider, 'check' | 'add' | 'batch' | 'idempotency' | 'update' | 'search' | 'restore' | 'ingestion'> {
  /** The embedder of the vectors; undefined: there are no vectors. */
  readonly embedding?: EmbedderIdentity | undefined;
  add?(input: NewMemory, call: Call): Promise<Memory>;
  /**
   * Idempotent add: repeated adds with this key return the result of the first, also if they run concurrently on several
   * replicas. Throws `invalid_request` if the key was used with another input.
   */
  addIdempotent?(input: NewMemory, key: IdempotencyKey, call: Call): Promise<Memory>;
  /**
   * Adds several memories; undefined inputs have no outcome. With a key, each place has a key of its own, so a repeated batch
   * gets the results of the first. Rejects if the backend or the embedder failed and nothing was added. Present with `add`.
   */
  batch?(
    inputs: readonly (NewMemory | undefined)[],
    key: IdempotencyKey | undefined,
    call: Call,
  ): Promise<BatchOutcome[]>;
  update?(ref: Ref, patch: MemoryPatch, call: Call): Promise<Memory | undefined>;
  search?(query: TextQuery, call: Call): Promise<SearchHit[]>;
  /** `Provider.restore`. Takes over the vectors of the same model, and computes the others. Rejections are outcomes. */
  restore?(items: readonly MovedMemory[], replace: boolean, call: Call): Promise<(boolean | OmpError)[]>;
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
  const {
    check,
    add,
    batch: native,
    idempotency,
    update,
    search,
    restore,
    ingestion: queue,
    close,
    ...rest
  } = provider;
  const batch = native ?? (add && oneByOne(add, idempotency?.add));
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
    if (isAborted(call)) call.signal.throwIfAborted();
    return vector;
  };
  const contentVectors = async (contents: readonly string[], call: Call): Promise<(Vector | OmpError)[]> =>
    embedder && !deferred && contents.length > 0 ? embedAll(embedder, contents, call) : contents.map(() => null);
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
    embedding: embedder && { model: embedder.model, dimensions: embedder.dimensions },
    ...(add && {
      add: async (input, call) => kickQueue(await add(input, await contentVector(input.content, input, call), call)),
    }),
    ...(idempotency && {
      addIdempotent: addOnce(idempotency, contentVector, kickQueue),
    }),
    ...(batch && {
      async batch(inputs, key, call) {
        const outcomes: BatchOutcome[] = inputs.map((input) => input && rejectionOf(() => check?.(input)));
        /** No `Idempotency-Key` contains a line feed. */
        const keyOf = (place: number) => key && { ...key, key: `${key.key}\n${place}` };
        const isOpen = (place: number) => inputs[place] !== undefined && outcomes[place] === undefined;
        let vectors: Map<number, Vector | OmpError> | undefined;
        for (;;) {
          if (key && idempotency) {
            // All places that a batch can have: another batch with this key may have been longer.
            const adds = Array.from({ length: MAX_BATCH_SIZE }, (_, place) => ({
              input: isOpen(place) ? inputs[place] : undefined,
              key: keyOf(place) as IdempotencyKey,
            }));
            for (const [place, first] of (await idempotency.firstAnswers(adds, call)).entries()) {
              if (first) outcomes[place] = first;
            }
          }
          const open = [...inputs.keys()].filter(isOpen);
          if (open.length === 0) return outcomes;
          if (!vectors) {
            const contents = open.map((place) => (inputs[place] as NewMemory).content);
            const computed = await contentVectors(contents, call);
            vectors = new Map(open.map((place, i) => [place, computed[i] as Vector | OmpError]));
          }
          const items: (BatchItem & { readonly place: number })[] = [];
          for (const place of open) {
            const vector = vectors.get(place) ?? null;
            if (vector instanceof OmpError) outcomes[place] = vector;
            else items.push({ place, input: inputs[place] as NewMemory, vector, key: keyOf(place) });
          }
          const added = items.length > 0 ? await batch(items, call) : [];
          for (const [i, { place }] of items.entries()) outcomes[place] = kickQueue(added[i]);
          requireSome(outcomes);
          // Another request has used some of the keys meanwhile: return its results.
        }
      },
    }),
    ...(update && {
      async update(ref, patch, call) {
        const { content, ...others } = patch;
        if (content === undefined) return update(ref, patch, null, call);
        if (!embedder || deferred) return kickQueue(await update(ref, patch, null, call));
        const current = requireVersion(await provider.get(ref, call), ref);
        if (!current) return undefined;
        let wanted = ref;
        if (current.content === content) {
          const updated = await update(ref, others, null, call);
          // Unless another request has changed the content meanwhile.
          if (!updated || updated.content === content) return updated;
          // The first update has made a new version.
          if (ref.versions) wanted = { ...ref, versions: [updated.updated_at] };
        }
        const vector = await contentVector(content, effectivePatch(current, patch) ?? {}, call);
        return update(wanted, patch, vector, call);
      },
    }),
    ...(search && {
      queryVector,
      search: async (query, call) =>
        search({ ...query, vector: query.vector ?? (await queryVector(query, call)) }, call),
    }),
    ...(restore && {
      restore: restoreWith(restore, { check, embedder, deferred, contentVectors, kick: () => ingestion?.kick() }),
    }),
    async close() {
      await ingestion?.close();
      await close();
    },
  };
}

/** The vectors of new contents, or why they have none: one rejected text must not fail the others. */
async function embedAll(embedder: Embedder, contents: readonly string[], call: Call): Promise<(Vector | OmpError)[]> {
  try {
    return [...(await embedder.embed(contents, 'document', call))];
  } catch (error) {
    if (!isRejection(error)) throw error;
    return await Promise.all(
      contents.map((content) =>
        rejectionOr(embedder.embed([content], 'document', call).then(([vector = null]) => vector)),
      ),
    );
  } finally {
    if (isAborted(call)) call.signal.throwIfAborted();
  }
}

/** `Memories.addIdempotent`. Embeds nothing for a repeated add. */
const addOnce =
  (
    idempotency: IdempotentAdd,
    contentVector: (content: string, given: Partial<NewMemory>, call: Call) => Promise<Vector>,
    kickQueue: <Result>(result: Result) => Result,
  ): NonNullable<Memories['addIdempotent']> =>
  async (input, key, call) => {
    let vector: Vector | undefined;
    for (;;) {
      const [first] = await idempotency.firstAnswers([{ input, key }], call);
      if (first) return first;
      vector ??= await contentVector(input.content, input, call);
      const added = await idempotency.add(input, vector, key, call);
      if (added) return kickQueue(added);
      // Another request has used the key meanwhile: return its result.
    }
  };

interface Restoring extends Pick<Provider, 'check'> {
  readonly embedder: Embedder | undefined;
  readonly deferred: boolean;
  contentVectors(contents: readonly string[], call: Call): Promise<(Vector | OmpError)[]>;
  kick(): void;
}

function restoreWith(
  restore: NonNullable<Provider['restore']>,
  { check, embedder, deferred, contentVectors, kick }: Restoring,
): Memories['restore'] {
  /** The one that the memory brings, if the embedder would make the same. */
  const ownVector = ({ memory, vector }: MovedMemory): Vector =>
    memory.embedding_model === embedder?.model && vector?.length === embedder?.dimensions ? vector : null;
  return async (items, replace, call) => {
    const rejections = items.map((item) => rejectionOf(() => check?.(item.memory, ownVector(item))));
    const missing = items.filter((item, i) => !rejections[i] && !ownVector(item));
    const contents = missing.map(({ memory }) => memory.content);
    const computed = (await contentVectors(contents, call)).values();
    const ready = items.map((item, i) => {
      const vector = rejections[i] ?? ownVector(item) ?? (computed.next().value as Vector | OmpError);
      if (vector instanceof OmpError) return vector;
      const status = deferred && !vector ? 'queued' : 'done';
      return { memory: { ...item.memory, embedding_model: embedder?.model ?? null, status }, vector } as const;
    });
    const accepted = ready.filter((one) => !(one instanceof OmpError)) as MovedMemory[];
    const stored = (accepted.length > 0 ? await restore(accepted, replace, call) : []).values();
    if (deferred) kick();
    return ready.map((one) => (one instanceof OmpError ? one : (stored.next().value as boolean)));
  };
}

/** `Provider.batch` for a provider without one. Stops at a failure of the backend, which is the outcome of the rest. */
const oneByOne =
  (
    add: NonNullable<Provider['add']>,
    addIdempotent: IdempotentAdd['add'] | undefined,
  ): NonNullable<Provider['batch']> =>
  async (items, call) => {
    const outcomes: BatchOutcome[] = [];
    let failure: OmpError | undefined;
    for (const { input, vector, key } of items) {
      try {
        if (failure) throw failure;
        outcomes.push(
          await (key && addIdempotent ? addIdempotent(input, vector, key, call) : add(input, vector, call)),
        );
      } catch (error) {
        if (!(error instanceof OmpError)) throw error;
        if (!isRejection(error)) failure = error;
        outcomes.push(error);
      }
    }
    return outcomes;
  };

/** Throws if the backend failed and nothing was added. */
function requireSome(outcomes: readonly BatchOutcome[]): void {
  const failure = outcomes.find((outcome) => outcome instanceof OmpError && !isRejection(outcome));
  if (failure && outcomes.every((outcome) => outcome === undefined || outcome instanceof OmpError)) throw failure;
}

/** Whether an error concerns this memory alone: it would fail again, and others would not. */
const isRejection = (error: unknown): error is OmpError =>
  error instanceof OmpError &&
  (['invalid_request', 'unsupported_capability', 'payload_too_large'] as readonly string[]).includes(error.code);

/** The rejection, or what the work resolves with. */
async function rejectionOr<Result>(work: Promise<Result>): Promise<Result | OmpError> {
  try {
    return await work;
  } catch (error) {
    if (isRejection(error)) return error;
    throw error;
  }
}

function rejectionOf(check: () => void): OmpError | undefined {
  try {
    check();
  } catch (error) {
    if (isRejection(error)) return error;
    throw error;
  }
  return undefined;
}
