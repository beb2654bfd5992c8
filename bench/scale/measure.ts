import type pg from 'pg';
import type { Embedder, ListQuery, NewMemory, RankingOptions, SearchQuery } from '#contract';
import type { Database, Row } from '../../providers/postgres/client/connections.ts';
import { statement } from '../../providers/postgres/client/connections.ts';
import { indexSettings, keysOf, searchStatements } from '../../providers/postgres/tables/search-statement.ts';
import { countStatement } from '../../providers/postgres/tables/search-strategy.ts';
import type { Rarity } from '../../providers/postgres/tables/search-terms.ts';
import type { WritableStore } from '../../src/core/store.ts';
import { HUNDRED, type User } from './population.ts';
import { call, type Store } from './stores.ts';
import { type Timed, type Times, timeAll } from './timing.ts';

const RANKING = { mode: 'hybrid', keyword_weight: 0.5 } as const satisfies RankingOptions;
const VECTORS = { ...RANKING, mode: 'vector' } as const satisfies RankingOptions;

export interface Subject {
  readonly client: pg.Client;
  readonly db: Database;
  readonly store: Store;
  readonly embedder: Embedder;
  readonly hybrid: WritableStore;
  readonly vector: WritableStore;
  /** One user of each size, largest first. */
  readonly users: readonly User[];
  readonly questions: readonly string[];
}

const searchOf = (user: User, text: string, more: Partial<SearchQuery> = {}): SearchQuery => ({
  ...{ user_id: user.id, text, vector: null, tags: [], within: null, max_bytes: 1e9, limit: 10 },
  ...more,
});
const listOf = (user: User, more: Partial<ListQuery> = {}): ListQuery => ({
  ...{ user_id: user.id, tags: [], within: null, max_bytes: 1e9, limit: 50 },
  ...more,
});
const memoryOf = (user: User, content: string): NewMemory => ({
  ...{ content, user_id: user.id, scope: 'work/1', tags: ['plan'], source: null, confidence: null },
  ...{ valid_from: null, valid_to: null, supersedes: [], extensions: {} },
});
const nth = <T>(all: readonly T[], n: number): T => all[n % all.length] as T;

/** Every verb of the provider, for users of all sizes. */
export async function measureVerbs(subject: Subject, rounds: number): Promise<Times[]> {
  const { hybrid, vector, users, questions, client, store } = subject;
  const [largest] = users as [User];
  const question = (round: number) => nth(questions, round);
  const { rows: ids } = await client.query<{ id: string }>(
    `select id from ${store.names.memories} tablesample system (1) repeatable (1) limit 1000`,
  );
  const { rows } = await client.query<{ id: string; created_at: Date }>(
    `select id, created_at from ${store.names.memories} where user_id = $1 order by created_at desc, id desc offset $2 limit 1`,
    [largest.id, Math.min(5_000, largest.memories >> 1)],
  );
  const deep = rows[0] as { id: string; created_at: Date };
  const after = { id: deep.id, created_at: deep.created_at.toISOString() };
  const search = (name: string, provider: WritableStore, user: User, more: Partial<SearchQuery> = {}): Timed => ({
    name: `search ${name}`,
    run: async (round) => provider.search?.(searchOf(user, question(round), more), call),
  });
  const list = (name: string, more: Partial<ListQuery> = {}): Timed => ({
    name: `list ${name}, of ${largest.memories}`,
    run: async () => hybrid.list?.(listOf(largest, more), call),
  });
  const ref = (id: string) => ({ id, users: null, within: null });
  const added: string[] = [];
  const verbs: Timed[] = [
    ...users.map((user) => search(`of ${user.memories}`, hybrid, user)),
    ...users.map((user) => search(`of ${user.memories}, vectors only`, vector, user)),
    search(`of ${largest.memories}, limit 100`, hybrid, largest, { limit: 100 }),
    search(`of ${largest.memories}, scope prefix`, hybrid, largest, { scope: 'work/projects' }),
    search(`of ${largest.memories}, tag`, hybrid, largest, { tags: ['health'] }),
    search(`of ${largest.memories}, under a grant`, hybrid, largest, { within: ['health/*'] }),
    list('first page'),
    list('page 101', { after }),
    list('scope glob', { scope: 'work/projects/*' }),
    list('rare scope', { scope: 'coding/preferences/3' }),
    list('tag', { tags: ['health'] }),
    list('time range', { since: '2025-06-01T00:00:00.000Z', until: '2025-06-30T00:00:00.000Z' }),
    { name: 'get', run: (round) => hybrid.get(ref(nth(ids, round * 7).id), call) },
    ...[HUNDRED, largest].map((user) => ({
      name: `add, user of ${user.memories}`,
      run: async (round: number) => {
        added.push((await hybrid.add({ input: memoryOf(user, question(round)) }, call)).id);
      },
    })),
    {
      name: 'update',
      run: async () => hybrid.update?.({ ref: ref(added.at(-1) as string), patch: { confidence: 0.5 } }, call),
    },
    ...[largest, HUNDRED].map((user) => ({
      name: `delete, user of ${user.memories}`,
      run: async () => hybrid.delete?.(ref(added.pop() as string), call),
    })),
  ];
  return timeAll(verbs, rounds);
}

/** The same user, with the same memories, in a store a hundred times smaller: pairs of times, large store first. */
export async function compareStores(large: Subject, small: WritableStore, rounds: number) {
  const { hybrid, questions } = large;
  const kinds: readonly (readonly [string, (provider: WritableStore, round: number) => Promise<unknown>])[] = [
    ['search', async (provider, round) => provider.search?.(searchOf(HUNDRED, nth(questions, round)), call)],
    ['list first page', async (provider) => provider.list?.(listOf(HUNDRED), call)],
    ['list scope glob', async (provider) => provider.list?.(listOf(HUNDRED, { scope: 'work/*' }), call)],
  ];
  const times = await timeAll(
    kinds.flatMap(([name, run]) => [hybrid, small].map((provider) => ({ name, run: (round) => run(provider, round) }))),
    rounds,
  );
  return kinds.map(([name], i) => ({ name, large: times[2 * i] as Times, small: times[2 * i + 1] as Times }));
}

export interface Crossing {
  readonly user: User;
  readonly exact: Times;
  readonly indexed: Times;
  readonly count: Times;
}

/** Exact search of a user's memories compared with search through the indexes, whichever the gateway would choose. */
export async function compareWays(subject: Subject, users: readonly User[], rounds: number): Promise<Crossing[]> {
  const crossings: Crossing[] = [];
  for (const user of users) {
    const ask = (round: number) => searchOf(user, nth(subject.questions, round));
    const rarities = new Map<string, Rarity>();
    for (const text of subject.questions) rarities.set(text, await count(subject, searchOf(user, text)));
    const [exact, indexed, counting] = (await timeAll(
      [
        { name: 'exact', run: (round) => rank(subject, RANKING, ask(round)) },
        { name: 'indexed', run: (round) => rank(subject, RANKING, ask(round), rarities.get(ask(round).text)) },
        { name: 'count', run: (round) => count(subject, ask(round)) },
      ],
      rounds,
    )) as [Times, Times, Times];
    crossings.push({ user, exact, indexed, count: counting });
  }
  return crossings;
}

export interface Recall {
  readonly user: User;
  readonly hybrid: number;
  readonly vector: number;
  /** The largest difference of the same memory's score. */
  readonly difference: number;
}

/** The share of the ten best of an exact search that the provider finds. A memory of the same score counts too. */
export async function measureRecall(subject: Subject, users: readonly User[]): Promise<Recall[]> {
  const recalls: Recall[] = [];
  for (const user of users) {
    let difference = 0;
    const recall = async (provider: WritableStore, ranking: RankingOptions) => {
      let [found, wanted] = [0, 0];
      for (const text of subject.questions) {
        const exact = await rank(subject, ranking, searchOf(user, text));
        const served = (await provider.search?.(searchOf(user, text), call)) ?? [];
        const scores = new Map(served.map(({ memory, score }) => [memory.id, score]));
        const last = exact.at(-1)?.score as number;
        wanted += exact.length;
        found += Math.min(exact.length, served.filter(({ score }) => score >= last).length);
        for (const { id, score } of exact) {
          difference = Math.max(
            difference,
            Math.abs((scores.get(id as string) ?? (score as number)) - (score as number)),
          );
        }
      }
      return found / wanted;
    };
    const hybrid = await recall(subject.hybrid, RANKING);
    recalls.push({ user, hybrid, vector: await recall(subject.vector, VECTORS), difference });
  }
  return recalls;
}

async function rank(subject: Subject, ranking: RankingOptions, query: SearchQuery, rarity?: Rarity): Promise<Row[]> {
  const [vector = null] = await subject.embedder.embed([query.text], 'query', call);
  const { text, values } = searchStatements(subject.store.names, ranking)({ query: { ...query, vector }, rarity });
  return subject.db.query(statement('small', text), values, call, rarity && indexSettings(rarity.rows));
}

async function count({ db, store }: Subject, query: SearchQuery): Promise<Rarity> {
  const { text, values } = countStatement(store.names, query, { keys: keysOf(RANKING, query), all: true });
  const [row] = await db.query(statement('small', text), values, call);
  return row as unknown as Rarity;
}
