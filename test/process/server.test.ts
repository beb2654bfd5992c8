import { randomBytes } from 'node:crypto';
import pg from 'pg';
import { beforeEach, describe, expect, onTestFinished, test } from 'vitest';
import { NO_SERVER, SERVER_URL } from '../support/postgres-server.ts';
import { freshUser } from '../support/subject.ts';
import { startGateway } from './gateway.ts';
import { NO_PGBOUNCER, startPgBouncer } from './pgbouncer.ts';

/** An empty database, without the extension, on the server; gone after the test. */
async function emptyDatabase(): Promise<string> {
  const name = `omp_test_${randomBytes(6).toString('hex')}`;
  const run = async (statement: string) => {
    const client = new pg.Client({ connectionString: SERVER_URL });
    await client.connect();
    await client.query(statement);
    await client.end();
  };
  await run(`create database ${name}`);
  onTestFinished(() => run(`drop database ${name} with (force)`));
  const url = new URL(SERVER_URL);
  url.pathname = `/${name}`;
  return url.href;
}

describe('on a PostgreSQL server', () => {
  beforeEach(({ skip }) => skip(SERVER_URL === '', NO_SERVER));

  test('five gateways start at once on an empty database and share it', async () => {
    const env = { DATABASE_URL: await emptyDatabase() };
    const gateways = await Promise.all(Array.from({ length: 5 }, () => startGateway({ env })));
    const user_id = freshUser();
    const added = await Promise.all(
      gateways.map(({ client }, i) => client.add({ user_id, content: `from gateway ${i}` })),
    );
    for (const { client, stop } of gateways) {
      const { items } = await client.list({ user_id });
      expect(items.map(({ id }) => id).sort()).toEqual(added.map(({ id }) => id).sort());
      expect((await stop()).status).toBe(0);
    }
  });

  test('the schemas of one database keep apart what two gateways store', async () => {
    const DATABASE_URL = await emptyDatabase();
    const [one, other] = await Promise.all(
      ['one', 'Other "schema"'].map((OMP_POSTGRES_SCHEMA) =>
        startGateway({ env: { DATABASE_URL, OMP_POSTGRES_SCHEMA } }),
      ),
    );
    const user_id = freshUser();
    await one?.client.add({ user_id, content: 'in one' });
    expect((await other?.client.list({ user_id }))?.items).toEqual([]);
  });

  test('every verb works through PgBouncer in transaction mode', async ({ skip }) => {
    skip(NO_PGBOUNCER !== '', NO_PGBOUNCER);
    const env = { DATABASE_URL: await startPgBouncer(await emptyDatabase()) };
    // Two gateways share the pool's sessions and meet each other's prepared statements.
    const gateways = await Promise.all([startGateway({ env }), startGateway({ env })]);
    const user_id = freshUser();
    const life = async (i: number): Promise<string | undefined> => {
      const { client } = gateways[i % 2] as (typeof gateways)[number];
      const { id } = await client.add({ user_id, content: `pooled ${i}`, tags: [`t${i}`], scope: 'a/b' });
      expect(await client.get(id)).toMatchObject({ content: `pooled ${i}`, tags: [`t${i}`] });
      expect(await client.update(id, { content: `pooled ${i} changed` })).toMatchObject({
        content: `pooled ${i} changed`,
      });
      expect((await client.list({ user_id, tag: `t${i}` })).items.map((memory) => memory.id)).toEqual([id]);
      const [hit] = await client.search({ user_id, q: `${i} changed`, scope: 'a' });
      expect(hit?.memory.content).toBe(`pooled ${i} changed`);
      if (i % 2 === 0) return id;
      await client.remove(id);
      expect((await client.ask(client.byId(id))).status).toBe(404);
      return undefined;
    };
    await life(0);
    const kept = await Promise.all(Array.from({ length: 200 }, (_, i) => life(i + 1)));
    expect(kept.filter((id) => id !== undefined)).toHaveLength(100);
    for (const { client, stop } of gateways) {
      expect((await client.list({ user_id, limit: 500 })).items).toHaveLength(101);
      expect(await stop()).toMatchObject({ status: 0, stderr: '' });
    }
  });
});
