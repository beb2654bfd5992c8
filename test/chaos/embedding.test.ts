import { setTimeout as sleep } from 'node:timers/promises';
import { beforeEach, describe, expect, test } from 'vitest';
import { type Answer, failing, sendJson } from '../embedding/embeddings-server.ts';
import { createCluster, NO_POSTGRES_BIN, POSTGRES_BIN } from '../process/postgres-cluster.ts';
import { anyOf, downOf, rateLimitedBy } from '../support/ledger.ts';
import { startTcpProxy } from '../support/tcp-proxy.ts';
import { embeddedBy, startEmbedding, startSubject, wellEmbedded } from './subject.ts';
import { type Fault, survive } from './survive.ts';

beforeEach(({ skip }) => skip(POSTGRES_BIN === '', NO_POSTGRES_BIN));

/** Long enough for the circuit breaker to open and to try again several times. */
const WHILE_MS = 1_500;

/** Responses without usable vectors. */
const GARBAGE: Readonly<Record<string, Answer>> = {
  'answers no JSON': (_, response) =>
    void response.writeHead(200, { 'content-type': 'application/json' }).end('{"data": [{]'),
  'answers a web page': (_, response) =>
    void response.writeHead(200, { 'content-type': 'text/html' }).end('<h1>Welcome to nginx!</h1>'),
  'breaks off its answers': (_, response) => {
    response.writeHead(200, { 'content-type': 'application/json', 'content-length': '9999' });
    response.write('{"object": "list", "data": [{"embedding": [0.1, 0.2', () => response.destroy());
  },
  'answers too few vectors': (_, response) => sendJson(response, 200, { object: 'list', data: [] }),
  'answers NaN': vectors((length) => Array.from({ length }, (_, i) => (i === 3 ? null : 0.5))),
  'answers nothing but zeros': vectors((length) => new Array(length).fill(0)),
  'answers vectors of another length': vectors((length) => new Array(length / 2).fill(0.5)),
  'answers 500': failing(500),
  'answers 429 with Retry-After': failing(429, { 'retry-after': '1' }),
  'answers 401': failing(401),
};

function vectors(make: (length: number) => readonly unknown[]): Answer {
  return ({ input }, response) =>
    sendJson(response, 200, {
      object: 'list',
      data: input.map((_, index) => ({ object: 'embedding', index, embedding: make(64) })),
    });
}

describe.each(['sync', 'async'])('OMP_INGESTION=%s', (ingestion) => {
  test('faults of the embedding service lose nothing, and its memories are searched once it is back', async () => {
    const cluster = await createCluster();
    await cluster.start();
    const service = await startEmbedding();
    const way = await startTcpProxy(service.base_url);
    const { load, ledgers, gateway } = await startSubject({
      env: { DATABASE_URL: cluster.url, OMP_INGESTION: ingestion, ...embeddedBy(way.through(service.base_url)) },
      clients: 8,
      excuse: anyOf(downOf('postgres', 'openai'), rateLimitedBy('openai')),
    });
    const named = (name: string) => `embedding, ${ingestion}: ${name}`;
    const during = async (ms: number) => {
      const { added } = load.count;
      await load.during(ms);
      // Async ingestion stores without the service.
      if (ingestion === 'async') expect(load.count.added).toBeGreaterThan(added);
    };
    const settle = async () => {
      for (const ledger of ledgers) {
        while (!(await ledger.allDone())) await sleep(50);
        await ledger.searchOwn(2);
      }
    };
    const answering = (name: string, answer: Answer): Fault => ({
      name: named(`service ${name}`),
      async strike() {
        service.answer = answer;
        await during(WHILE_MS);
        service.answer = wellEmbedded;
      },
      settle,
    });
    const onTheWay = (name: string, begin: () => unknown, end: () => unknown, ms = WHILE_MS): Fault => ({
      name: named(name),
      async strike() {
        await begin();
        await during(ms);
        await end();
      },
      settle,
    });

    const faults = [
      onTheWay('service down for 10 s', way.down, way.up, 10_000),
      onTheWay(
        'black hole',
        () => way.become({ black_hole: true }),
        () => way.become({}),
      ),
      onTheWay(
        'slower than the deadline',
        () => way.become({ latency_ms: 400 }),
        () => way.become({}),
      ),
      onTheWay(
        'resets connections',
        () => way.become({ cut: { answers: 0.2 } }),
        () => way.become({}),
      ),
      ...Object.entries(GARBAGE).map(([name, answer]) => answering(name, answer)),
    ];
    for (const fault of faults) await survive(load, fault);
    await load.pause();
    expect((await gateway.stop()).status).toBe(0);
  });
});
