import { describe, expect, it, onTestFinished, test } from 'vitest';
import { OmpError, type Provider } from '#contract';
import { createHealth } from '../../src/core/health.ts';
import { createAdminApp } from '../../src/http/app.ts';
import { listen } from '../../src/http/listen.ts';
import { gate } from '../embedding/observed-embedder.ts';
import { clientOf } from '../support/client.ts';
import { expectError } from '../support/expect-error.ts';
import { holdTimers } from '../support/hold-timers.ts';
import { exchange, request } from '../support/raw-http.ts';
import { type RunningServer, serverForTest } from '../support/server.ts';
import { APP_LIMITS, recordingLog } from '../support/subject.ts';

const PROBES = ['/healthz', '/livez', '/readyz'] as const;

const statuses = async ({ client }: Pick<RunningServer, 'client'>) =>
  Promise.all(PROBES.map(async (path) => (await client.ask(path)).status));

const gone = async () => {
  throw new OmpError('provider_error', 'the backend is down', { provider: 'memory' });
};
const withPing = (ping: Provider['ping']) => ({ alter: (provider: Provider) => ({ ...provider, ping }) });

describe('probes', () => {
  it('[SPEC GET /healthz] [SPEC Health status] [SPEC Health provider] succeed', async () => {
    const { client } = await serverForTest();
    expect((await client.ask('/healthz')).body).toEqual({ status: 'ok', provider: 'memory' });
    expect((await client.ask('/livez')).body).toEqual({ status: 'ok' });
    expect((await client.ask('/readyz')).body).toEqual({ status: 'ready' });
    expect(await statuses({ client })).toEqual([200, 200, 200]);
  });

  it('[Decision 31] report a backend that is down, except /livez, because a restart would not help', async () => {
    const { client } = await serverForTest(withPing(gone));
    expectError(await client.ask('/healthz'), 'provider_error');
    expect(await client.ask('/livez')).toMatchObject({ status: 200, body: { status: 'ok' } });
    expect(await client.ask('/readyz')).toMatchObject({ status: 503, body: { status: 'unavailable' } });
  });

  it('[Decision 31] are answered while the backend hangs: /livez at once, the others after a deadline', async () => {
    const deadline = holdTimers(2_000);
    const { client } = await serverForTest(withPing(() => new Promise(() => {})));
    const asked = statuses({ client });
    expect((await client.ask('/livez')).status).toBe(200);
    expect(await deadline.passUntil(asked)).toEqual([502, 200, 503]);
  });

  it('[Decision 31] report draining, and /healthz still the state of the backend', async () => {
    const health = createHealth('memory');
    health.begin(async () => {});
    const { client } = await serverForTest({ health });
    health.drain();
    expect((await client.ask('/readyz')).body).toEqual({ status: 'draining' });
    expect(await statuses({ client })).toEqual([200, 200, 503]);
  });

  it('[Decision 31] that are waiting for the backend when draining begins report draining', async () => {
    const health = createHealth('memory');
    const [pinged, answered] = [gate(), gate()];
    health.begin(() => {
      pinged.open();
      return answered.opened;
    });
    const { client } = await serverForTest({ health });
    const probe = client.ask('/readyz');
    await pinged.opened;
    health.drain();
    answered.open();
    expect((await probe).body).toEqual({ status: 'draining' });
  });

  it('[Decision 31] support HEAD', async () => {
    const { port } = await serverForTest();
    for (const path of PROBES) {
      const response = await fetch(`http://127.0.0.1:${port}${path}`, { method: 'HEAD' });
      const answer = [response.status, response.headers.get('content-type'), await response.text()];
      expect(answer).toEqual([200, 'application/json', '']);
    }
  });

  it('[Decision 31] support HTTP/1.0 without a Host, like HAProxy; nothing else does on an open gateway', async () => {
    const { port } = await serverForTest({ allowed_hosts: ['localhost'] });
    const ask = async (path: string) => (await exchange(port, `GET ${path} HTTP/1.0\r\n\r\n`)).status;
    for (const path of PROBES) expect(await ask(path), path).toBe(200);
    expect(await ask('/memories?user_id=ana')).not.toBe(200);
  });

  it('[Decision 31] need no allowed Host and do not count as requests', async () => {
    const { port } = await serverForTest({ allowed_hosts: ['gateway.example'], max_requests: 1 });
    for (const path of PROBES) expect((await exchange(port, request('GET', path))).status, path).toBe(200);
  });
});

type Scrape = Parameters<typeof createAdminApp>[0]['scrape'];

async function startAdmin(scrape: Scrape, ping = async () => {}) {
  const debug: object[] = [];
  const log = { ...recordingLog(), debug: (fields: object) => void debug.push(fields) };
  const health = createHealth('memory');
  health.begin(ping);
  const app = createAdminApp({ health, provider: 'memory', scrape, log });
  const { port, close } = await listen(app, { host: '127.0.0.1', port: 0, log, ...APP_LIMITS });
  onTestFinished(() => close());
  const client = clientOf((path, init) => fetch(`http://127.0.0.1:${port}${path}`, init));
  return { client, port, log, debug };
}

const scrape = async () => ({ type: 'text/plain; version=0.0.4', text: 'up 1\n' });

test('[Decision 33] the metrics port serves metrics to any Host', async () => {
  const { client, port } = await startAdmin(scrape);
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

test('[Decision 31] the metrics port serves only metrics and health', async () => {
  const { client } = await startAdmin(scrape);
  expect(await statuses({ client })).toEqual([200, 200, 200]);
  for (const path of ['/', '/memories?user_id=x', '/capabilities', '/docs']) {
    expectError(await client.ask(path), 'not_found');
  }
  expectError(await client.tell('POST', '/metrics'), 'not_found');
  expectError(await (await startAdmin(undefined)).client.ask('/metrics'), 'not_found');
});

test('[Decision 16] an error of the metrics port reveals no details', async () => {
  const failing = async () => {
    throw new Error('secret of the inside');
  };
  const { client, log } = await startAdmin(failing);
  const reply = await client.ask('/metrics');
  expectError(reply, 'provider_error');
  expect(reply.text).not.toContain('secret');
  expect(log.lines.map(({ level }) => level)).toContain('error');
});

test('[Decision 31] probes and scrapes are logged only if they fail', async () => {
  const { client, log, debug } = await startAdmin(scrape);
  for (const path of ['/livez', '/readyz', '/healthz', '/metrics']) await client.ask(path);
  await expect.poll(() => debug).toHaveLength(4);
  expect(log.lines).toEqual([]);

  const down = async () => {
    throw new Error('down');
  };
  const failing = await startAdmin(scrape, down);
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
