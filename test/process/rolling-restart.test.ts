import { setTimeout as sleep } from 'node:timers/promises';
import { beforeEach, describe, expect, test } from 'vitest';
import type { Client, Reply } from '../support/client.ts';
import { keepingClient } from '../support/kept-connections.ts';
import { freshUser } from '../support/subject.ts';
import type { WireHit, WireMemory, WirePage } from '../support/wire.ts';
import { type RunningGateway, startGateway } from './gateway.ts';
import { NO_HAPROXY, startHaProxy } from './haproxy.ts';
import { createCluster, freePort, NO_POSTGRES_BIN, POSTGRES_BIN } from './postgres-cluster.ts';

const CLIENTS = 16;
/** Long enough for HAProxy to notice, also where eight other things run. */
const DELAY_MS = '3000';

/** What one user was told to have been kept; every answer has to be a success, and right. */
function openBook(client: Client) {
  const user_id = freshUser();
  const kept = new Map<string, string>();
  const successful = (reply: Reply, status: number) => {
    if (reply.status !== status) throw new Error(`answered ${reply.status}: ${reply.text}`);
    return reply;
  };
  return {
    user_id,
    kept,
    /** One request, and its answer. */
    async step(number: number): Promise<Reply> {
      const content = `note ${number}`;
      const known = [...kept][number % kept.size];
      if (!known || number % 3 === 0) {
        const reply = successful(await client.tell('POST', '/memories', { user_id, content }), 201);
        kept.set((reply.body as WireMemory).id, content);
        return reply;
      }
      if (number % 3 === 1) {
        const reply = successful(await client.ask(client.byId(known[0])), 200);
        expect((reply.body as WireMemory).content).toBe(known[1]);
        return reply;
      }
      const reply = successful(await client.ask('/memories/search', { user_id, q: 'note', limit: 100 }), 200);
      const found = (reply.body as { results: WireHit[] }).results;
      expect(found.length).toBe(Math.min(kept.size, 100));
      for (const { memory } of found) expect(kept.get(memory.id)).toBe(memory.content);
      return reply;
    },
    /** All that the store holds of this user. */
    async stored(by: Client): Promise<Map<string, string>> {
      const found = new Map<string, string>();
      let cursor: string | undefined;
      do {
        const page: WirePage = await by.list({ user_id, limit: 200, cursor });
        for (const { id, content } of page.items) found.set(id, content);
        cursor = page.next_cursor ?? undefined;
      } while (cursor);
      return found;
    },
  };
}

/** Clients that go on until they are stopped or something goes wrong, which `failures` then has. */
function startLoad(url: string) {
  const books = Array.from({ length: CLIENTS }, () => openBook(keepingClient(url)));
  const failures: string[] = [];
  let answered = 0;
  let stopped = false;
  const all = Promise.all(
    books.map(async ({ step }) => {
      for (let number = 0; !stopped; number++) {
        await step(number).then(
          () => answered++,
          (error: Error & { code?: string }) => failures.push(`${error.code ?? ''} ${error.message}`),
        );
      }
    }),
  );
  return {
    books,
    failures,
    answered: () => answered,
    async more(n: number) {
      const wanted = answered + n;
      // A failure is told at once: else this would wait for ever.
      while (answered < wanted) {
        expect(failures).toEqual([]);
        await sleep(5);
      }
    },
    async stop() {
      stopped = true;
      await all;
    },
  };
}

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
        env: {
          DATABASE_URL: cluster.url,
          OMP_PORT: String(port),
          OMP_SHUTDOWN_DELAY_MS: DELAY_MS,
          OMP_LOG_LEVEL: 'info',
        },
      });
    const running = new Map<number, RunningGateway>();
    // One after the other: the first makes the tables.
    for (const port of ports) running.set(port, await startOn(port));
    const proxy = await startHaProxy(ports);
    for (const port of ports) await proxy.up(port);

    const load = startLoad(proxy.url);
    let replaced = 0;
    for (const port of [...ports, ...ports]) {
      await load.more(10 * CLIENTS);
      const { status, signal, stderr } = await (running.get(port) as RunningGateway).stop();
      expect({ status, signal, stderr }).toEqual({ status: 0, signal: null, stderr: '' });
      running.set(port, await startOn(port));
      await proxy.up(port);
      replaced++;
    }
    await load.more(10 * CLIENTS);
    await load.stop();

    const { client } = running.get(ports[0] as number) as RunningGateway;
    let memories = 0;
    for (const { kept, stored } of load.books) {
      expect(await stored(client)).toEqual(kept);
      memories += kept.size;
    }
    console.log(
      `rolling restart: ${replaced} replicas replaced, ${load.answered()} requests answered, ${load.failures.length} failed, ${memories} memories acknowledged and kept`,
    );
    expect(load.failures).toEqual([]);
  });
});

test('clients straight on a gateway that is stopped are all answered, and told to turn elsewhere', async () => {
  const gateway = await startGateway({ env: { OMP_PROVIDER: 'memory', OMP_SHUTDOWN_DELAY_MS: DELAY_MS } });
  let answered = 0;
  const clients = Array.from({ length: CLIENTS }, async () => {
    const { step } = openBook(keepingClient(gateway.url));
    for (let number = 0; ; number++) {
      const { headers } = await step(number);
      answered++;
      if (headers.get('connection') === 'close') return;
    }
  });
  while (answered < 10 * CLIENTS) await sleep(5);
  gateway.child.kill('SIGTERM');
  await Promise.all(clients);
  expect(await gateway.ended).toMatchObject({ status: 0, signal: null, stderr: '' });
  console.log(`stopped under load: ${answered} requests answered, 0 cut`);
});
