import { beforeEach, describe, expect, test } from 'vitest';
import { until } from '../postgres/store.ts';
import { expectError } from '../support/expect-error.ts';
import { freshUser } from '../support/subject.ts';
import { runProgram, startGateway } from './gateway.ts';
import { createCluster, NO_POSTGRES_BIN, POSTGRES_BIN } from './postgres-cluster.ts';

describe('with a PostgreSQL server to stop', () => {
  beforeEach(({ skip }) => skip(POSTGRES_BIN === '', NO_POSTGRES_BIN));

  test('requests are answered 502 while the server is down, and served when it is back', async () => {
    const cluster = await createCluster();
    await cluster.start();
    const { client, stop } = await startGateway({ env: { DATABASE_URL: cluster.url } });
    const user_id = freshUser();
    // More at once than there are connections, so that all of them are open.
    const memories = await Promise.all(
      Array.from({ length: 50 }, (_, i) => client.add({ user_id, content: `memory number ${i}` })),
    );

    await cluster.stop();
    const asked = () =>
      Promise.all([
        ...memories.map(({ id }) => client.ask(client.byId(id))),
        client.ask('/memories', { user_id }),
        client.ask('/memories/search', { user_id, q: 'number' }),
        client.tell('POST', '/memories', { user_id, content: 'lost' }),
        client.ask('/healthz'),
      ]);
    // Twice: connections that break, then connections that cannot be opened.
    for (const reply of [...(await asked()), ...(await asked())]) {
      const error = expectError(reply, 'provider_error');
      expect(error).toMatchObject({ provider: 'postgres' });
      // Detected from the server, not by the deadline.
      expect(error.message).toMatch(
        /database (cannot be reached|closed the connection|is shutting down)|does not answer at the moment/,
      );
    }
    expect((await client.ask('/capabilities')).status).toBe(200);

    await cluster.start();
    // Before any request for a memory.
    await until(async () => (await client.ask('/healthz')).status === 200);
    for (const { id, content } of memories) expect((await client.get(id)).content).toBe(content);
    expect((await client.add({ user_id, content: 'added afterwards' })).content).toBe('added afterwards');
    expect((await client.list({ user_id, limit: 500 })).items).toHaveLength(memories.length + 1);
    expect((await client.ask('/healthz')).status).toBe(200);
    expect((await stop()).status).toBe(0);
  });

  test('[Decision 27] a server restarted between requests serves the first request', async () => {
    const cluster = await createCluster();
    await cluster.start();
    const { client, stop } = await startGateway({ env: { DATABASE_URL: cluster.url, OMP_AUDIT: 'off' } });
    const user_id = freshUser();
    const { id } = await client.add({ user_id, content: 'kept' });
    for (const signal of ['SIGINT', 'SIGQUIT'] as const) {
      // All connections are open.
      await Promise.all(Array.from({ length: 20 }, () => client.get(id)));
      await cluster.stop(signal);
      await cluster.start();
      expect((await client.get(id)).content).toBe('kept');
    }
    await client.add({ user_id, content: 'added afterwards' });
    expect((await stop()).status).toBe(0);
  });

  test('a gateway stops although its server is down', async () => {
    const cluster = await createCluster();
    await cluster.start();
    const { client, stop } = await startGateway({ env: { DATABASE_URL: cluster.url } });
    const user_id = freshUser();
    await client.add({ user_id, content: 'anything' });
    await cluster.stop();
    // Leaves an audit entry that cannot be written.
    expectError(await client.ask('/memories', { user_id }), 'provider_error');
    const { stdout, ...ending } = await stop();
    expect(ending).toMatchObject({ status: 0, signal: null });
    expect(stdout).toMatch(/audit entries are lost/);
  });

  test('the password may be in PGPASSWORD; a wrong one is an error that does not show it', async () => {
    const cluster = await createCluster();
    await cluster.start();
    const url = new URL(cluster.url);
    url.password = '';
    const env = { DATABASE_URL: url.href, OMP_SEARCH_MODE: 'keyword' };
    const { client, stop } = await startGateway({ env: { ...env, PGPASSWORD: cluster.password } });
    expect((await client.ask('/healthz')).status).toBe(200);
    await stop();

    url.password = 'wrong-s3cret';
    const refused = await runProgram({ env: { ...env, DATABASE_URL: url.href } });
    expect(refused).toMatchObject({ status: 1, stdout: '' });
    expect(refused.stderr).toMatch(/the database rejected the credentials; check user and password in DATABASE_URL/);
    expect(refused.stderr).not.toContain('wrong-s3cret');
    expect(refused.stderr).not.toMatch(/^\s+at /m);
  });
});
