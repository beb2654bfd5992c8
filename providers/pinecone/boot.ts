import { type Metric } from './score.ts';
import { type Call, GATEWAY } from '#contract';
import type { Service } from './client/client.ts';
import { Failure } from './client/errors.ts';
import type { Options } from './options.ts';

/** Longest time that the requests of the start may take together, in milliseconds. */
const BOOT_MS = 30_000;

/** Does what asks the service before the gateway serves. Throws a plain `Error` that says what to do about it. */
export async function atBoot<Result>(work: (call: Call) => Promise<Result>): Promise<Result> {
  const signal = AbortSignal.timeout(BOOT_MS);
  try {
    return await work({ signal, requestId: 'boot', caller: GATEWAY });
  } catch (error) {
    if (signal.aborted) throw new Error(`Pinecone did not answer within ${BOOT_MS / 1000} seconds; ${REACHABLE}`);
    throw explained(error);
  }
}

const REACHABLE = 'check PINECONE_INDEX_HOST and whether this machine may connect to it';
const BY_STATUS: Readonly<Record<number, string>> = {
  401: 'Pinecone refused the API key; check PINECONE_API_KEY',
  403: 'Pinecone does not let this API key use the index, or a quota of the account is used up; check PINECONE_API_KEY and the console of Pinecone',
  404: 'there is no Pinecone index at this address; check PINECONE_INDEX_HOST',
};

/** What an operator can do about it; the key and the address are not repeated. Errors of other kinds stay as they are. */
function explained(error: unknown): unknown {
  const failure = error instanceof Error ? error.cause : undefined;
  if (!(failure instanceof Failure)) return error;
  const { kind, status = 0, message } = failure;
  if (kind === 'unreachable' || kind === 'timeout' || kind === 'connection-lost') {
    return new Error(`Pinecone cannot be reached (${message}); ${REACHABLE}`);
  }
  if (kind === 'insecure') {
    return new Error(
      `no secure connection to Pinecone (${message}); a server without TLS needs http:// in PINECONE_INDEX_HOST`,
    );
  }
  if (kind === 'malformed') {
    return new Error('what answers at this address is not a Pinecone index; check PINECONE_INDEX_HOST');
  }
  return new Error(BY_STATUS[status] ?? `Pinecone failed (${message}); try again later`);
}

const METRICS: readonly string[] = ['cosine', 'dotproduct', 'euclidean'] satisfies Metric[];

/**
 * How the index measures: what it tells, else what is configured. Throws a plain `Error` for one that cannot hold the
 * embedder's vectors.
 */
export async function checkedMetric(
  service: Service,
  { metric: configured }: Pick<Options, 'metric'>,
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
        'configure an embedder that fits (OMP_EMBEDDER, OMP_EMBEDDING_MODEL, OMP_EMBEDDING_DIMENSIONS), or make another index and set PINECONE_INDEX_HOST',
    );
  }
  if (metric !== undefined && !METRICS.includes(metric)) {
    throw new Error(`the Pinecone index measures by "${metric}", the gateway knows ${METRICS.join(', ')}`);
  }
  return (metric as Metric | undefined) ?? configured;
}
