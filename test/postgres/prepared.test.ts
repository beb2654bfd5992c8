import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type Database, openConnections, statement } from '../../providers/postgres/client/connections.ts';
import { call, openStore, type Store } from './store.ts';

/** Characters of what one session keeps prepared, at most. */
const MOST = 96 * 1024;

/** As long as the search for some forty words. */
const padding = `/*${'x'.repeat(8_000)}*/`;
const shape = (n: number) => statement(`select $1::int + ${n} as n ${padding}`);
const HOT = statement('select $1::int as hot');
const KEPT = statement(
  'select name, prepare_time::text as time, length(statement)::int as length from pg_prepared_statements',
);

describe('what callers cause to be prepared', () => {
  let store: Store;
  let db: Database;
  beforeAll(async () => {
    store = await openStore();
    db = openConnections({
      config: { connectionString: store.url },
      connections: 1,
      prepared_statements: 'on',
      acquire_timeout_ms: 600_000,
      query_timeout_ms: 600_000,
    });
  });
  afterAll(async () => {
    await db.close();
    await store.close();
  });

  it('[Decision 29] is bounded, however many texts there are, and what is in use stays', async () => {
    await db.query(HOT, [0], call);
    // The embedded engine puts a prefix before the names of each connection.
    const hot = async () => (await db.query(KEPT, [], call)).find(({ name }) => (name as string).endsWith(HOT.name));
    const before = await hot();
    expect(before).toBeDefined();
    const numbers = Array.from({ length: 150 }, (_, n) => n);
    for (const n of numbers) {
      expect(await db.query(shape(n), [1], call)).toEqual([{ n: n + 1 }]);
      await db.query(HOT, [n], call);
    }
    expect(await hot()).toEqual(before);
    // All at once, so that some are given up while others that need them are under way.
    for (const again of [numbers, numbers.toReversed()]) {
      const answers = await Promise.all(again.map((n) => db.query(shape(n), [2], call)));
      expect(answers.map(([row]) => row?.n)).toEqual(again.map((n) => n + 2));
      await db.query(HOT, [0], call);
    }
    for (const n of numbers.slice(0, 20)) await db.query(shape(n), [1], call);
    const kept = await db.query(KEPT, [], call);
    expect(kept.reduce((sum, { length }) => sum + (length as number), 0)).toBeLessThanOrEqual(MOST);
    expect(kept.length).toBeGreaterThan(8);
  });
});
