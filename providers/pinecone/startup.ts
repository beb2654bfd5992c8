import { scrypt } from 'node:crypto';
import { promisify } from 'node:util';
import { backgroundCall, type Call, type EmbedderIdentity, type Finding } from '#provider';
import type { Metadata, Service } from './client/client.ts';
import { failureBehind } from './client/pinecone-errors.ts';
import { indexUrl } from './client/transport.ts';
import type { Options } from './pinecone-options.ts';
import { MEASURES, type Metric, someVector } from './score.ts';

/** Maximum time for all requests at the start, in milliseconds. */
const STARTUP_MS = 30_000;

/** Runs the requests that precede serving. Throws a plain `Error` that tells the operator what to do. */
export async function atStartup<Result>(work: (call: Call) => Promise<Result>): Promise<Result> {
  const signal = AbortSignal.timeout(STARTUP_MS);
  try {
    return await work(backgroundCall('boot', signal));
  } catch (error) {
    if (signal.aborted) throw new Error(`Pinecone did not answer within ${STARTUP_MS / 1000} seconds; ${REACHABLE}`);
    throw explain(error);
  }
}

export const finding = (area: Finding['area'], level: Finding['level'], message: string): Finding => ({
  area,
  level,
  message,
});
export const ANSWERS = 'the index on Pinecone answers';

const REACHABLE = 'check PINECONE_INDEX_HOST and whether this machine may connect to it';
const BY_STATUS: Readonly<Record<number, string>> = {
  401: 'Pinecone rejected the API key; check PINECONE_API_KEY',
  403: 'the API key may not use this index, or a quota of the account is used up; check PINECONE_API_KEY and the console of Pinecone',
  404: 'there is no Pinecone index at this address; check PINECONE_INDEX_HOST',
};

/** A failed request as advice for operators, without the key and the address. Other errors stay as they are. */
function explain(error: unknown): unknown {
  const failure = failureBehind(error);
  if (!failure) return error;
  const { kind, status = 0, message } = failure;
  if (kind === 'unreachable' || kind === 'deadline' || kind === 'connection-lost') {
    return new Error(`Pinecone cannot be reached (${message}); ${REACHABLE}`);
  }
  if (kind === 'insecure') {
    return new Error(
      `no secure connection to Pinecone (${message}); a server without TLS needs http:// in PINECONE_INDEX_HOST`,
    );
  }
  if (kind === 'malformed') {
    return new Error('the server at this address is not a Pinecone index; check PINECONE_INDEX_HOST');
  }
  return new Error(BY_STATUS[status] ?? `Pinecone failed (${message}); try again later`);
}

const METRICS: readonly string[] = Object.keys(MEASURES);

/**
 * The metric that the index reports, else the configured one. Throws a plain `Error` for an index that cannot store the
 * embedder's vectors.
 */
export async function checkedMetric(
  service: Service,
  { metric: configuredMetric }: Pick<Options, 'metric'>,
  dimensions: number,
  call: Call,
): Promise<Metric> {
  const { dimension, metric } = await service.stats(call);
  if (dimension === undefined) {
    throw new Error(
      'the Pinecone index has no dimension: it is a sparse one, and the gateway needs an index of dense vectors',
    );
  }
  if (dimension !== dimensions) {
    throw new Error(
      `the Pinecone index is made for vectors of ${dimension} dimensions, the configured embedder makes ${dimensions}; ` +
        'configure an embedder that fits (OMP_EMBEDDER, OMP_EMBEDDING_MODEL, OMP_EMBEDDING_DIMENSIONS), or create another index and set PINECONE_INDEX_HOST',
    );
  }
  if (metric !== undefined && !METRICS.includes(metric)) {
    throw new Error(`the Pinecone index measures by "${metric}", the gateway knows ${METRICS.join(', ')}`);
  }
  return (metric as Metric | undefined) ?? configuredMetric;
}

/** The record that describes the gateway's index, in the configured namespace. No user's query finds it. */
export const INDEX_RECORD = 'omp-index';
const LAYOUT_VERSION = 1;
const SECRET_BYTES = 32;

const derive = promisify<string, string, number, Buffer>(scrypt);

interface DescribedIndex {
  /** Ids are made with it. It never changes. */
  readonly secret: Buffer;
  /** Whether memories of other stores were moved here. */
  readonly moved: boolean;
}

type IndexOptions = Pick<Options, 'api_key' | 'index_host' | 'namespace' | 'layout'>;

/**
 * Checks that the gateway's index fits this gateway, and describes the index if it is empty. Throws as `readIndex` does.
 */
export async function readOrDescribeIndex(
  service: Service,
  options: IndexOptions,
  embedder: EmbedderIdentity,
  call: Call,
): Promise<DescribedIndex> {
  const index = await readIndex(service, options, embedder, call);
  if (index) return index;
  const { namespace, layout } = options;
  const { model, dimensions } = embedder;
  const secret = await firstSecret(options);
  const metadata: Metadata = {
    layout_version: LAYOUT_VERSION,
    layout,
    embedding_model: model,
    dimensions,
    id_secret: secret.toString('hex'),
  };
  await service.upsert(namespace, [{ id: INDEX_RECORD, values: someVector(dimensions), metadata }], call);
  return { secret, moved: false };
}

/**
 * The description of an index that fits this gateway; undefined if the index is not described yet. Throws a plain `Error` that
 * names both sides and the remedy: vectors of two models are never compared, and ids of another layout would not be found.
 */
export async function readIndex(
  service: Service,
  { namespace, layout }: IndexOptions,
  { model, dimensions }: EmbedderIdentity,
  call: Call,
): Promise<DescribedIndex | undefined> {
  const description = (await service.fetch(namespace, [INDEX_RECORD], call)).get(INDEX_RECORD)?.metadata;
  if (!description) return undefined;
  const remedy = `or start with another OMP_PINECONE_NAMESPACE than "${namespace}"`;
  if (description.layout_version !== LAYOUT_VERSION) {
    throw new Error(
      `the memories in Pinecone have layout version ${description.layout_version}, this gateway knows ${LAYOUT_VERSION}; use the omp-gateway that stored them, ${remedy}`,
    );
  }
  if (description.embedding_model !== model || description.dimensions !== dimensions) {
    throw new Error(
      `the vectors in Pinecone were made by "${description.embedding_model}" (${description.dimensions} dimensions), the configured embedder is "${model}" (${dimensions}); ` +
        `configure that model again (OMP_EMBEDDER, OMP_EMBEDDING_MODEL, OMP_EMBEDDING_DIMENSIONS), ${remedy}`,
    );
  }
  if (description.layout !== layout) {
    throw new Error(
      `the memories in Pinecone have the layout "${description.layout}", OMP_PINECONE_LAYOUT is "${layout}"; set it back, ${remedy}`,
    );
  }
  const secret = Buffer.from(String(description.id_secret), 'hex');
  if (secret.length !== SECRET_BYTES) {
    throw new Error(
      `the record "${INDEX_RECORD}" in the Pinecone namespace "${namespace}" lacks its id_secret; restore it, ${remedy}`,
    );
  }
  return { secret, moved: description.moved === true };
}

/**
 * Derived from what replicas share, so that replicas which start on an empty index at the same time write the same secret.
 * Afterwards the stored one counts, also with a new API key.
 */
const firstSecret = ({ api_key, index_host, namespace }: IndexOptions): Promise<Buffer> =>
  derive(api_key, `omp-gateway:${new URL(indexUrl(index_host)).host}:${namespace}`, SECRET_BYTES);
