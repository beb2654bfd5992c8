import type { Call, Embedder, Log } from '#contract';
import { toUnitHalf } from '#ranking';
import { type Around, bare, naming } from '../core/telemetry.ts';
import { withAround } from './with-around.ts';
import { withBatching } from './with-batching.ts';
import { withQueryCache } from './with-query-cache.ts';

export interface LocalOptions {
  readonly kind: 'local';
  /** Queries whose vectors are remembered; 0 turns the cache off. */
  readonly cache_size: number;
  /** Texts that wait for their turn, at most; what comes on top is refused. Unset: any number. */
  readonly max_waiting?: number;
  /** Threads that compute, each with its own copy of the model. */
  readonly workers: number;
}

export interface OpenAiOptions {
  readonly kind: 'openai';
  readonly model: string;
  /** Undefined: whatever length the service answers with. */
  readonly dimensions: number | undefined;
  /** Undefined: OpenAI itself. */
  readonly base_url: string | undefined;
  /** May be empty: many self-hosted services want no key. */
  readonly api_key: string;
  /** For one attempt; a failed one is repeated once. */
  readonly timeout_ms: number;
  /** Texts in one request to the service, at most. */
  readonly batch_size: number;
  readonly max_waiting?: number;
  readonly cache_size: number;
}

export type EmbeddingOptions = LocalOptions | OpenAiOptions;

/** Makes what is put around every call to a dependency; `probe` resolves if that answers. */
export type Protect = (name: string, probe: (call: Call) => Promise<unknown>) => Around;

/** Small, so that a query never waits behind a long batch: eight texts of ordinary length take a tenth of a second. */
const LOCAL_BATCH_SIZE = 8;

/** Texts that arrive while this many requests are under way wait and share the next. */
const OPENAI_CONCURRENCY = 8;

/**
 * Opens the chosen embedder and makes sure that it works; the other one's code is never loaded.
 * Throws a plain `Error` that names the setting to look at.
 */
export async function openEmbedder(
  options: EmbeddingOptions,
  log: Log,
  protect: Protect = () => bare,
): Promise<Embedder> {
  const raw = options.kind === 'local' ? await openLocalLanes(options, log) : await openService(options);
  const { name, embedder, ...limits } = raw;
  const around = protect(name, (call) => embedder.embed(['memory'], 'query', call));
  const batched = withBatching(withAround(withUnitVectors(embedder), name, around), {
    ...limits,
    ...(options.max_waiting !== undefined && { maxWaiting: options.max_waiting }),
  });
  log.info({ embedder: options.kind, model: batched.model, dimensions: batched.dimensions }, 'embedder is ready');
  return withQueryCache(withName(batched, name), options.cache_size);
}

interface Raw {
  /** As it appears in errors. */
  readonly name: string;
  readonly embedder: Embedder;
  readonly batchSize: number;
  readonly concurrency: number;
}

async function openLocalLanes({ workers }: LocalOptions, log: Log): Promise<Raw> {
  const { openLocal } = await import('./local.ts');
  return { name: 'local', embedder: await openLocal(workers, log), batchSize: LOCAL_BATCH_SIZE, concurrency: workers };
}

async function openService(options: OpenAiOptions): Promise<Raw> {
  const { openOpenAi } = await import('./openai.ts');
  const embedder = await openOpenAi(options);
  return { name: 'openai', embedder, batchSize: options.batch_size, concurrency: OPENAI_CONCURRENCY };
}

/** The one place where raw vectors become what `Embedder` promises. */
const withUnitVectors = (inner: Embedder): Embedder => ({
  model: inner.model,
  dimensions: inner.dimensions,
  embed: async (texts, purpose, call) => (await inner.embed(texts, purpose, call)).map(toUnitHalf),
  close: () => inner.close(),
});

/** A deadline that passes during an embedding names the embedder. */
const withName = (inner: Embedder, name: string): Embedder => ({
  ...inner,
  embed: (texts, purpose, call) =>
    inner.embed(texts, purpose, call).catch((error: unknown) => {
      throw naming(name, error);
    }),
});
