/** Pinecone's data plane as a process: see `--help`. Prints its address as one JSON line once it listens. */
import { parseArgs } from 'node:util';
import { listen } from './app.ts';
import { API_VERSIONS, METRICS } from './options.ts';

const HELP = `Pinecone's data plane on 127.0.0.1, with everything in memory.

  --port N            default 0: a free one
  --dimension N       of the index's vectors; default 64
  --metric NAME       ${METRICS.join(', ')}; default cosine
  --api-version V     ${API_VERSIONS.join(', ')}; default ${API_VERSIONS[0]}
  --lag-ms N          a write can be read after N milliseconds
  --lag-writes N      a write can be read after N more writes to its namespace
  --no-lsn            answer without log sequence numbers
`;

const OPTIONS = {
  port: { type: 'string', default: '0' },
  dimension: { type: 'string', default: '64' },
  metric: { type: 'string', default: METRICS[0] },
  'api-version': { type: 'string', default: API_VERSIONS[0] },
  'lag-ms': { type: 'string', default: '0' },
  'lag-writes': { type: 'string', default: '0' },
  'no-lsn': { type: 'boolean', default: false },
  help: { type: 'boolean', default: false },
} as const;

const read = () => parseArgs({ options: OPTIONS }).values;

try {
  const given = read();
  if (given.help) process.stdout.write(HELP);
  else await start(given);
} catch (error) {
  process.stderr.write(`${(error as Error).message}\n`);
  process.exit(2);
}

async function start(given: ReturnType<typeof read>): Promise<void> {
  const settings = {
    dimension: whole('dimension', given.dimension, 1),
    metric: oneOf('metric', given.metric, METRICS),
    apiVersion: oneOf('api-version', given['api-version'], API_VERSIONS),
    lsn: !given['no-lsn'],
    rateLimits: false,
  };
  const lag = { ms: whole('lag-ms', given['lag-ms'], 0), writes: whole('lag-writes', given['lag-writes'], 0) };
  const { url } = await listen({ settings, lag, port: whole('port', given.port, 0) });
  process.stdout.write(`${JSON.stringify({ url })}\n`);
  for (const signal of ['SIGTERM', 'SIGINT'] as const) process.once(signal, () => process.exit(0));
  // Started by another process with a channel to it, this one does not outlive it.
  process.once('disconnect', () => process.exit(0));
}

function whole(name: string, given: string, least: number): number {
  const value = Number(given);
  if (Number.isInteger(value) && value >= least) return value;
  throw new Error(`--${name} takes a whole number from ${least}`);
}

function oneOf<Name extends string>(name: string, given: string, names: readonly Name[]): Name {
  const found = names.find((one) => one === given);
  if (found) return found;
  throw new Error(`--${name} takes one of ${names.join(', ')}`);
}
