import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { fixturesOf, GIVEN_TO_TABLES, loadPostgres } from '../mapped-collections/fixture.ts';
import { type EmptyDatabase, openEmptyDatabase } from './library-database.ts';

/* Tables that libraries filled (`test/mapped-collections/record`), served with the settings that doctor says. */

describe('tables that libraries filled', () => {
  let db: EmptyDatabase;
  beforeAll(async () => {
    db = await openEmptyDatabase();
  });
  afterAll(() => db.close());
  beforeEach(() => db.reset());

  describe.each(fixturesOf('postgres'))('$name', (fixture) => {
    it('holds what was given', async () => {
      await loadPostgres(db.sql, fixture);
      const taken = [...Object.keys(fixture.ids), ...fixture.refused.map((each) => each.split(':')[0])];
      expect([...new Set(taken)].sort()).toEqual([...GIVEN_TO_TABLES.keys()].sort());
      const [rows] = await db.sql<{ all: string }>(`select json_agg(t)::text as all from ${fixture.collection} as t`);
      for (const key of Object.keys(fixture.ids))
        expect(rows?.all).toContain(JSON.stringify(GIVEN_TO_TABLES.get(key)?.text).slice(1, 9));
    });
  });
});
