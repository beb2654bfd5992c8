import { createServer, type Socket } from 'node:net';
import { expect, it } from 'vitest';
import { openConnections, rememberStatements, statement } from '../../providers/postgres/client/connections.ts';
import { call } from './store.ts';

it('[Decision 29] statements whose values take too much do not wait, and small ones neither until there is room', async () => {
  const sockets: Socket[] = [];
  let over = false;
  // It takes connections and says nothing.
  const server = createServer((socket) => {
    sockets.push(socket.on('error', () => {}));
    if (over) socket.destroy();
  });
  await new Promise<void>((listening) => server.listen(0, '127.0.0.1', listening));
  const { port } = server.address() as { port: number };
  const db = openConnections({
    config: { host: '127.0.0.1', port, user: 'nobody', connectionTimeoutMillis: 600_000 },
    connections: 1,
    prepared_statements: 'on',
    acquire_timeout_ms: 600_000,
    query_timeout_ms: 600_000,
  });
  const large = 'a'.repeat(30 * 1024 * 1024);
  const given = new AbortController();
  const ask = (...values: unknown[]) => db.query(statement('select $1'), values, { ...call, signal: given.signal });
  // One connection works on the first; two wait.
  const waiting = [ask(large), ask(large), ask(1)];
  await expect(ask([large])).rejects.toMatchObject({ code: 'rate_limited', retryAfter: 1 });
  waiting.push(ask('small'));
  given.abort(new Error('gone'));
  for (const { status } of await Promise.allSettled(waiting)) expect(status).toBe('rejected');
  expect(db.stats().waiting).toBe(0);
  over = true;
  for (const socket of sockets) socket.destroy();
  await db.close();
  await new Promise((closed) => server.close(closed));
});

it('[Decision 29] texts of statements are remembered while they are used, and not without end', () => {
  const remembered = rememberStatements();
  const hot = remembered('select 1');
  const cold = remembered('select 2');
  for (let i = 0; i < 300; i++) {
    expect(remembered(`select ${i} /* ${'a'.repeat(10_000)} */`).name).toMatch(/^omp_/);
    expect(remembered('select 1')).toBe(hot);
  }
  expect(remembered('select 2')).toEqual(cold);
  expect(remembered('select 2')).not.toBe(cold);
});
