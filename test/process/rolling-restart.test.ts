import { Agent, type IncomingMessage, request } from 'node:http';
import { setTimeout as sleep } from 'node:timers/promises';
import { beforeEach, describe, expect, onTestFinished, test } from 'vitest';
import { type Client, clientOf } from '../support/client.ts';
import { openLedger } from '../support/ledger.ts';
import { startLoad } from '../support/load.ts';
import { type RunningGateway, startGateway } from './gateway.ts';
import { NO_HAPROXY, startHaProxy } from './haproxy.ts';
import { createCluster, freePort, NO_POSTGRES_BIN, POSTGRES_BIN } from './postgres-cluster.ts';

const CLIENTS = 16;
/** HAProxy checks the replicas ten times a second. */
const DELAY_MS = '3000';

/** A client with a connection of its own, which it keeps. Unlike `fetch` it never sends anything a second time. */
function keepingClient(url: string): Client {
  const agent = new Agent({ keepAlive: true, maxSockets: 1 });
  onTestFinished(() => agent.destroy());
  return clientOf(async (path, { method = 'GET', headers, body } = {}) => {
    const response = await new Promise<IncomingMessage>((resolve, reject) => {
      const fields = Object.fromEntries(new Headers(headers));
      const length = typeof body === 'string' ? { 'content-length': Buffer.byteLength(body) } : {};
      const asked = request(url + path, { method, agent, headers: { ...fields, ...length } }, resolve);
      asked.on('error', reject).end(body);
    });
    const text = Buffer.concat(await response.toArray());
    const answered = Object.entries(response.headersDistinct).flatMap(([name, values = []]) =>
      values.map((value): [string, string] => [name, value]),
    );
    const status = response.statusCode ?? 0;
    return new Response(status === 204 ? null : text, { status, headers: answered });
  });
}

/** A client with one connection, whose requests must all succeed. */
const strictLedger = (client: Client) => openLedger(client, { excuse: () => false, impatience: 0 });

describe('a rolling restart', () => {
  beforeEach(({ skip }) => {
    skip(POSTGRES_BIN === '', NO_POSTGRES_BIN);
    skip(NO_HAPROXY !== '', NO_HAPROXY);
  });

  test('of two replicas behind HAProxy, twice, under load loses no request', async () => {
    const cluster = await createCluster();
    await cluster.start();
    const ports = [await freePort(), await freePort()];
    const startOn = (port: number) =>
      startGateway({
        env: { DATABASE_URL: cluster.url, OMP_PORT: String(port), OMP_SHUTDOWN_DELAY_MS: DELAY_MS },
      });
    const running = new Map<number, RunningGateway>();
    for (const port of ports) running.set(port, await startOn(port));
    const proxy = await startHaProxy(ports);
    for (const port of ports) await proxy.up(port);

    const ledgers = Array.from({ length: CLIENTS }, () => strictLedger(keepingClient(proxy.url)));
    const load = startLoad(ledgers);
    for (const port of [...ports, ...ports]) {
      await load.more('succeeded', 10 * CLIENTS);
      expect(await running.get(port)?.stop()).toMatchObject({ status: 0, signal: null, stderr: '' });
      running.set(port, await startOn(port));
      await proxy.up(port);
    }
    await load.more('succeeded', 10 * CLIENTS);
    await load.pause();
    const kept = await load.check();
    console.log(`rolling restart: ${load.count.requests} requests succeeded, ${kept} memories kept`);
    expect(load.count.failed).toBe(0);
  });
});

test('a gateway that stops under load answers every request and closes every connection', async () => {
  const gateway = await startGateway({ env: { OMP_PROVIDER: 'memory', OMP_SHUTDOWN_DELAY_MS: DELAY_MS } });
  let answered = 0;
  const clients = Array.from({ length: CLIENTS }, async () => {
    const client = keepingClient(gateway.url);
    let closed = false;
    const raw: Client['raw'] = async (...given) => {
      const reply = await client.raw(...given);
      closed = reply.headers.get('connection') === 'close';
      return reply;
    };
    const ledger = strictLedger({ ...client, raw });
    for (; !closed; answered++) await ledger.step();
  });
  while (answered < 10 * CLIENTS) await sleep(5);
  gateway.child.kill('SIGTERM');
  await Promise.all(clients);
  expect(await gateway.ended).toMatchObject({ status: 0, signal: null, stderr: '' });
});
