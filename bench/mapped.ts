import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import pg from 'pg';
import type { Memory, Provider } from '#contract';
import { toHashedKey } from '../src/auth/configured-keys.ts';
import { newKey } from '../src/auth/credentials.ts';
import { openProvider } from '../src/registry.ts';
import { recordingLog } from '../test/support/gateway.ts';
import { call, listOf, refTo, searchFor } from '../test/support/requests.ts';
import { embeddingService, interleaved, type Row } from './collections.ts';
import { withGateway } from './default.ts';
import { load } from './load.ts';
import { table } from './report.ts';
import type { Request } from './workload.ts';

/** Kept after the run, since filling it takes minutes. */
const SCHEMA = 'omp_bench_mapped';
const DIMENSIONS = 64;
/** A quarter of the rows, about a sixtieth, and ten. */
const [LARGE, MIDDLE, SMALL] = ['user-1', 'user-2', 'user-12'];
const [PAGE, DEEP, HITS, AT_A_TIME] = [50, 20, 10, 8];

/** Keys of two callers. */
const [BUSY, NEAR] = [newKey(), newKey()];
const as = ({ key }: typeof BUSY) => ({ authorization: `Bearer ${key}` });

interface Laid {
  readonly env: Readonly<Record<string, string>>;
  readonly from: string;
  readonly id: string;
  /** What a list and a search select. */
  readonly columns: string;
  readonly owner: string;
  /** How a list is sorted, without the direction. */
  readonly order: string;
  readonly distance: string;
  readonly fill: readonly string[];
  /** What doctor prints. */
  readonly indexes: readonly string[];
}

/** By the name that can be asked for. */
export const MAPPED: Readonly<Record<string, Laid>> = {
  notes: {
    env: {
      OMP_MAPPING_PRESET: 'custom',
      OMP_MAPPING_TABLE: 'notes',
      OMP_MAPPING_ID: 'id',
      OMP_MAPPING_EMBEDDING: 'embedding',
      OMP_MAPPING_CONTENT: 'body',
      OMP_MAPPING_USER_ID: 'author',
      OMP_MAPPING_SCOPE: 'folder',
      OMP_MAPPING_TAGS: 'labels',
      OMP_MAPPING_CREATED_AT: 'written',
    },
    from: `${SCHEMA}.notes`,
    id: 'id',
    columns: 'id, body, author, folder, labels, written',
    owner: 'author',
    order: '(written, id)',
    distance: 'embedding',
    fill: [
      `create table ${SCHEMA}.notes (id uuid primary key, author text not null, body text not null, embedding vector(${DIMENSIONS}),
        folder text, labels text[] not null default '{}', written timestamptz not null)`,
      `insert into ${SCHEMA}.notes select id, author, body, embedding, 'app/notes', array['t' || topic], written from ${SCHEMA}.source order by n`,
    ],
    indexes: ['(author, written, id)', 'using hnsw (embedding vector_cosine_ops)'],
  },
  langchain: {
    env: { OMP_MAPPING_PRESET: 'langchain-py', OMP_MAPPING_COLLECTION: 'my_docs' },
    from: `${SCHEMA}.langchain_pg_embedding`,
    id: 'id',
    columns: 'id, document, cmetadata',
    owner: "cmetadata->>'user_id'",
    order: '(id)',
    distance: `embedding::vector(${DIMENSIONS})`,
    fill: [
      `create table ${SCHEMA}.langchain_pg_collection (uuid uuid not null primary key, name varchar not null unique, cmetadata json)`,
      `create table ${SCHEMA}.langchain_pg_embedding (id varchar primary key, collection_id uuid references ${SCHEMA}.langchain_pg_collection,
        embedding vector, document varchar, cmetadata jsonb)`,
      `insert into ${SCHEMA}.langchain_pg_collection values (gen_random_uuid(), 'my_docs', 'null')`,
      `insert into ${SCHEMA}.langchain_pg_embedding select id::text, (select uuid from ${SCHEMA}.langchain_pg_collection), embedding, body,
        jsonb_build_object('user_id', author, 'topic', topic, 'source', 'notes.txt') from ${SCHEMA}.source order by n`,
      `create index on ${SCHEMA}.langchain_pg_embedding using gin (cmetadata jsonb_path_ops)`,
    ],
    indexes: ["((cmetadata->>'user_id'), id)", `using hnsw ((embedding::vector(${DIMENSIONS})) vector_cosine_ops)`],
  },
};

interface MappedOptions {
  readonly url: string;
  readonly names: readonly string[];
  readonly memories: number;
  /** Of each subject, for each verb. */
  readonly seconds: number;
}

/** The gateway on tables of others beside plain SQL: in turns, then eight clients at once and what a neighbour waits meanwhile. */
export async function* measureMapped({ url, names, memories, seconds }: MappedOptions): AsyncGenerator<string> {
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  // Else the index returns the nearest forty of all users.
  await client.query('set hnsw.iterative_scan = relaxed_order');
  const sql = async (text: string, values: readonly unknown[] = []) =>
    (await client.query<Record<string, string>>(text, [...values])).rows;
  await fill(sql, memories);
  const vectors = (
    await sql(`select embedding::text as vector from ${SCHEMA}.source order by n::bigint * 7919 % 100003 limit 200`)
  ).map(({ vector }) => vector as string);
  const service = await embeddingService(async (texts) =>
    texts.map((text) => JSON.parse(vectors[Number(text.slice('query '.length))] ?? vectors[0] ?? '')),
  );
  const env = {
    DATABASE_URL: url,
    OMP_MAPPING_SCHEMA: SCHEMA,
    OMP_AUTH_KEYS: JSON.stringify(
      Object.entries({ busy: BUSY, near: NEAR }).map(([name, key]) => ({
        name,
        key: toHashedKey(key),
        grants: ['*:*'],
      })),
    ),
    OMP_EMBEDDER: 'openai',
    OMP_EMBEDDING_MODEL: 'stub',
    OMP_EMBEDDING_DIMENSIONS: String(DIMENSIONS),
    OPENAI_BASE_URL: `http://127.0.0.1:${(service.address() as AddressInfo).port}`,
  };
  try {
    for (const name of names) {
      const laid = MAPPED[name] as Laid;
      const provider = await openTable(url, laid);
      const [rows, busy] = await withGateway({ ...env, ...laid.env }, async (gateway) => {
        const done: string[][] = [];
        for (const row of await rowsOf({ sql, url: gateway.url, provider, laid, vectors }))
          done.push(await interleaved(row, seconds));
        return [done, await busyRows(gateway.url, seconds)] as const;
      });
      await provider.close();
      const headings = ['', 'plain SQL', 'provider', 'HTTP', 'provider ÷ plain', 'HTTP ÷ plain'];
      yield `**${name}**, ${memories} rows: p50 / p99 in ms\n\n${table(headings, rows)}\n`;
      yield `${AT_A_TIME} clients, and a neighbour's small list meanwhile, beside the same with small lists. p50 / p99 in ms\n\n${table(['', 'clients', 'neighbour', 'of small lists', 'ratio of medians'], busy)}\n`;
    }
  } finally {
    service.close();
    service.closeAllConnections();
    await client.end();
  }
}

/** The provider alone, as the gateway opens it. */
async function openTable(url: string, { env }: Laid): Promise<Required<Provider>> {
  const settings = Object.entries({ ...env, OMP_MAPPING_SCHEMA: SCHEMA });
  const mapping = Object.fromEntries(
    settings.map(([name, value]) => [name.slice('OMP_MAPPING_'.length).toLowerCase(), value]),
  );
  const embedder = { model: 'stub', dimensions: DIMENSIONS, embed: async () => [], close: async () => {} };
  const ranking = { mode: 'vector', keyword_weight: 0 } as const;
  const context = { embedder, ranking, audit: undefined, data_dir: tmpdir(), log: recordingLog() };
  return (await openProvider('postgres', { url, mapping }, context)) as Required<Provider>;
}

type Sql = (text: string, values?: readonly unknown[]) => Promise<Record<string, string>[]>;

/** Unless an earlier run has left as many rows. */
async function fill(sql: Sql, memories: number): Promise<void> {
  await sql('create extension if not exists vector');
  const [found] = await sql(`select to_regclass('${SCHEMA}.source') as source`);
  if (found?.source && Number((await sql(`select count(*) from ${SCHEMA}.source`))[0]?.count) === memories) return;
  const noise = `(select array_agg(random() - 0.5) from generate_series(1, ${DIMENSIONS}) where n = n)::vector`;
  await sql(`drop schema if exists ${SCHEMA} cascade`);
  await sql(`create schema ${SCHEMA}`);
  // Rows of all users lie between each other, as they were written; vectors lie about three hundred topics.
  await sql(`create table ${SCHEMA}.source as
    with topics as materialized (select n as topic, ${noise} as centre from generate_series(0, 299) as n),
    numbered as materialized (select n, (n::bigint * 7919 % ${memories})::float8 / ${memories} as place, floor(random() * 300)::int as topic
      from generate_series(0, ${memories} - 1) as n)
    select n, gen_random_uuid() as id, case when place < 0.25 then '${LARGE}' when place < 0.25 + 10 / 60.0
        then 'user-' || 2 + floor((place - 0.25) * 60)::int when place < 0.25 + 10 / 60.0 + 9.9 / ${memories} then '${SMALL}'
        else 'user-' || 13 + (place * ${memories})::int % 2988 end as author,
      topic, l2_normalize(centre + ${noise}) as embedding, timestamptz '2025-01-01' + n * interval '50 seconds' + random() * interval '1 second' as written,
      'Note ' || n || ' about topic ' || topic || ': ' || repeat(md5(n::text) || ' ', 4) as body
    from numbered join topics using (topic)`);
  await sql(`set maintenance_work_mem = '1GB'`);
  for (const { fill: statements, from, indexes } of Object.values(MAPPED)) {
    for (const statement of statements) await sql(statement);
    for (const index of indexes) await sql(`create index on ${from} ${index}`);
    await sql(`vacuum analyze ${from}`);
  }
}

const listPath = (user: string, cursor?: string) =>
  `/memories?${new URLSearchParams({ user_id: user, limit: String(PAGE), ...(cursor && { cursor }) })}`;
const searchPath = (user: string, query: number) =>
  `/memories/search?${new URLSearchParams({ user_id: user, limit: String(HITS), q: `query ${query}` })}`;

interface Subjects {
  readonly sql: Sql;
  readonly url: string;
  readonly provider: Required<Provider>;
  readonly laid: Laid;
  readonly vectors: readonly string[];
}

async function rowsOf({ sql, url, provider, laid, vectors }: Subjects): Promise<Row[]> {
  const { from, id, columns, owner, order, distance } = laid;
  const ask = async (path: string) => {
    const response = await fetch(url + path, { headers: as(BUSY) });
    if (!response.ok) throw new Error(`${path}: ${response.status} ${await response.text()}`);
    return response.json() as Promise<{ next_cursor?: string; items?: Memory[] }>;
  };
  const rows: Row[] = [];
  for (const user of [SMALL, MIDDLE, LARGE] as const) {
    const ids = (await sql(`select ${id}::text as id from ${from} where ${owner} = $1 limit 200`, [user])).map(
      (row) => row.id as string,
    );
    const count = Number((await sql(`select count(*) from ${from} where ${owner} = $1`, [user]))[0]?.count);
    const one = <Item>(items: readonly Item[]) => items[Math.floor(Math.random() * items.length)] as Item;
    const keys = order.slice(1, -1).split(', ');
    const sorted = keys.map((key) => `${key} desc`).join(', ');
    const list = (after?: readonly unknown[]) =>
      sql(
        `select ${columns} from ${from} where ${owner} = $1 ${after ? `and ${order} < (${keys.map((_, at) => `$${at + 2}`)})` : ''} order by ${sorted} limit ${PAGE}`,
        [user, ...(after ?? [])],
      );
    let cursor = '';
    let after: Memory | undefined;
    for (let page = 1; page < DEEP; page++) {
      const { next_cursor, items } = await ask(listPath(user, cursor));
      cursor = next_cursor ?? '';
      after = items?.at(-1);
    }
    const [last] = await sql(
      `select ${keys.map((key) => `${key}::text`)} from ${from} where ${owner} = $1 order by ${sorted} offset ${(DEEP - 1) * PAGE - 1} limit 1`,
      [user],
    );
    const numbers = vectors.map((_, number) => number);
    const asked = vectors.map((vector) => Float32Array.from(JSON.parse(vector)));
    rows.push(
      {
        name: `get, of ${count}`,
        client: () => sql(`select ${columns} from ${from} where ${id} = $1`, [one(ids)]),
        provider: () => provider.get(refTo(one(ids)), call),
        http: () => ask(`/memories/${one(ids)}`),
      },
      {
        name: `list ${PAGE}, of ${count}`,
        client: () => list(),
        provider: () => provider.list(listOf(user, { limit: PAGE + 1 }), call),
        http: () => ask(listPath(user)),
      },
      ...(last
        ? [
            {
              name: `list ${PAGE}, page ${DEEP}, of ${count}`,
              client: () => list(Object.values(last)),
              provider: () => provider.list(listOf(user, { limit: PAGE + 1, after }), call),
              http: () => ask(listPath(user, cursor)),
            },
          ]
        : []),
      {
        name: `search, of ${count}`,
        client: () =>
          sql(`select ${columns} from ${from} where ${owner} = $1 order by ${distance} <=> $2::vector limit ${HITS}`, [
            user,
            vectors[one(numbers)],
          ]),
        provider: () => provider.search(searchFor(user, '', { limit: HITS, vector: one(asked) }), call),
        http: () => ask(searchPath(user, one(numbers))),
      },
    );
  }
  return rows;
}

/** `load` rejects if a request is refused. */
async function busyRows(url: string, seconds: number): Promise<string[][]> {
  const get = (path: string, key = BUSY): Request => ({ method: 'GET', path, headers: as(key) });
  const figures = ({ p50, p99 }: { p50: number; p99: number }) => `${p50.toFixed(1)} / ${p99.toFixed(1)}`;
  const beside = (requests: readonly Request[]) =>
    Promise.all([
      load(url, requests, { connections: AT_A_TIME, seconds }),
      load(url, [get(listPath(SMALL), NEAR)], { connections: 1, seconds }),
    ]);
  const rows: string[][] = [];
  for (const user of [MIDDLE, LARGE] as const) {
    for (const [name, pathOf] of [
      ['list', () => listPath(user)],
      ['search', (n: number) => searchPath(user, n)],
    ] as const) {
      const [, alone] = await beside(Array.from({ length: AT_A_TIME }, () => get(listPath(SMALL))));
      const [clients, neighbour] = await beside(Array.from({ length: 10 * AT_A_TIME }, (_, n) => get(pathOf(n))));
      rows.push([
        `${name} of ${user}`,
        figures(clients),
        figures(neighbour),
        figures(alone),
        `${(neighbour.p50 / alone.p50).toFixed(1)}×`,
      ]);
    }
  }
  return rows;
}
