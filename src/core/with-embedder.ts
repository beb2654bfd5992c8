import {
  type BatchOutcome,
  type Call,
  type Embedder,
  type EmbeddingUsage,
  type ExportedMemory,
  type Log,
  type Memory,
  type NewMemory,
  type NewVector,
  NO_USAGE,
  OmpError,
  type Provider,
  type UserUsage,
  usageOf,
  type Vector,
} from '#contract';
import { effectivePatch, requireVersion } from '#toolbox';
import { keepUsage } from './embedding-usage.ts';
import { eraseFrom } from './erasure.ts';
import { createFullUsers } from './full-users.ts';
import { createRepeats } from './idempotency.ts';
import { startIngestion } from './ingestion.ts';
import type { Store, TextQuery } from './store.ts';

/**
 * Computes each vector of a request once, before it calls the backend: retries, deadlines and circuit breaker of the
 * backend do not include the embedding. Embeds nothing for a repeated add, for an update that keeps the content, or for
 * contents that go into the ingestion queue. Processes that queue until it is closed. Without an embedder all vectors are
 * null.
 */
export function withEmbedder(
  provider: Provider,
  embedder: Embedder | undefined,
  log: Log,
  takeUsage?: () => readonly EmbeddingUsage[],
): Store {
  const {
    check,
    add,
    batch,
    keyUse,
    update,
    search,
    erase,
    holdings: _,
    import: importMemories,
    ingestion: queue,
    embeddingUsage,
    close,
    ...others
  } = provider;
  const ingestion = embedder && queue && startIngestion(queue, embedder, log);
  const usage = takeUsage && keepUsage(takeUsage, embeddingUsage, log);
  const vectors = createVectors(embedder, queue?.deferred === true, check);
  const { userUsage } = provider;
  const fullUsers = vectors.atOnce && userUsage ? createFullUsers(userUsage) : undefined;
  const writes = { provider, vectors, fullUsers, kick: () => ingestion?.kick() };
  return {
    ...others,
    embedding: embedder && { model: embedder.model, dimensions: embedder.dimensions },
    embeddingUsage: usage,
    idempotent: keyUse !== undefined && batch !== undefined,
    ...(add && { add: addTo(add, writes), batch: batchTo(batch ?? oneByOne(add), writes) }),
    ...(update && { update: updateOf(update, writes) }),
    ...(search && {
      queryVector: vectors.ofQuery,
      search: async (query, call) =>
        search({ ...query, vector: query.vector ?? (await vectors.ofQuery(query, call)) }, call),
    }),
    ...(erase && { erase: eraseFrom(provider, erase) }),
    ...(importMemories && { import: importTo(importMemories, writes) }),
    async close() {
      await ingestion?.close();
      await usage?.close();
      await close();
    },
  };
}

/** What the methods that write share. */
interface Writes {
  readonly provider: Provider;
  readonly vectors: Vectors;
  /** Undefined: nothing is embedded before the store decides. */
  readonly fullUsers: ReturnType<typeof createFullUsers> | undefined;
  /** Tells the ingestion queue that there is something to do. */
  kick(): void;
}

type Vectors = ReturnType<typeof createVectors>;

/** The vectors of texts. `deferred`: those of contents are computed by the ingestion queue. */
function createVectors(embedder: Embedder | undefined, deferred: boolean, check: Provider['check']) {
  const vectorOf = async (text: string, purpose: 'document' | 'query', call: Call): Promise<Vector> => {
    const [vector = null] = (await embedder?.embed([text], purpose, call)) ?? [];
    return vector;
  };
  return {
    model: embedder?.model ?? null,
    /** Whether contents are embedded before they are stored. */
    atOnce: embedder !== undefined && !deferred,
    deferred: embedder !== undefined && deferred,
    /** The vector of a new content. What the backend would reject anyway is not embedded. */
    async ofContent(fields: Partial<NewMemory>, call: Call): Promise<Vector> {
      if (!embedder || deferred) return null;
      check?.(fields);
      const vector = await vectorOf(fields.content ?? '', 'document', call);
      // An aborted call writes nothing.
      call.throwIfAborted();
      return vector;
    },
    /** The vectors of several contents, or why they have none. Does not call `check`. */
    async ofContents(contents: readonly string[], call: Call): Promise<(Vector | OmpError)[]> {
      return embedder && !deferred && contents.length > 0
        ? embedAll(embedder, contents, call)
        : contents.map(() => null);
    },
    async ofQuery({ text, scope }: Pick<TextQuery, 'text' | 'scope'>, call: Call): Promise<Vector> {
      if (embedder) check?.(scope === undefined ? {} : { scope });
      return vectorOf(text, 'query', call);
    },
    /** The vector that an imported memory brings, if the embedder would make the same. */
    ofImport: ({ memory, vector }: ExportedMemory): Vector =>
      memory.embedding_model === embedder?.model && vector?.length === embedder?.dimensions ? vector : null,
  };
}

/** The same change: if a limit rejects it, the user is counted before the next one. */
async function noting<Result>(
  fullUsers: Writes['fullUsers'],
  user_id: string,
  change: Promise<Result>,
): Promise<Result> {
  return change.catch((error) => {
    fullUsers?.note(user_id, error);
    throw error;
  });
}

function addTo(
  add: NonNullable<Provider['add']>,
  { provider, vectors, fullUsers, kick }: Writes,
): NonNullable<Store['add']> {
  const { useOf, repeat, claim } = createRepeats(provider, 'add');
  return async ({ input, key, onRepeat, limits }, call) => {
    let vector: Vector | undefined;
    for (;;) {
      // Before the look at the key: what another request adds with it meanwhile is the answer, however full the user is.
      const admit = limits && (await fullUsers?.look([input.user_id], limits, call));
      const use = key && (await useOf(key, [input], call));
      if (use) {
        const [memory] = await repeat(use, [input], call);
        onRepeat?.(0);
        return memory as Memory;
      }
      const rejection = admit?.(input.user_id, usageOf(input));
      if (rejection) throw rejection;
      vector ??= await vectors.ofContent(input, call);
      const change = { input, vector, key: key && claim(key, { before: undefined, places: [0], size: 1 }), limits };
      const memory = await noting(fullUsers, input.user_id, add(change, call));
      // No memory: another request has used the key meanwhile. Return its result.
      if (!memory) continue;
      if (vectors.deferred) kick();
      return memory;
    }
  };
}

function batchTo(
  batch: NonNullable<Provider['batch']>,
  { provider, vectors, fullUsers, kick }: Writes,
): NonNullable<Store['batch']> {
  const { check } = provider;
  const { useOf, repeat, claim } = createRepeats(provider, 'batch');
  return async ({ inputs, key, onRepeat, limits }, call) => {
    const outcomes: (BatchOutcome | undefined)[] = inputs.map((input) => input && rejectionOf(() => check?.(input)));
    const isOpen = (place: number) => inputs[place] !== undefined && outcomes[place] === undefined;
    const users = inputs.flatMap((input) => input?.user_id ?? []);
    const byPlace = new Map<number, Vector | OmpError>();
    for (;;) {
      const admit = limits && (await fullUsers?.look(users, limits, call));
      const use = key && (await useOf(key, inputs, call));
      if (use) {
        const repeatable = inputs.map((input, place) => (isOpen(place) ? input : undefined));
        for (const [place, memory] of (await repeat(use, repeatable, call)).entries()) {
          if (!memory) continue;
          outcomes[place] = memory;
          onRepeat?.(place);
        }
      }
      const rejections = inputs.map((input, place) =>
        input && isOpen(place) ? admit?.(input.user_id, usageOf(input)) : undefined,
      );
      const open = [...inputs.keys()].filter((place) => isOpen(place) && !rejections[place]);
      const all = () => outcomes.map((outcome, place) => outcome ?? rejections[place]);
      if (open.length === 0) return all();
      const missing = open.filter((place) => !byPlace.has(place));
      const contents = missing.map((place) => (inputs[place] as NewMemory).content);
      for (const [i, vector] of (await vectors.ofContents(contents, call)).entries())
        byPlace.set(missing[i] as number, vector);
      const items: (NewVector & { readonly place: number })[] = [];
      for (const place of open) {
        const vector = byPlace.get(place) ?? null;
        if (vector instanceof OmpError) outcomes[place] = vector;
        else items.push({ place, input: inputs[place] as NewMemory, vector });
      }
      const places = items.map(({ place }) => place);
      const claimed = key && claim(key, { before: use, places, size: inputs.length });
      const results = items.length > 0 ? await batch({ items, key: claimed, limits }, call) : [];
      for (const [i, outcome] of results?.entries() ?? []) {
        outcomes[places[i] as number] = outcome;
        fullUsers?.note((items[i] as NewVector).input.user_id, outcome);
      }
      if (results && vectors.deferred) kick();
      requireSome(outcomes);
      if (results) return all();
      // Another request has used the key meanwhile: return its results.
    }
  };
}

function updateOf(
  update: NonNullable<Provider['update']>,
  { provider, vectors, fullUsers, kick }: Writes,
): NonNullable<Store['update']> {
  return async ({ ref, patch, limits }, call) => {
    const { content, ...others } = patch;
    if (content === undefined || !vectors.atOnce) {
      const memory = await update({ ref, patch, vector: null, limits }, call);
      if (memory && vectors.deferred) kick();
      return memory;
    }
    let current = requireVersion(await provider.get(ref, call), ref);
    if (!current) return undefined;
    let exactRef = ref;
    if (current.content === content) {
      current = await update({ ref, patch: others, vector: null }, call);
      // Another request may have changed the content meanwhile.
      if (!current || current.content === content) return current;
      // The first update has made a new version.
      if (ref.versions) exactRef = { ...ref, versions: [current.updated_at] };
    }
    const { user_id } = current;
    const growth: UserUsage = { ...NO_USAGE, bytes: usageOf({ content }).bytes - usageOf(current).bytes };
    const rejection = limits && (await fullUsers?.look([user_id], limits, call))?.(user_id, growth);
    // The growth is exact only if nobody has changed the content meanwhile.
    if (rejection && (await provider.get(ref, call))?.updated_at === current.updated_at) throw rejection;
    const vector = await vectors.ofContent({ ...effectivePatch(current, patch), content }, call);
    return noting(fullUsers, user_id, update({ ref: exactRef, patch, vector, current, limits }, call));
  };
}

function importTo(
  importMemories: NonNullable<Provider['import']>,
  { provider: { check }, vectors, kick }: Writes,
): NonNullable<Store['import']> {
  const { model, deferred, ofImport } = vectors;
  return async ({ items, replace }, call) => {
    const rejections = items.map((item) => rejectionOf(() => check?.(item.memory, ofImport(item))));
    const missing = items.filter((item, i) => !rejections[i] && !ofImport(item));
    const contents = missing.map(({ memory }) => memory.content);
    const newVectors = (await vectors.ofContents(contents, call)).values();
    const outcomes = items.map((item, i) => {
      const vector = rejections[i] ?? ofImport(item) ?? (newVectors.next().value as Vector | OmpError);
      if (vector instanceof OmpError) return vector;
      const status = deferred && !vector ? 'queued' : 'done';
      return { ...item, memory: { ...item.memory, embedding_model: model, status }, vector } as const;
    });
    const acceptedItems = outcomes.filter((one) => !(one instanceof OmpError)) as ExportedMemory[];
    const results = (
      acceptedItems.length > 0 ? await importMemories({ items: acceptedItems, replace }, call) : []
    ).values();
    if (deferred) kick();
    return outcomes.map((one) => (one instanceof OmpError ? one : (results.next().value as boolean)));
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
    call.throwIfAborted();
  }
}

/** `Provider.batch` for a provider without one, and without keys. Stops at a failure of the backend, which is the outcome of the rest. */
const oneByOne =
  (add: NonNullable<Provider['add']>): NonNullable<Provider['batch']> =>
  async ({ items, limits }, call) => {
    const outcomes: BatchOutcome[] = [];
    let failure: OmpError | undefined;
    for (const item of items) {
      try {
        if (failure) throw failure;
        outcomes.push((await add({ ...item, limits }, call)) as Memory);
      } catch (error) {
        if (!(error instanceof OmpError)) throw error;
        if (!isRejection(error)) failure = error;
        outcomes.push(error);
      }
    }
    return outcomes;
  };

/** Throws if the backend failed and nothing was added. */
function requireSome(outcomes: readonly (BatchOutcome | undefined)[]): void {
  const failure = outcomes.find((outcome) => outcome instanceof OmpError && !isRejection(outcome));
  if (failure && outcomes.every((outcome) => outcome === undefined || outcome instanceof OmpError)) throw failure;
}

/** Whether an error concerns this memory alone: it would fail again, and others would not. */
const isRejection = (error: unknown): error is OmpError =>
  error instanceof OmpError &&
  (error.limit !== undefined ||
    (['invalid_request', 'unsupported_capability', 'payload_too_large'] as readonly string[]).includes(error.code));

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
