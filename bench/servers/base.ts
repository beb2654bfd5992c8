/**
 * The comparisons, each on its own port: minimal Hono routes with a constant body, and minimal Hono routes that run one statement on
 * the gateway's table, without checks, limits or logs.
 */
import type { AddressInfo } from 'node:net';
import { serve } from '@hono/node-server';
import { type Context, Hono } from 'hono';
import pg from 'pg';
import type { BenchVerb, Body } from '../workload.ts';
import { keywordsValue, statements, vectorSearch, vectorValue } from './statements.ts';

export interface BaseArgument {
  readonly database: pg.ClientConfig;
  readonly connections: number;
  /** Qualified and quoted. */
  readonly table: string;
  /** The gateway's answer to each verb. */
  readonly samples: Readonly<Record<BenchVerb, object>>;
}

export interface BaseReady {
  readonly ports: {
    readonly constant: number;
    readonly base: number;
    readonly pipelined: number;
    readonly plain: number;
  };
}

type Run = (name: string, text: string, values: readonly unknown[]) => Promise<readonly Record<string, unknown>[]>;
type Routes = Readonly<Record<BenchVerb, (c: Context) => Promise<Response> | Response>>;

const { database, connections, table, samples } = JSON.parse(process.argv[2] as string) as BaseArgument;
const text = statements(table);

/** The usual way to use `pg`: a pool lends a connection to one statement at a time. */
function pooled(prefix: string): Run {
  // Idle connections are kept: the embedded engine's one session still knows the statements of closed ones.
  const pool = new pg.Pool({ ...database, max: connections, idleTimeoutMillis: 0 });
  return async (name, sql, values) =>
    (await pool.query({ name: `${prefix}_${name}`, text: sql, values: values as unknown[] })).rows;
}

/** Like the gateway: few connections with pipelined statements. */
async function pipelined(prefix: string): Promise<Run> {
  const clients = await Promise.all(
    Array.from({ length: connections }, async () => {
      const client = new pg.Client({ ...database, pipeline: true } as pg.ClientConfig);
      await client.connect();
      return client;
    }),
  );
  let next = 0;
  return async (name, sql, values) => {
    const client = clients[next++ % clients.length] as pg.Client;
    return (await client.query({ name: `${prefix}_${name}`, text: sql, values: values as unknown[] })).rows;
  };
}

let made = 0;
async function add(c: Context, run: Run, withKeywords: boolean): Promise<Response> {
  const { content, user_id, scope = null, tags = [] } = (await c.req.json()) as Body;
  const id = `mem_${Date.now()}${String(made++).padStart(13, '0')}`;
  const created_at = new Date().toISOString();
  const keywords = withKeywords ? keywordsValue(user_id, content) : '{}';
  await run('add', text.add, [id, user_id, content, scope, tags, created_at, keywords, vectorValue(content)]);
  return c.json({ id, user_id, content, scope, tags, created_at, updated_at: created_at }, 201);
}

const routes = (run: Run): Routes => ({
  get: async (c) => c.json((await run('get', text.get, [c.req.param('id')]))[0]),
  list: async (c) => c.json({ items: await run('list', text.list, [c.req.query('user_id')]), next_cursor: null }),
  async search(c) {
    const { q = '', user_id = '' } = c.req.query();
    const rows = await run('search', text.search, [user_id, vectorValue(q), keywordsValue(user_id, q)]);
    return c.json({ results: rows.map(({ score, ...memory }) => ({ memory, score })) });
  },
  add: (c) => add(c, run, true),
});

/** Without keyword search; its column stays empty. */
const plainRoutes = (run: Run): Routes => ({
  ...routes(run),
  async search(c) {
    const { q = '', user_id = '' } = c.req.query();
    const rows = await run('search', vectorSearch(table), [user_id, vectorValue(q)]);
    return c.json({ results: rows.map(({ score, ...memory }) => ({ memory, score })) });
  },
  add: (c) => add(c, run, false),
});

const constantRoutes: Routes = {
  get: (c) => c.json(samples.get),
  list: (c) => c.json(samples.list),
  search: (c) => c.json(samples.search),
  async add(c) {
    await c.req.json();
    return c.json(samples.add, 201);
  },
};

function listen(handlers: Routes): Promise<number> {
  const app = new Hono()
    .post('/memories', handlers.add)
    .get('/memories', handlers.list)
    .get('/memories/search', handlers.search)
    .get('/memories/:id', handlers.get)
    .onError((error) => {
      // Fast failures would win every comparison.
      console.error(error);
      process.exit(1);
    });
  return new Promise((resolve) => {
    serve({ fetch: app.fetch, hostname: '127.0.0.1', port: 0 }, ({ port }: AddressInfo) => resolve(port));
  });
}

process.once('disconnect', () => process.exit());
process.send?.({
  ports: {
    constant: await listen(constantRoutes),
    base: await listen(routes(pooled('base'))),
    pipelined: await listen(routes(await pipelined('pipelined'))),
    plain: await listen(plainRoutes(pooled('plain'))),
  },
} satisfies BaseReady);
