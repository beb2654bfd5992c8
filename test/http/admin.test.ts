import { expect, onTestFinished, test } from 'vitest';
import { createHealth } from '../../src/core/health.ts';
import { createAdminApp } from '../../src/http/app.ts';
import { listen } from '../../src/http/listen.ts';
import { clientOf } from '../support/client.ts';
import { expectError } from '../support/expect-error.ts';
import { exchange } from '../support/raw-http.ts';
import { recordingLog } from '../support/subject.ts';

type Measures = Parameters<typeof createAdminApp>[0]['measures'];

async function startAdmin(measures: Measures, ping = async () => {}) {
  const debug: object[] = [];
  const log = { ...recordingLog(), debug: (fields: object) => void debug.push(fields) };
  const health = createHealth('memory');
  health.begin(ping);
  const app = createAdminApp({ health, provider: 'memory', measures, log });
  const { port, close } = await listen(app, { host: '127.0.0.1', port: 0, log });
  onTestFinished(() => close());
  const client = clientOf((path, init) => fetch(`http://127.0.0.1:${port}${path}`, init));
  return { client, port, log, debug };
}

const measures = async () => ({ type: 'text/plain; version=0.0.4', text: 'up 1\n' });

test('[Decision 33] the measures are answered as they are, to whatever name', async () => {
  const { client, port } = await startAdmin(measures);
  const { status, headers, text } = await client.ask('/metrics');
  expect({ status, type: headers.get('content-type'), text }).toEqual({
    status: 200,
    type: 'text/plain; version=0.0.4',
    text: 'up 1\n',
  });
  const { status: named } = await exchange(
    port,
    'GET /metrics HTTP/1.1\r\nHost: gateway-7f.svc\r\nConnection: close\r\n\r\n',
  );
  expect(named).toBe(200);
});

test('[Decision 31] nothing but measures and health is there', async () => {
  const { client } = await startAdmin(measures);
  for (const path of ['/livez', '/readyz', '/healthz']) expect((await client.ask(path)).status, path).toBe(200);
  for (const path of ['/', '/memories?user_id=x', '/capabilities', '/docs']) {
    expectError(await client.ask(path), 'not_found');
  }
  expectError(await client.tell('POST', '/metrics'), 'not_found');
  expectError(await (await startAdmin(undefined)).client.ask('/metrics'), 'not_found');
});

test('[Decision 16] what goes wrong is told without what is inside', async () => {
  const failing = async () => {
    throw new Error('secret of the inside');
  };
  const { client, log } = await startAdmin(failing);
  const reply = await client.ask('/metrics');
  expectError(reply, 'provider_error');
  expect(reply.text).not.toContain('secret');
  expect(log.lines.map(({ level }) => level)).toContain('error');
});

test('[Decision 31] who asks every few seconds leaves no line in the log, unless it fails', async () => {
  const { client, log, debug } = await startAdmin(measures);
  for (const path of ['/livez', '/readyz', '/healthz', '/metrics']) await client.ask(path);
  await expect.poll(() => debug).toHaveLength(4);
  expect(log.lines).toEqual([]);

  const down = async () => {
    throw new Error('down');
  };
  const failing = await startAdmin(measures, down);
  await failing.client.ask('/readyz');
  await expect
    .poll(() => failing.log.lines)
    .toContainEqual({
      level: 'info',
      message: 'request',
      fields: expect.objectContaining({ route: '/readyz', status: 503 }),
    });
  expect(failing.debug).toEqual([]);
});
