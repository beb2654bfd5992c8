import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { json } from 'node:stream/consumers';
import type { ExportedMemory, Memory, Provider } from '#contract';
import { newRecord } from '#toolbox';
import { DATABASES, type Database } from '../test/collections/databases.ts';
import { recordingLog } from '../test/support/gateway.ts';
import { hashingEmbedder } from '../test/support/hashing-embedder.ts';
import { call, listOf, refTo, searchFor } from '../test/support/requests.ts';
import { withGateway } from './default.ts';
import { CLIENTS } from './raw-collections.ts';
import { table } from './report.ts';
import { initialMemories } from './workload.ts';

/** One user with very many memories, spread over about a year, and very many with one. */
const BIG = 'big';
const DAY_MS = 86_400_000;
const [PAGE, DEEP] = [50, 100];
/** A search of seconds too has a median. */
const MIN_ROUNDS = 8;
/** The vectors are of texts that share words, as memories do. */
const embedder = { ...hashingEmbedder(384), model: 'stub' };
const QUERIES = initialMemories()
  .slice(0, 100)
  .map(({ content }) => content.slice(0, 40));

/** What is measured of one database: each subject does the same, in turns. */
interface Measured {
  readonly name: string;
  readonly fill: string;
  readonly rows: readonly (readonly string[])[];
}

interface CollectionOptions {
  readonly names: readonly string[];
  readonly memories: number;
  readonly users: number;
  /** Of each subject, for each verb. */
  readonly seconds: number;
}

/** The names that can be asked for, in the order of the table. */
export const COLLECTIONS = DATABASES.map(({ provider }) => provider.name);

/** The gateway on each database, beside the database's own client: one request at a time, on the same points. */
export async function* measureCollections({ names, ...options }: CollectionOptions): AsyncGenerator<string> {
  for (const database of DATABASES.filter(({ provider }) => names.includes(provider.name))) {
    if (database.absent !== '') {
      yield `**${database.name}**: not measured. ${database.absent}\n`;
      continue;
    }
    const { name, fill, rows } = await measure(database, options);
    const headings = ['', 'client', 'provider', 'HTTP', 'provider ÷ client', 'HTTP ÷ client'];
    yield `**${name}**: ${fill}. p50 / p99 in ms\n\n${table(headings, rows)}\n`;
  }
}

async function measure(database: Database, options: Omit<CollectionOptions, 'names'>): Promise<Measured> {
  const { options: of, env, close } = await database.open();
  const context = { embedder, ranking: { mode: 'vector', keyword_weight: 0 }, audit: undefined } as const;
  const place = { data_dir: tmpdir(), log: recordingLog() };
  const provider = (await database.provider.open(of, { ...context, ...place })) as Required<Provider>;
  const service = await embeddingService();
  try {
    const started = performance.now();
    const memories = await fill(provider, options);
    const seconds = (performance.now() - started) / 1_000;
    const filled = `${memories.length} points, filled in ${seconds.toFixed(0)} s (${(memories.length / seconds).toFixed(0)} a second)`;
    const settings = {
      ...env,
      OMP_PROVIDER: database.provider.name,
      OMP_SEARCH_MODE: 'vector',
      OMP_EMBEDDER: 'openai',
      OMP_EMBEDDING_MODEL: embedder.model,
      OPENAI_BASE_URL: `http://127.0.0.1:${(service.address() as AddressInfo).port}`,
    };
    const rows = await withGateway(settings, ({ url }) => rowsOf({ database, of, provider, url, memories }, options));
    return { name: database.name, fill: filled, rows };
  } finally {
    await provider.close();
    await close();
    service.close();
    service.closeAllConnections();
  }
}

/** Through the provider's import, so that points are what the gateway writes. */
async function fill(
  provider: Required<Provider>,
  { memories, users }: { readonly memories: number; readonly users: number },
): Promise<Memory[]> {
  const texts = initialMemories();
  const now = Date.now();
  const made: Memory[] = [];
  for (let at = 0; at < memories + users; at += 500) {
    const items = Array.from({ length: Math.min(500, memories + users - at) }, (_, n): ExportedMemory => {
      const [index, text] = [at + n, texts[(at + n) % texts.length]];
      // Users with one memory come in between, as they do.
      const share = Math.floor(((index + 1) * users) / (memories + users));
      const isSmall = share > Math.floor((index * users) / (memories + users));
      const { content, scope = null, tags = [] } = text ?? { content: '' };
      const input = { content: `${content} ${index}`, user_id: isSmall ? `user-${share}` : BIG, scope, tags };
      const rest = { source: null, confidence: null, valid_from: null, valid_to: null, supersedes: [], extensions: {} };
      const created_at = new Date(now - Math.round(((memories + users - index) * 365 * DAY_MS) / (memories + users)));
      const identity = { id: newRecord({ ...input, ...rest }, null).id, created_at: created_at.toISOString() };
      return { memory: newRecord({ ...input, ...rest }, embedder.model, identity), vector: null };
    });
    const vectors = await embedder.embed(
      items.map(({ memory }) => memory.content),
      'document',
      call,
    );
    const whole = items.map((item, n) => ({ ...item, vector: vectors[n] ?? null }));
    await provider.import({ items: whole, replace: false }, call);
    made.push(...whole.map(({ memory }) => memory));
  }
  return made;
}

interface Subjects {
  readonly database: Database;
  /** Options of the database. */
  readonly of: object;
  readonly provider: Required<Provider>;
  readonly url: string;
  readonly memories: readonly Memory[];
}

type Work = () => Promise<unknown>;
interface Row {
  readonly name: string;
  readonly client?: Work | undefined;
  readonly provider: Work;
  readonly http?: Work;
}

async function rowsOf(
  { database, of, provider, url, memories }: Subjects,
  { seconds, users }: Omit<CollectionOptions, 'names'>,
) {
  const client = await CLIENTS[database.provider.name]?.(of);
  if (!client) throw new Error(`bench/raw-collections.ts has no client of ${database.name}`);
  const ask = async (path: string) => {
    const response = await fetch(url + path);
    if (!response.ok) throw new Error(`${path}: ${response.status} ${await response.text()}`);
    return response.json() as Promise<{ next_cursor?: string }>;
  };
  const one = <Item>(items: readonly Item[]): Item => items[Math.floor(Math.random() * items.length)] as Item;
  const some = <Item>(items: readonly Item[], work: (item: Item) => Promise<unknown>) => {
    return () => work(one(items));
  };
  const vectors = await embedder.embed(QUERIES, 'query', call);
  const queries = QUERIES.map((text, n) => ({ text, vector: vectors[n] as Float32Array }));
  const ids = memories.map(({ id }) => id);
  const small = Array.from({ length: users }, (_, n) => `user-${n + 1}`);

  const search = (name: string, userOf: () => string): Row => ({
    name,
    client: some(queries, ({ vector }) => client.search(userOf(), vector, 10)),
    provider: some(queries, (query) => provider.search({ ...searchFor(userOf(), query.text), ...query }, call)),
    http: some(queries, ({ text }) => ask(`/memories/search?${new URLSearchParams({ q: text, user_id: userOf() })}`)),
  });

  const listed = (cursor?: string) =>
    ask(`/memories?${new URLSearchParams({ user_id: BIG, limit: String(PAGE), ...(cursor && { cursor }) })}`);
  const own = memories.filter(({ user_id }) => user_id === BIG).reverse();
  const after = own[(DEEP - 1) * PAGE - 1];
  let cursor = '';
  for (let page = 1; after && page < DEEP; page++) cursor = (await listed(cursor)).next_cursor ?? '';
  const list = (name: string, position?: Memory): Row => ({
    name,
    client: client.list && (() => client.list?.(BIG, PAGE, position) as Promise<unknown>),
    provider: () => provider.list(listOf(BIG, { limit: PAGE, ...(position && { after: position }) }), call),
    http: () => listed(position && cursor),
  });

  /** Pages one after the other, again from the first after the last. */
  const pages = (next: (after: string | undefined) => Promise<string | undefined>) => {
    let place: string | undefined;
    return async () => {
      place = await next(place);
    };
  };
  const exported = (vectors: boolean): Row => ({
    name: `export 100${vectors ? ' with vectors' : ''}`,
    provider: pages(async (at) => {
      return (await provider.export({ after: at, vectors, limit: 100, max_bytes: 1e9 }, call)).next;
    }),
    http: pages(async (at) => {
      const path = `/export?${new URLSearchParams({ vectors: String(vectors), ...(at && { cursor: at }) })}`;
      return (await ask(path)).next_cursor;
    }),
  });
  const users100: Row = {
    name: 'users 100',
    provider: pages(
      async (at) =>
        (await provider.users({ ...{ users: null, within: null, limit: 100 }, ...(at && { after: at }) }, call)).next,
    ),
    http: pages(
      async (at) =>
        (await ask(`/users?${new URLSearchParams({ limit: '100', ...(at && { cursor: at }) })}`)).next_cursor,
    ),
  };
  const rows: Row[] = [
    {
      name: 'get',
      client: some(ids, client.get),
      provider: some(ids, (id) => provider.get(refTo(id), call)),
      http: some(ids, (id) => ask(`/memories/${id}`)),
    },
    search(`search of ${own.length}`, () => BIG),
    search('search of 1', () => one(small)),
    list(`list ${PAGE}, first page`),
    ...(after ? [list(`list ${PAGE}, page ${DEEP}`, after)] : []),
    users100,
    exported(false),
    exported(true),
  ];
  try {
    const done: string[][] = [];
    for (const row of rows) done.push(await interleaved(row, seconds));
    return done;
  } finally {
    await client.close();
  }
}

/** The subjects take turns, so that whatever else the machine does affects all alike. */
async function interleaved({ name, client, provider, http }: Row, seconds: number): Promise<string[]> {
  const subjects = [client, provider, http].map((work) => ({ work, taken: [] as number[] }));
  const ends = performance.now() + subjects.length * seconds * 1_000;
  for (let round = 0; round < MIN_ROUNDS || performance.now() < ends; round++) {
    for (const { work, taken } of round % 2 === 0 ? subjects : subjects.toReversed()) {
      if (!work) continue;
      const start = performance.now();
      await work();
      // The first one warms up.
      if (round > 0) taken.push(performance.now() - start);
    }
  }
  const sorted = subjects.map(({ taken }) => taken.toSorted((a, b) => a - b));
  const at = (taken: readonly number[], share: number) => taken[Math.floor(taken.length * share)] as number;
  const cells = sorted.map((taken) => (taken.length > 0 ? `${ms(at(taken, 0.5))} / ${ms(at(taken, 0.99))}` : '–'));
  const [plain = [], ...others] = sorted;
  const ratios = others.map((taken) =>
    plain.length > 0 && taken.length > 0 ? `${(at(taken, 0.5) / at(plain, 0.5)).toFixed(2)}×` : '–',
  );
  return [name, ...cells, ...ratios];
}

const ms = (value: number): string => value.toFixed(value < 10 ? 2 : 0);

/** Answers at once; the gateway keeps the vectors of queries besides. */
async function embeddingService() {
  const service = createServer(async (request, response) => {
    const { input } = (await json(request)) as { input: string[] };
    const vectors = await embedder.embed(input, 'query', call);
    const data = vectors.map((vector, index) => ({ object: 'embedding', index, embedding: [...vector] }));
    response.setHeader('content-type', 'application/json');
    response.end(JSON.stringify({ object: 'list', data, usage: { prompt_tokens: 1, total_tokens: 1 } }));
  }).listen(0, '127.0.0.1');
  await once(service, 'listening');
  return service;
}
