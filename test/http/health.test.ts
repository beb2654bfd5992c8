import { afterEach, describe, expect, it } from 'vitest';
import { OmpError, type Provider } from '#contract';
import { createHealth, type Health } from '../../src/core/health.ts';
import { createAdminApp } from '../../src/http/app.ts';
import { clientOf } from '../support/client.ts';
import { expectError } from '../support/expect-error.ts';
import { exchange, request } from '../support/raw-http.ts';
import { type RunningServer, startServer } from '../support/server.ts';
import { openSubject, recordingLog } from '../support/subject.ts';

const PROBES = ['/healthz', '/livez', '/readyz'] as const;

let server: RunningServer | undefined;
afterEach(async () => {
  await server?.close();
  server = undefined;
});
const start = async (...options: Parameters<typeof startServer>): Promise<RunningServer> => {
  server = await startServer(...options);
  return server;
};
const statuses = async ({ client }: Pick<RunningServer, 'client'>) =>
  Promise.all(PROBES.map(async (path) => (await client.ask(path)).status));

const gone = async () => {
  throw new OmpError('provider_error', 'the backend is gone', { provider: 'memory' });
};
const withPing = (ping: Provider['ping']) => ({ alter: (provider: Provider) => ({ ...provider, ping }) });

describe('probes', () => {
  it('[SPEC GET /healthz] [SPEC Health status] [SPEC Health provider] tell that all is well', async () => {
    const { client } = await start();
    expect((await client.ask('/healthz')).body).toEqual({ status: 'ok', provider: 'memory' });
    expect((await client.ask('/livez')).body).toEqual({ status: 'ok' });
    expect((await client.ask('/readyz')).body).toEqual({ status: 'ready' });
    expect(await statuses({ client })).toEqual([200, 200, 200]);
  });

  it('[Decision 31] tell of a backend that is gone, but for /livez: a restart would not help', async () => {
    const { client } = await start(withPing(gone));
    expectError(await client.ask('/healthz'), 'provider_error');
    expect(await client.ask('/livez')).toMatchObject({ status: 200, body: { status: 'ok' } });
    expect(await client.ask('/readyz')).toMatchObject({ status: 503, body: { status: 'unavailable' } });
  });

  it('[Decision 31] are answered while the backend hangs: /livez at once, the others when it was waited for long enough', async () => {
    const { client } = await start(withPing(() => new Promise(() => {})));
    const asked = statuses({ client });
    expect((await client.ask('/livez')).status).toBe(200);
    expect(await asked).toEqual([502, 200, 503]);
  });

  it('[Decision 31] say while it stops that nothing is to be sent here, and still the truth about the backend', async () => {
    const health = createHealth('memory');
    health.begin(async () => {});
    const { client } = await start({ health });
    health.drain();
    expect((await client.ask('/readyz')).body).toEqual({ status: 'draining' });
    expect(await statuses({ client })).toEqual([200, 200, 503]);
  });

  it('[Decision 31] that were waiting for the backend when the stop came are told so', async () => {
    const health = createHealth('memory');
    let answer = () => {};
    let asked = () => {};
    const pinged = new Promise<void>((resolve) => {
      asked = resolve;
    });
    health.begin(
      () =>
        new Promise((resolve) => {
          answer = resolve;
          asked();
        }),
    );
    const { client } = await start({ health });
    const probe = client.ask('/readyz');
    await pinged;
    health.drain();
    answer();
    expect((await probe).body).toEqual({ status: 'draining' });
  });

  it('[Decision 31] reach the backend as one, however many ask at once and by whichever path', async () => {
    let pings = 0;
    let answer = () => {};
    const answered = new Promise<void>((resolve) => {
      answer = resolve;
    });
    const { client, close } = await openSubject({
      provider: 'memory',
      options: {},
      mode: 'keyword',
      ...withPing(() => {
        pings++;
        return answered;
      }),
    });
    const asked = Array.from({ length: 100 }, (_, index) => client.ask(PROBES[index % 3] as string));
    // By now all of them wait for the backend but for those who do not ask it.
    await asked[1];
    answer();
    for (const { status } of await Promise.all(asked)) expect(status).toBe(200);
    expect(pings).toBe(1);
    await close();
  });

  it('[Decision 31] may be asked with HEAD', async () => {
    const { port } = await start();
    for (const path of PROBES) {
      const { status, headers } = await exchangeHead(port, path);
      expect(status).toBe(200);
      expect(headers.get('content-type')).toBe('application/json');
    }
  });

  it('[Decision 31] may be asked in HTTP/1.0 without a Host, as HAProxy does; nothing else may on an open gateway', async () => {
    const { port } = await start({ allowed_hosts: ['localhost'] });
    const ask = async (path: string) => (await exchange(port, `GET ${path} HTTP/1.0\r\n\r\n`)).status;
    for (const path of PROBES) expect(await ask(path), path).toBe(200);
    expect(await ask('/memories?user_id=ana')).not.toBe(200);
  });

  it('[Decision 31] need no key, no name of this host, and count against no limit of requests', async () => {
    const { port } = await start({ allowed_hosts: ['gateway.example'], max_requests: 1 });
    for (const path of PROBES) expect((await exchange(port, request('GET', path))).status, path).toBe(200);
  });
});

const exchangeHead = async (port: number, path: string) => {
  const response = await fetch(`http://127.0.0.1:${port}${path}`, { method: 'HEAD' });
  expect(await response.text()).toBe('');
  return response;
};

describe('on the port for those who operate it, probes', () => {
  const adminOn = (health: Health) => {
    const app = createAdminApp({ health, provider: 'memory', measures: undefined, log: recordingLog() });
    return { client: clientOf(async (path, init) => app.request(path, init, {})) };
  };

  it('[Decision 31] are answered from the start on, and follow the gateway through its life', async () => {
    const health = createHealth('memory');
    const admin = adminOn(health);
    expect((await admin.client.ask('/readyz')).body).toEqual({ status: 'starting' });
    expectError(await admin.client.ask('/healthz'), 'provider_error');
    expect(await statuses(admin)).toEqual([502, 200, 503]);
    health.begin(async () => {});
    expect(await statuses(admin)).toEqual([200, 200, 200]);
    health.drain();
    expect(await statuses(admin)).toEqual([200, 200, 503]);
  });
});
