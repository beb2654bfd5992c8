import pg from 'pg';
import { beforeEach, describe, expect, it } from 'vitest';
import type { Finding } from '#contract';
import { examine } from '../../providers/postgres/mapped/examine.ts';
import { Mapping } from '../../providers/postgres/mapped/mapping.ts';
import { findingsOn, remediesOf, type TestDatabase, testDatabase, told } from '../postgres/databases.ts';
import { hashingEmbedder } from '../support/hashing-embedder.ts';
import { NO_SERVER, SERVER_URL } from '../support/postgres-server.ts';

const DIMENSIONS = 8;
const ROWS = 2_400;

/** Half of the rows are of one user; JSON holds the owner, and a time too. */
async function filled(): Promise<TestDatabase> {
  const db = await testDatabase();
  await db.sql('create extension vector');
  await db.sql(
    `create table docs (id text primary key, content text, metadata jsonb, made timestamptz, embedding vector(${DIMENSIONS}))`,
  );
  await db.sql(
    `insert into docs select 'doc-' || n, 'text ' || n, jsonb_build_object('user_id', case when n % 2 = 0 then 'secret-user' else 'user-' || n % 300 end,
        'made', to_char(timestamp '2024-01-01' + n * interval '1 minute', 'YYYY-MM-DD"T"HH24:MI:SS"Z"')),
      timestamptz '2024-01-01' + n * interval '1 minute', (select array_agg(random()) from generate_series(1, ${DIMENSIONS}) where n = n)::vector
      from generate_series(1, ${ROWS}) as n`,
  );
  await db.sql('create index on docs using gin (metadata jsonb_path_ops)');
  await db.sql('analyze docs');
  return db;
}

const MAPPING = { preset: 'custom', table: 'docs', id: 'id', content: 'content', embedding: 'embedding' };
const OWNED = { ...MAPPING, user_id: `metadata->>'user_id'` };

const look = (db: TestDatabase, mapping: object) =>
  findingsOn(
    db.url,
    { mapping },
    { ranking: { mode: 'vector', keyword_weight: 0.5 }, embedder: hashingEmbedder(DIMENSIONS) },
  );
const lists = (findings: readonly Finding[]) => told(findings, 'warning').filter((each) => each.includes(' a list '));
/** By verb, the rows that doctor read. */
const costs = (findings: readonly Finding[]) => {
  const line = told(findings, 'ok').find((each) => each.includes(' this many rows are read: ')) ?? '';
  return Object.fromEntries(
    [...line.matchAll(/(get|list|search) (\d+) \(/g)].map(([, verb, rows]) => [verb, Number(rows)]),
  );
};

describe('doctor on the user with most rows', () => {
  beforeEach(({ skip }) => skip(SERVER_URL === '', NO_SERVER));

  it.each([
    ['time', { ...OWNED, created_at: 'made' }, `((("metadata" ->> 'user_id')), "made", "id");`],
    ['id', OWNED, `((("metadata" ->> 'user_id')), "id");`],
  ])(
    '[Decision 25] reads what get, list and search read, and suggests the index of lists by %s, which helps',
    async (_, mapping, keys) => {
      const db = await filled();
      const before = await look(db, mapping);
      expect(costs(before).get).toBe(1);
      expect(Math.min(costs(before).list as number, costs(before).search as number)).toBeGreaterThanOrEqual(ROWS / 2);
      expect(lists(before)).toEqual([expect.stringContaining('no index has the order of lists')]);
      const remedies = remediesOf(before.filter(({ message }) => message.includes(' a list ')));
      expect(remedies).toEqual([expect.stringContaining('create index concurrently'), 'analyze "public"."docs";']);
      expect(remedies[0]).toContain(keys);
      for (const sql of remedies) await db.sql(sql);
      const after = await look(db, mapping);
      expect(lists(after)).toEqual([]);
      expect(costs(after).list).toBeLessThan(4 * 50 + 4);
      expect(JSON.stringify([before, after])).not.toContain('secret-user');
    },
  );

  it('[Decision 25] says what times as texts cost', async () => {
    const db = await filled();
    const findings = await look(db, { ...OWNED, created_at: `metadata->>'made'` });
    expect(lists(findings)).toEqual([expect.stringContaining('no timestamptz, timestamp or date')]);
  });

  it('[Decision 25] a start without any index prints the one to create', async () => {
    const db = await filled();
    await db.sql('drop index docs_metadata_idx');
    const line = `create index concurrently on "public"."docs" ((("metadata" ->> 'user_id')), "id");`;
    const findings = await look(db, OWNED);
    expect(costs(findings).list).toBeGreaterThanOrEqual(ROWS);
    expect(remediesOf(findings)).toContain(line);
    const client = new pg.Client({ connectionString: db.url });
    await client.connect();
    const { warnings } = await examine(client, Mapping.parse(OWNED), hashingEmbedder(DIMENSIONS));
    await client.end();
    expect(warnings).toContainEqual(expect.stringContaining(`every request reads the whole table; run: ${line} `));
  });
});
