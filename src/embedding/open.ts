import type { Embedder, Log } from '#contract';
import { toUnitHalf } from '#ranking';
import { withBatching } from './with-batching.ts';
import { withQueryCache } from './with-query-cache.ts';

export interface LocalOptions {
  readonly kind: 'local';
  /** Queries whose vectors are remembered; 0 turns the cache off. */
  readonly cache_size: number;
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
  readonly cache_size: number;
}

export type EmbeddingOptions = LocalOptions | OpenAiOptions;

/** Small, so that a query never waits behind a long batch: eight texts of ordinary length take a tenth of a second. */
const LOCAL_BATCH_SIZE = 8;

/** Texts that arrive while this many requests are under way wait and share the next. */
const OPENAI_CONCURRENCY = 8;

/**
 * Opens the chosen embedder and makes sure that it works; the other one's code is never loaded.
 * Throws a plain `Error` that names the setting to look at.
 */
export async function openEmbedder(options: EmbeddingOptions, log: Log): Promise<Embedder> {
  const batched = options.kind === 'local' ? await openBatchedLocal(options, log) : await openBatchedOpenAi(options);
  log.info({ embedder: options.kind, model: batched.model, dimensions: batched.dimensions }, 'embedder is ready');
  return withQueryCache(batched, options.cache_size);
}

async function openBatchedLocal({ workers }: LocalOptions, log: Log): Promise<Embedder> {
  const { openLocal } = await import('./local.ts');
  const local = await openLocal(workers, log);
  return withBatching(withUnitVectors(local), { batchSize: LOCAL_BATCH_SIZE, concurrency: workers });
}

async function openBatchedOpenAi(options: OpenAiOptions): Promise<Embedder> {
  const { openOpenAi } = await import('./openai.ts');
  const openai = await openOpenAi(options);
  return withBatching(withUnitVectors(openai), { batchSize: options.batch_size, concurrency: OPENAI_CONCURRENCY });
}

/** The one place where raw vectors become what `Embedder` promises. */
const withUnitVectors = (inner: Embedder): Embedder => ({
  model: inner.model,
  dimensions: inner.dimensions,
  embed: async (texts, purpose, call) => (await inner.embed(texts, purpose, call)).map(toUnitHalf),
  close: () => inner.close(),
});
