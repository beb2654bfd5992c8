import { beforeEach, describe, expect, test } from 'vitest';
import { testDatabase } from '../postgres/databases.ts';
import { eventually } from '../support/eventually.ts';
import { expectError } from '../support/expect-error.ts';
import { NO_SERVER, SERVER_URL } from '../support/postgres-server.ts';
import { freshUser } from '../support/subject.ts';
import { startGateway } from './gateway.ts';
import { NO_PGBOUNCER, startPgBouncer } from './pgbouncer.ts';

describe('on a PostgreSQL server', () => {
  beforeEach(({ skip }) => skip(SERVER_URL === '', NO_SERVER));

  test('five gateways start at once on an empty database and share it', async () => {
    const env = { DATABASE_URL: (await testDatabase()).url };
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

  test('gateways with different schemas of one database store separate memories', async () => {
    const { url: DATABASE_URL } = await testDatabase();
    const [one, other] = await Promise.all(
      ['one', 'Other "schema"'].map((OMP_POSTGRES_SCHEMA) =>
        startGateway({ env: { DATABASE_URL, OMP_POSTGRES_SCHEMA } }),
      ),
    );
    const user_id = freshUser();
    await one?.client.add({ user_id, content: 'in one' });
    expect((await other?.client.list({ user_id }))?.items).toEqual([]);
  });

  test('[Decision 17] the rate limit store postgres counts requests and failed authentications of all gateways', async () => {
    const { url, sql } = await testDatabase();
    const env = {
      DATABASE_URL: url,
      OMP_AUTH: 'required',
      OMP_RATE_LIMIT_STORE: 'postgres',
      OMP_RATE_LIMIT_PER_MINUTE: '1000',
      OMP_AUTH_FAILURES_PER_MINUTE: '1000',
    };
    const counted = async () => {
      const rows = await sql<{ key: string; points: number }>('select key, points from omp.rate_limits');
      const sum = (purpose: string) =>
        rows.filter(({ key }) => key.startsWith(`omp:${purpose}`)).reduce((total, { points }) => total + points, 0);
      return { requests: sum('requests'), failures: sum('failures') };
    };
    for (const { client } of await Promise.all([startGateway({ env }), startGateway({ env })])) {
      // Repeated: on a busy machine the store may be too slow, and the gateway counts on its own.
      await eventually(async () => {
        const before = await counted();
        expect((await client.ask('/capabilities')).status).toBe(200);
        expectError(await client.ask('/memories', {}, { authorization: 'Bearer wrong' }), 'unauthorized');
        const { requests, failures } = await counted();
        expect(requests).toBeGreaterThan(before.requests);
        expect(failures).toBeGreaterThan(before.failures);
      });
    }
  });

  test('every verb works through PgBouncer in transaction mode', async ({ skip }) => {
    skip(NO_PGBOUNCER !== '', NO_PGBOUNCER);
    const env = { DATABASE_URL: await startPgBouncer((await testDatabase()).url) };
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
