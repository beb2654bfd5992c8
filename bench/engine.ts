import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { isDeepStrictEqual } from 'node:util';
import pg from 'pg';
import { startServer } from './child.ts';
import { type CompareOptions, compare, type Series } from './compare.ts';
import type { BaseArgument, BaseReady } from './servers/base.ts';
import type { GatewayArgument, GatewayReady } from './servers/gateway.ts';
import { type BenchVerb, type Request, requestsOf, VERBS } from './workload.ts';

export interface EngineOptions extends CompareOptions {
  /** A server's connection string; undefined: the embedded Postgres. */
  readonly url: string | undefined;
  readonly verbs: readonly BenchVerb[];
  /** Folder for a CPU profile of the gateway. */
  readonly profile: string | undefined;
}

export interface EngineResult {
  readonly version: string;
  readonly connections: number;
  readonly verbs: ReadonlyMap<BenchVerb, readonly Series[]>;
}

/** Names of the subjects in the tables. */
export const SUBJECTS = {
  constant: 'minimal Hono, constant JSON',
  base: 'minimal Hono, one statement',
  plain: 'the same, vectors only',
  pipelined: 'minimal Hono, one statement, pipelined',
  gateway: 'gateway',
  quiet: 'gateway, `OMP_LOG_LEVEL=warn`',
  unaudited: 'gateway, `OMP_AUDIT=off`',
} as const;

/**
 * The gateway and its comparisons, on one Postgres and one table. The embedded engine belongs to the gateway's process; the
 * others reach it through its socket, so all of them use the same engine in a separate thread. Only the gateway without audit
 * log has a separate table and embedded engine.
 */
export async function measureEngine({ url, verbs, profile, ...options }: EngineOptions): Promise<EngineResult> {
  const closers: (() => Promise<void>)[] = [];
  const schema = `omp_bench_${process.pid}`;
  const start = async (audit: GatewayArgument['audit'], schema: string, profile?: string) => {
    const folder = await mkdtemp(join(tmpdir(), 'omp-bench-'));
    closers.push(() => rm(folder, { recursive: true, force: true }));
    if (url !== undefined) closers.push(() => dropSchema(url, schema));
    const argument = { url, schema, folder, audit } satisfies GatewayArgument;
    const { ready, stop } = await startServer<GatewayReady>('servers/gateway.ts', argument, profile);
    closers.push(stop);
    return ready;
  };
  try {
    const { ports, ids, ...postgres } = await start('all', schema, profile);
    const unaudited = await start('off', `${schema}_unaudited`);
    const samples = await sampleAnswers(at(ports.info), ids);
    const base = await startServer<BaseReady>('servers/base.ts', {
      database: postgres.database,
      connections: postgres.connections,
      table: `${schema}.memories`,
      samples,
    } satisfies BaseArgument);
    closers.push(base.stop);
    const subjects = new Map([
      [SUBJECTS.constant, { url: at(base.ready.ports.constant), ids }],
      [SUBJECTS.base, { url: at(base.ready.ports.base), ids }],
      [SUBJECTS.gateway, { url: at(ports.info), ids }],
      [SUBJECTS.quiet, { url: at(ports.warn), ids }],
      [SUBJECTS.unaudited, { url: at(unaudited.ports.info), ids: unaudited.ids }],
      [SUBJECTS.pipelined, { url: at(base.ready.ports.pipelined), ids }],
      [SUBJECTS.plain, { url: at(base.ready.ports.plain), ids }],
    ]);
    await checkSame(at(ports.info), at(base.ready.ports.base), ids);
    const results = new Map<BenchVerb, readonly Series[]>();
    for (const verb of VERBS) {
      if (verbs.includes(verb)) results.set(verb, await compare(verb, subjects, options));
    }
    return { version: postgres.version, connections: postgres.connections, verbs: results };
  } finally {
    for (const close of closers.reverse()) await close();
  }
}

/** The part of the answers that is compared. */
interface Answer {
  readonly id?: string;
  readonly items?: readonly { readonly id: string }[];
  readonly results?: readonly { readonly score: number }[];
}

const at = (port: number): string => `http://127.0.0.1:${port}`;

async function answer(url: string, { path, ...init }: Request): Promise<Answer> {
  const response = await fetch(url + path, init);
  if (!response.ok) throw new Error(`${url}${path} answered ${response.status}`);
  return (await response.json()) as Answer;
}

/** The bodies of the constant routes. */
async function sampleAnswers(url: string, ids: readonly string[]): Promise<Record<BenchVerb, object>> {
  const sample = (verb: BenchVerb) => answer(url, requestsOf(verb, ids, 1)[0] as Request);
  return {
    get: await sample('get'),
    list: await sample('list'),
    search: await sample('search'),
    add: await sample('add'),
  };
}

/** Subjects with different answers cannot be compared. */
async function checkSame(gateway: string, base: string, ids: readonly string[]): Promise<void> {
  for (const verb of ['get', 'list', 'search'] as const) {
    for (const request of requestsOf(verb, ids, 20)) {
      const [ours, theirs] = [await answer(gateway, request), await answer(base, request)].map(essence);
      if (!isDeepStrictEqual(ours, theirs)) throw new Error(`gateway and base answer ${request.path} differently`);
    }
  }
}

/** Ids in order; for search the scores, since equal ones may come in any order. */
const essence = ({ id, items, results }: Answer): unknown =>
  id ?? items?.map((item) => item.id) ?? results?.map(({ score }) => score.toFixed(4));

export async function dropSchema(url: string, schema: string): Promise<void> {
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  try {
    await client.query(`drop schema if exists ${schema} cascade`);
  } finally {
    await client.end();
  }
}
