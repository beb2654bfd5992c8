import pg from 'pg';
import { describe, expect, it, onTestFinished } from 'vitest';
import type { Embedder, RankingOptions, ScoreParts, SearchQuery, Within } from '#contract';
import { toUnitHalf } from '#ranking';
import { newIdentity, withinMatcher } from '#toolbox';
import { createStatements } from '../../providers/postgres/tables/memory-statements.ts';
import { keysOf, searchStatements } from '../../providers/postgres/tables/search-statement.ts';
import { countStatement, createRarity } from '../../providers/postgres/tables/search-strategy.ts';
import { randomNumbers, randomVector } from '../ranking/random-vectors.ts';
import { hashingEmbedder } from '../support/hashing-embedder.ts';
import { NO_SERVER, SERVER_URL } from '../support/postgres-server.ts';
import type { WritableStore } from '../support/stores.ts';
import { recordingLog } from '../support/subject.ts';
import { call, listOf, memoryOf, refTo, searchFor, storeForEach, type TestDatabase, until } from './store.ts';

/** More than the candidates an index scan is asked for, so that something is left out. */
const ROWS = 520;
const THRESHOLD = 50;
const WORDS = 'amber birch cedar delta ember fjord grove heath inlet jetty knoll larch'.split(' ');
const SCOPES = [null, 'work', 'work/mail', 'home', 'home/garden'];

const store = storeForEach();

const open = (more: Parameters<TestDatabase['open']>[0] = {}) =>
  store.open({ ...more, options: { large_user_rows: THRESHOLD, ...more.options } });

const fill = async (provider: WritableStore, user: string, rows: number, seed = 1) => {
  const random = randomNumbers(seed);
  const pick = <T>(from: readonly T[]): T => from[Math.floor(random() * from.length)] as T;
  const inputs = Array.from({ length: rows }, (_, i) =>
    memoryOf(user, `${pick(WORDS)} ${pick(WORDS)} ${pick(WORDS)} note ${i}`, {
      scope: pick(SCOPES),
      tags: random() < 0.3 ? ['kept'] : [],
    }),
  );
  return Promise.all(inputs.map((input) => provider.add({ input }, call)));
};

const query = (user_id: string, text: string, more: Partial<SearchQuery> = {}) =>
  searchFor(user_id, text, { limit: 20, ...more });
const found = async (provider: WritableStore, asked: SearchQuery) =>
  (await provider.search?.(asked, call))?.map(({ memory, score }) => ({ id: memory.id, score })) ?? [];

/** The same search over every memory of the user, past any index. */
const exactly = async (asked: SearchQuery, embedder: Embedder, mode: RankingOptions['mode'] = 'hybrid') => {
  const [vector = null] = mode === 'keyword' ? [] : await embedder.embed([asked.text], 'query', call);
  const { text, values } = searchStatements(store.names, { mode, keyword_weight: 0.5 })({
    query: { ...asked, vector },
  });
  return (await store.sql<{ id: string; score: number }>(text, values)).map(({ id, score }) => ({ id, score }));
};

const moved = (user: string): Promise<void> =>
  until(
    async () =>
      (await store.sql(`select from ${store.names.largeUsers} where ready and user_id = $1`, [user])).length > 0,
  );

/** Searches past the threshold, and waits until the user's memories are in the indexes. */
const makeLarge = async (provider: WritableStore, user: string) => {
  await found(provider, query(user, 'amber'));
  await moved(user);
};

const QUESTIONS: readonly Partial<SearchQuery>[] = [
  {},
  { scope: 'work' },
  { scope: 'home/gar' },
  { tags: ['kept'] },
  { tags: ['kept'], scope: 'wo' },
  { tags: ['missing'] },
  { limit: 1 },
  { limit: 450 },
  { max_content_bytes: 25 },
  { within: ['work*'] },
  { within: ['*/mail', 'home'] },
  { within: ['home*'], tags: ['kept'] },
  { within: ['work'], scope: 'work' },
  { within: [], tags: ['kept'] },
];

describe('a user with many memories', () => {
  it.each(['hybrid', 'vector', 'keyword'] as const)(
    'is answered and explained alike by index and exactly, %s',
    async (mode) => {
      const embedder = hashingEmbedder();
      const provider = await open({ mode });
      await fill(provider, 'u', ROWS);
      await makeLarge(provider, 'u');
      for (const text of ['amber', 'cedar birch note 17', 'the fjord of the larch', 'the', 'zzz', 'note']) {
        for (const more of QUESTIONS) {
          const asked = query('u', text, more);
          const exact = await exactly(asked, embedder, mode);
          expect(await found(provider, asked), JSON.stringify(asked)).toEqual(exact);
          expect(await found(provider, { ...asked, explain: true }), JSON.stringify(asked)).toEqual(exact);
          const { within, max_content_bytes = 1_000 } = asked;
          for (const { memory, score, parts } of (await provider.search?.({ ...asked, explain: true }, call)) ?? []) {
            expect(withinMatcher(within)(memory.scope), JSON.stringify(asked)).toBe(true);
            expect(Buffer.byteLength(memory.content)).toBeLessThanOrEqual(max_content_bytes);
            const { cosine, coverage, weights } = parts as ScoreParts;
            expect(weights.vector * cosine + weights.keyword * coverage, JSON.stringify(asked)).toBeCloseTo(score, 5);
          }
        }
      }
    },
  );

  it('is searched through the index from then on, also by a gateway started later, unless its walk would take longer', async () => {
    const mover = await open();
    const [first] = await fill(mover, 'u', ROWS);
    await makeLarge(mover, 'u');
    // Taken out of the indexes from behind, a memory is no longer seen by whoever looks only there.
    await store.sql(`update ${store.names.memories} set large = false where id = $1`, [first?.id]);
    const asked = query('u', first?.content ?? '');
    const isSeen = async (provider: WritableStore) => (await found(provider, asked)).some(({ id }) => id === first?.id);
    await until(async () => !(await isSeen(mover)));
    expect((await exactly(asked, hashingEmbedder()))[0]).toEqual({ id: first?.id, score: 1 });
    expect(await isSeen(await open())).toBe(false);
    // Where the index holds so many other rows.
    const isSeenWith = async (indexed: number) => {
      const index = `'${store.names.schema}.memories_embedding'::regclass`;
      await store.sql(`update pg_class set reltuples = ${indexed} where oid = ${index}`);
      return isSeen(await open());
    };
    expect(await isSeenWith(1_000_000)).toBe(true);
    expect(await isSeenWith(ROWS)).toBe(false);
  });

  it('is not moved below the threshold, nor are other users', async () => {
    const provider = await open();
    await fill(provider, 'small', THRESHOLD);
    await fill(provider, 'large', THRESHOLD + 1);
    await found(provider, query('small', 'amber'));
    await makeLarge(provider, 'large');
    await found(provider, query('small', 'amber'));
    expect(await store.sql(`select user_id, ready from ${store.names.largeUsers}`)).toEqual([
      { user_id: 'large', ready: true },
    ]);
    const flagged = await store.sql(`select distinct user_id, large from ${store.names.memories} order by user_id`);
    expect(flagged).toEqual([
      { user_id: 'large', large: true },
      { user_id: 'small', large: false },
    ]);
  });

  it('is judged by its own words, not by those of another one', async () => {
    const provider = await open();
    await fill(provider, 'u', ROWS);
    await Promise.all(
      Array.from({ length: ROWS }, (_, i) => provider.add({ input: memoryOf('v', `amber only ${i}`) }, call)),
    );
    await makeLarge(provider, 'u');
    await makeLarge(provider, 'v');
    for (const user of ['u', 'v']) {
      const asked = query(user, 'amber birch');
      expect(await found(provider, asked)).toEqual(await exactly(asked, hashingEmbedder()));
    }
  });

  it('sees what was added, updated and deleted afterwards', async () => {
    const provider = await open();
    const all = await fill(provider, 'u', ROWS);
    await makeLarge(provider, 'u');
    const added = await provider.add({ input: memoryOf('u', 'quartz added later', { scope: 'work' }) }, call);
    const changed = all[3] as (typeof all)[0];
    await provider.update?.({ ref: refTo(changed.id), patch: { content: 'quartz put in its place' } }, call);
    const gone = all[5] as (typeof all)[0];
    expect(await provider.delete?.(refTo(gone.id), call)).toBe(true);

    const ids = (await found(provider, query('u', 'quartz'))).map(({ id }) => id);
    expect(ids.slice(0, 2).sort()).toEqual([added.id, changed.id].sort());
    // This one has counted no words yet.
    const later = await open();
    for (const text of ['quartz', changed.content, gone.content]) {
      for (const more of QUESTIONS) {
        const asked = query('u', text, more);
        expect(await found(later, asked)).toEqual(await exactly(asked, hashingEmbedder()));
        expect((await found(provider, asked)).map(({ id }) => id)).not.toContain(gone.id);
      }
    }
  });

  it('is answered alike by a gateway that does not know yet', async () => {
    const [mover, other] = [await open(), await open()];
    await fill(mover, 'u', ROWS);
    await makeLarge(mover, 'u');
    const late = await other.add({ input: memoryOf('u', 'opal added elsewhere') }, call);
    for (const more of QUESTIONS) {
      const asked = query('u', 'opal amber note', more);
      expect(await found(other, asked)).toEqual(await found(mover, asked));
    }
    expect((await found(mover, query('u', 'opal')))[0]?.id).toBe(late.id);
  });

  it('is moved to the end by another gateway when the first one stopped half way', async () => {
    const provider = await open();
    await fill(provider, 'u', ROWS);
    await store.sql(`insert into ${store.names.largeUsers} values ('u', false)`);
    await store.sql(
      `update ${store.names.memories} set large = true where id in (select id from ${store.names.memories} limit 100)`,
    );
    expect(await found(provider, query('u', 'amber'))).toEqual(await exactly(query('u', 'amber'), hashingEmbedder()));
    await moved('u');
    expect(await store.sql(`select from ${store.names.memories} where not large`)).toEqual([]);
  });
});

describe('words that thousands of memories hold', () => {
  const MANY = 5_000;
  /** Word, and how many memories lie between two that hold it. */
  const EVERY = { amber: 2, birch: 3, cedar: 7, quartz: 900 };
  const keysFor = (word: string) => keysOf({ mode: 'keyword', keyword_weight: 0.5 }, query('u', word));
  const vectorOf = async (text: string) => (await hashingEmbedder().embed([text], 'query', call))[0] ?? null;

  it.each(['hybrid', 'keyword'] as const)('count as far as they matter, %s', async (mode) => {
    await (await open()).close();
    const { dimensions } = hashingEmbedder();
    const random = `(select array_agg(sin(n * 7.3 * i + i)) from generate_series(1, ${dimensions}) as i)`;
    const keys = Object.entries(EVERY).map(([word, every]) => `case when n % ${every} = 0 then ${keysFor(word)} end`);
    // Without it the nearest are those indeed: what is looked at here is the words.
    await store.sql(`drop index ${store.names.schema}.memories_embedding`);
    await store.sql(
      `insert into ${store.names.memories} (id, user_id, content, tags, created_at, updated_at, keywords, embedding, large)
       select 'mem_' || n, 'u', n::text, case when n % 2 = 0 then '{even}' else '{}' end::text[], now(), now(), array_remove(array[${keys.join(', ')}]::bigint[], null), ${random}::real[]::${store.names.halfvec}, true
       from generate_series(1, ${MANY}) as n; analyze ${store.names.memories}`,
    );
    const ranking = { mode, keyword_weight: 0.5 };
    const QUERIES = 'amber, amber birch, cedar amber, amber birch cedar, quartz amber, quartz birch unknown';
    for (const text of QUERIES.split(', ')) {
      const asked = query('u', text);
      const vector = mode === 'keyword' ? null : await vectorOf(text);
      const counts = countStatement(store.names, asked, { keys: keysOf(ranking, asked), all: true });
      const [rarity] = await store.sql<{ rows: number; holding: number[] }>(counts.text, counts.values);
      for (const [tags, matching] of [
        [[], false],
        [['even'], false],
        [['even'], true],
      ] as const) {
        const filtered = { ...asked, tags: [...tags] };
        const search = { query: { ...filtered, vector }, rarity, matching };
        const { text: indexed, values } = searchStatements(store.names, ranking)(search);
        const hits = await store.sql<{ id: string; score: number }>(indexed, values);
        const found = hits.map(({ id, score }) => ({ id, score }));
        expect(found, `${text} ${tags} ${matching}`).toEqual(await exactly(filtered, hashingEmbedder(), mode));
      }
    }
  });
});

describe('a filtered list of a large user', () => {
  const FILTERS = [
    { tags: ['often'] },
    { tags: ['seldom'] },
    { tags: ['seldom', 'often'] },
    { tags: ['theirs'] },
    { scope: 'home' },
    { scope: 'ho*' },
    { scope: '*e' },
    { scope: 'h*', tags: ['often'] },
    { tags: ['often'], within: ['work'] },
    { tags: ['often'], since: '2026-01-01T01:00:00.000Z', until: '2026-01-01T01:10:00.000Z' },
  ];

  it('finds the same as without its indexes, on every page', async () => {
    await (await open()).close();
    // Rare ones are the oldest, behind those that are read in the order of time.
    await store.sql(
      `insert into ${store.names.memories} (id, user_id, content, scope, tags, created_at, updated_at, keywords, large)
       select 'mem_' || who || '_' || n, who, '', case when n < 30 then 'home' when n % 3 = 0 then 'work' end,
         array_remove(array[case when n % 40 = 0 then 'often' end, case when n < 60 then 'seldom' end, case when who = 'v' then 'theirs' end], null),
         timestamptz '2026-01-01 00:00Z' + n / 2 * interval '1 second', now(), '{}', true
       from generate_series(1, 5000) as n, unnest('{u,v}'::text[]) as who`,
    );
    const { list } = createStatements(store.names, false);
    const page = async (query: Parameters<typeof list>[0], large: boolean, within?: 'bytes') => {
      const { statement, values } = list(query, { large, within });
      return store.sql<{ id: string; created_at: number }>(statement.text, values);
    };
    for (const filter of FILTERS) {
      let after: { created_at: string; id: string } | undefined;
      for (let pages = 0; pages < 4; pages++) {
        const query = listOf('u', { limit: 20, ...filter, ...(after && { after }) });
        const rows = await page(query, true);
        expect(rows, JSON.stringify(query)).toEqual(await page(query, false));
        expect((await page(query, true, 'bytes')).map(({ id }) => id)).toEqual(rows.map(({ id }) => id));
        const last = rows.at(-1);
        if (!last) break;
        after = { created_at: new Date(last.created_at).toISOString(), id: last.id };
      }
    }
  });
});

it.each([
  ['as it is', []],
  ['after a vacuum', ['vacuum']],
])('a large user who deleted a lot still gets full pages of what is left, %s', async (_, after) => {
  const provider = await open();
  const all = await fill(provider, 'u', ROWS);
  await makeLarge(provider, 'u');
  // Counted and planned before, as in a gateway that runs.
  for (let i = 0; i < 6; i++) await found(provider, query('u', 'amber birch'));
  const kept = all.filter((_, i) => i % 13 === 0);
  const gone = all.filter((_, i) => i % 13 !== 0).map(({ id }) => id);
  await Promise.all(gone.map((id) => provider.delete?.(refTo(id), call)));
  for (const command of after) await store.sql(`${command} ${store.names.memories}`);
  const later = await open();
  for (const text of ['amber birch', 'fjord', 'zzz']) {
    for (const more of [{}, { limit: 100 }, { scope: 'work' }]) {
      const asked = query('u', text, more);
      const exact = await exactly(asked, hashingEmbedder());
      expect(await found(later, asked)).toEqual(exact);
      // This one takes words for as rare as they were, which may change the order.
      const hits = (await found(provider, asked)).map(({ id }) => id);
      expect(hits).toHaveLength(exact.length);
      expect(kept.map(({ id }) => id)).toEqual(expect.arrayContaining(hits));
    }
  }
});

describe('the rarity of words', () => {
  const rarityOf = (counted: string[]) =>
    createRarity(store.names, async (text, values) => {
      counted.push(String(values[0]));
      return store.sql(text, values);
    });
  const keys = (text: string) => keysOf({ mode: 'hybrid', keyword_weight: 0.5 }, query('u', text));

  it('[Decision 21] is counted once, for new words alone when others are known, and for each grant over what it sees', async () => {
    const provider = await open();
    const all = await fill(provider, 'u', ROWS);
    await makeLarge(provider, 'u');
    const counted: string[] = [];
    const ask = rarityOf(counted);
    const of = (text: string, within: Within = null) => ask(query('u', text, { within }), keys(text), call);
    const held = (word: string, visible = all) => visible.filter(({ content }) => content.includes(word)).length;
    for (let turn = 0; turn < 2; turn++) expect(await of('amber')).toEqual({ rows: ROWS, holding: [held('amber')] });
    expect(await of('birch amber')).toEqual({ rows: ROWS, holding: [held('birch'), held('amber')] });
    expect(counted).toEqual([`{${keys('amber')}}`, `{${keys('birch')}}`]);
    for (const within of [['work*'], ['home/*'], ['*/mail', 'home'], []]) {
      const visible = all.filter(({ scope }) => withinMatcher(within)(scope));
      const rarity = { rows: visible.length, holding: [held('amber', visible)] };
      expect(await of('amber', within), JSON.stringify(within)).toEqual(rarity);
    }
  });
});

describe('an index scan that gives up', () => {
  /** Two users far apart: whoever searches near the one in the other's memories meets all of the first before any of the second. */
  const apart: Embedder = {
    model: 'two-clusters',
    dimensions: 16,
    embed: async (texts) =>
      texts.map((text) => {
        const [cluster, seed] = text.split(' ').map(Number);
        return toUnitHalf(randomVector(16, seed ?? 0).map((x, i) => (i === cluster ? 10 : x)));
      }),
    close: async () => {},
  };
  const GIVE_UP = '-c hnsw.max_scan_tuples=100 -c enable_seqscan=off -c enable_sort=off';

  it.skipIf(SERVER_URL === '')(`still answers in full${SERVER_URL === '' ? `: ${NO_SERVER}` : ''}`, async () => {
    const url = new URL(store.url);
    url.searchParams.set('options', GIVE_UP);
    const provider = await open({ url: url.href, mode: 'vector', embedder: apart });
    const add = (user: string, cluster: number) =>
      Promise.all(
        Array.from({ length: ROWS }, (_, i) => provider.add({ input: memoryOf(user, `${cluster} ${i}`) }, call)),
      );
    await add('here', 0);
    await add('there', 1);
    await makeLarge(provider, 'here');
    await makeLarge(provider, 'there');
    for (const text of ['1 7', '0 7']) {
      expect(await found(provider, query('here', text))).toEqual(await exactly(query('here', text), apart, 'vector'));
    }
  });
});

describe('a text without a direction', () => {
  const silent = hashingEmbedder();
  const embedder: Embedder = {
    ...silent,
    embed: async (texts, purpose, by) =>
      (await silent.embed(texts, purpose, by)).map((vector, i) =>
        texts[i]?.startsWith('silent') ? new Float32Array(vector.length) : vector,
      ),
  };

  it.each(['hybrid', 'vector'] as const)('is like nothing, as a memory and as a query, %s', async (mode) => {
    const provider = await open({ mode, embedder });
    const texts = ['silent amber', 'amber', 'silent', 'birch'];
    for (const text of texts) await provider.add({ input: memoryOf('u', text) }, call);
    const scores = async (text: string) =>
      Object.fromEntries(
        ((await provider.search?.(query('u', text), call)) ?? []).map(({ memory, score }) => [memory.content, score]),
      );
    const heard = await scores('amber');
    expect(heard).toMatchObject({ amber: 1, silent: 0, 'silent amber': mode === 'hybrid' ? 0.5 : 0 });
    expect(Object.keys(heard)).toHaveLength(texts.length);
    const unheard = await scores('silent');
    expect(unheard).toMatchObject({ amber: 0, birch: 0, silent: mode === 'hybrid' ? 0.5 : 0 });
  });

  it('is found in the memories of a large user as well', async () => {
    const provider = await open({ mode: 'vector', embedder });
    const { id } = await provider.add({ input: memoryOf('u', 'silent one', { scope: 'quiet' }) }, call);
    await fill(provider, 'u', ROWS);
    await makeLarge(provider, 'u');
    const asked = query('u', 'amber', { scope: 'quiet' });
    expect(await found(provider, asked)).toEqual([{ id, score: 0 }]);
    // Nothing is near it, so the newest come first.
    const unheard = query('u', 'silent');
    expect(await found(provider, unheard)).toEqual(await exactly(unheard, embedder, 'vector'));
  });
});

describe.skipIf(SERVER_URL === '')(`the move${SERVER_URL === '' ? `: ${NO_SERVER}` : ''}`, () => {
  it('waits for an add that looked before it and commits after it', async () => {
    const provider = await open();
    await fill(provider, 'u', THRESHOLD + 1);
    const memory = { ...memoryOf('u', 'slow add'), ...newIdentity(), embedding_model: null, status: null };
    const { statement, values } = createStatements(store.names, true).insert(
      {
        memory: { ...memory, updated_at: memory.created_at },
        bucket: 0,
        vector: (await hashingEmbedder().embed(['slow add'], 'document', call))[0] ?? null,
        keywords: [],
      },
      call,
    );
    const slow = new pg.Client({ connectionString: store.url });
    onTestFinished(() => slow.end());
    await slow.connect();
    await slow.query('begin');
    await slow.query(statement.text, [...values]);

    const search = () => found(provider, query('u', 'amber'));
    const ready = async () => (await store.sql(`select from ${store.names.largeUsers} where ready`)).length > 0;
    const waits = `select from pg_locks where relation = '${store.names.largeUsers}'::regclass and not granted`;
    // Either the move waits for its lock, or it is (wrongly) through. One that gave up is tried again by a later search.
    await until(async () => {
      await search();
      return (await store.sql(waits)).length > 0 || (await ready());
    });
    await slow.query('commit');
    await until(async () => {
      await search();
      return ready();
    });
    expect(await store.sql(`select id from ${store.names.memories} where not large`)).toEqual([]);
    expect((await found(provider, query('u', 'slow add')))[0]?.id).toBe(memory.id);
  });

  it('loses none of the adds that race with it', async () => {
    const log = recordingLog();
    const gateways = await Promise.all([open({ log }), open({ log }), open({ log })]);
    await fill(gateways[0] as WritableStore, 'u', THRESHOLD + 1);
    let ready = false;
    const adders = gateways.map(async (gateway, i) => {
      // Each gateway goes on adding from several connections until the move is over.
      for (let round = 0; !ready; round++) await fill(gateway, 'u', 8, 1000 * i + round);
    });
    await Promise.all(gateways.map((gateway) => found(gateway, query('u', 'amber'))));
    await moved('u');
    ready = true;
    await Promise.all(adders);
    const [count] = await store.sql<{ all: string; flagged: string }>(
      `select count(*) as all, count(*) filter (where large) as flagged from ${store.names.memories}`,
    );
    expect(Number(count?.all)).toBeGreaterThan(THRESHOLD + 1);
    expect(count?.flagged).toBe(count?.all);
  });
});
