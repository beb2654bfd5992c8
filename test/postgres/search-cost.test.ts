import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { analyse, MAX_TERMS } from '#ranking';
import { toKeys } from '../../providers/postgres/sql/values.ts';
import { callBy } from '../support/requests.ts';
import type { WritableStore } from '../support/stores.ts';
import { call, memoryOf, openStore, refTo, type TestDatabase } from './store.ts';

let store: TestDatabase;
let provider: WritableStore;
beforeAll(async () => {
  store = await openStore();
  provider = await store.open({ mode: 'keyword' });
});
afterAll(() => store.close());

/** As many CJK characters, none of them twice in a row and few pairs twice: nearly two terms each. */
const chinese = (length: number, seed: number): string => {
  let state = seed;
  const next = () => {
    state = (Math.imul(state, 1_103_515_245) + 12_345) >>> 0;
    return 0x4e00 + ((state >>> 8) % 20_000);
  };
  return Array.from({ length }, () => String.fromCodePoint(next())).join('');
};

const search = (user_id: string, text: string) =>
  provider.search?.({ user_id, text, tags: [], within: null, limit: 10, max_bytes: 1e9 }, call) ??
  Promise.reject(new Error('no search'));

/** Turns of this process's event loop while something runs: a measure of its length that a busy machine stretches alike. */
const turnsDuring = async (work: () => Promise<unknown>): Promise<number> => {
  let turns = 0;
  let running = true;
  const done = work().finally(() => {
    running = false;
  });
  while (running) {
    turns++;
    await new Promise((resolve) => setImmediate(resolve));
  }
  await done;
  return turns;
};

describe('[Decision 29] the cost of a search', () => {
  it('keeps a bounded number of terms of one memory, the first', async () => {
    const content = chinese(20_000, 1);
    const { id } = await provider.add({ input: memoryOf('long', content) }, call);
    const [row] = await store.sql<{ keywords: string[] }>(
      `select keywords::text[] as keywords from ${store.names.memories} where id = $1`,
      [id],
    );
    expect(row?.keywords).toEqual(toKeys('long', analyse(content)).map(String));
    expect(row?.keywords).toHaveLength(MAX_TERMS);
  });

  it('does not grow with the number of terms asked for, nor with what was stored before there was a bound', async () => {
    const text = chinese(300, 2);
    for (let i = 0; i < 12; i++) await provider.add({ input: memoryOf('flood', `${text[i]} ${i}`) }, call);
    // Random terms, as an older gateway kept them of 1 MiB of Chinese.
    await store.sql(
      `update ${store.names.memories} set keywords = keywords || array(
         select (random() * 9e15)::bigint from generate_series(1, 100000) where id is not null) where user_id = 'flood'`,
    );
    const [few, many] = ['zzz', text];
    await search('flood', few);
    await search('flood', many);
    // Before, each term asked for was compared with each one stored, twice: about 250 times as long.
    const turns = async (asked: string) =>
      Math.min(...[await turnsDuring(() => search('flood', asked)), await turnsDuring(() => search('flood', asked))]);
    const harmless = await turns(few);
    expect(await turns(many)).toBeLessThan(40 * Math.max(harmless, 10));
    expect(await search('flood', text)).toHaveLength(10);
  });

  it('reads no more terms than a bound over all memories of the user, the first of each', async () => {
    const ROWS = 1_200;
    const [early, late] = ['zq1', 'zq2'].map((term) => toKeys('hoard', [term])[0]);
    const first = await provider.add({ input: memoryOf('hoard', 'something else') }, call);
    await store.sql(
      `update ${store.names.memories} set keywords = array(select (random() * 9e15)::bigint from generate_series(1, 3000))
         || $1::bigint || array(select (random() * 9e15)::bigint from generate_series(1, 900)) || $2::bigint
         || array(select (random() * 9e15)::bigint from generate_series(1, 194)) where id = $3`,
      [early, late, first.id],
    );
    const columns = await store.sql<{ name: string }>(
      `select quote_ident(attname) as name from pg_attribute where attrelid = '${store.names.memories}'::regclass and attnum > 0
         and not attisdropped and attgenerated = '' and attname <> 'id'`,
    );
    const names = columns.map(({ name }) => name).join(', ');
    const copies = (rows: number) =>
      store.sql(
        `insert into ${store.names.memories} (id, ${names}) select 'mem_copy_' || $1::text || '_' || n, ${names}
           from ${store.names.memories}, generate_series(1, $1::int) as n where id = $2`,
        [rows, first.id],
      );
    await copies(900);
    expect(await search('hoard', 'zq1')).toHaveLength(10);
    expect(await search('hoard', 'zq2')).toHaveLength(10);
    // Now there are more than four million: 3,333 of each are read.
    await copies(ROWS - 901);
    expect(await search('hoard', 'zq1')).toHaveLength(10);
    expect(await search('hoard', 'zq2')).toHaveLength(0);
  });

  it('leaves others their answers while one caller searches sixteen times at once', async () => {
    const text = chinese(300, 3);
    for (let i = 0; i < 12; i++)
      await provider.add({ input: memoryOf('crowd', `${text[i]} ${chinese(3_000, i)}`) }, call);
    const { id } = await provider.add({ input: memoryOf('other', 'a note') }, call);
    const other = callBy({ id: 'other', app: 'other' });
    let searched = 0;
    const searches = Promise.all(
      Array.from({ length: 16 }, async () => {
        await search('crowd', text);
        searched++;
      }),
    );
    let answers = 0;
    for (; searched < 16; answers++) await provider.get(refTo(id), other);
    await searches;
    // Before, the first had to wait for nearly all of them.
    expect(answers).toBeGreaterThanOrEqual(6);
  });
});
