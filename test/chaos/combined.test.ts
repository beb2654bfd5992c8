import { setTimeout as sleep } from 'node:timers/promises';
import { beforeEach, expect, test } from 'vitest';
import { failing, sendJson } from '../embedding/embeddings-server.ts';
import { createCluster, NO_POSTGRES_BIN, POSTGRES_BIN } from '../process/postgres-cluster.ts';
import { anyOf, brokenConnection, downOf, rateLimitedBy } from '../support/ledger.ts';
import { startTcpProxy, type Weather } from '../support/tcp-proxy.ts';
import { signalAll } from './processes.ts';
import { embeddedBy, startEmbedding, startSubject, wellEmbedded } from './subject.ts';
import { survive } from './survive.ts';

beforeEach(({ skip }) => skip(POSTGRES_BIN === '', NO_POSTGRES_BIN));

const DURATION_MS = 20_000;
/** TEST_CHAOS_SEED repeats the faults of a run. */
const SEED = Number(process.env.TEST_CHAOS_SEED ?? Math.floor(Math.random() * 2 ** 31));

/** Pseudo-random numbers in [0, 1) from a seed (mulberry32). */
function drawing(seed: number): () => number {
  let state = seed;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}

test(`two faults at once, drawn at random, with async ingestion (seed ${SEED})`, async () => {
  const random = drawing(SEED);
  const between = (least: number, most: number) => Math.round(least + random() * (most - least));
  const cluster = await createCluster();
  await cluster.start();
  const toDatabase = await startTcpProxy(cluster.url);
  const service = await startEmbedding();
  const toService = await startTcpProxy(service.base_url);
  const subject = await startSubject({
    env: {
      DATABASE_URL: toDatabase.through(cluster.url),
      OMP_INGESTION: 'async',
      ...embeddedBy(toService.through(service.base_url)),
    },
    clients: 12,
    excuse: anyOf(brokenConnection, downOf('postgres', 'openai'), rateLimitedBy('postgres', 'openai')),
  });

  type Fault = readonly [name: string, begin: () => unknown, end: () => unknown];
  const weather = (name: string, way: typeof toDatabase, bad: Weather): Fault => [
    name,
    () => way.become(bad),
    () => way.become({}),
  ];
  let paused: readonly number[] = [];
  /** At most one of each group at a time, because two of one group would end each other. */
  const GROUPS: readonly (readonly Fault[])[] = [
    [
      ['PostgreSQL killed', () => cluster.stop('SIGKILL'), () => cluster.start()],
      ['PostgreSQL down', () => cluster.stop('SIGINT'), () => cluster.start()],
      [
        'PostgreSQL paused',
        () => {
          paused = cluster.processes();
          signalAll(paused, 'SIGSTOP');
        },
        () => signalAll(paused, 'SIGCONT'),
      ],
    ],
    [
      weather('slow database', toDatabase, { latency_ms: between(20, 200) }),
      weather('database resets', toDatabase, { cut: { answers: 0.02, requests: 0.02 } }),
      weather('database in a black hole', toDatabase, { black_hole: true }),
      ['database refused', toDatabase.down, toDatabase.up],
    ],
    [
      weather('slow embedding', toService, { latency_ms: between(100, 800) }),
      weather('embedding in a black hole', toService, { black_hole: true }),
      ['embedding refused', toService.down, toService.up],
    ],
    [
      ['embedding answers 500', () => (service.answer = failing(500)), () => (service.answer = wellEmbedded)],
      [
        'embedding answers garbage',
        () => (service.answer = (_, response) => sendJson(response, 200, { data: [] })),
        () => (service.answer = wellEmbedded),
      ],
    ],
    [['gateway killed', () => subject.gateway.kill(), () => subject.again()]],
  ];
  const drawFrom = <Item>(items: readonly Item[]) => items[Math.floor(random() * items.length)] as Item;

  console.log(`seed ${SEED}`);
  for (const end = performance.now() + DURATION_MS; performance.now() < end; ) {
    const group = drawFrom(GROUPS);
    const one = drawFrom(group);
    const other = drawFrom(drawFrom(GROUPS.filter((others) => others !== group)));
    const [before, together] = [between(100, 1_500), between(200, 2_500)];
    // A gateway does not start without its database or its embedding service: it comes last.
    const ends = [one, other].sort(([a], [b]) => Number(a === 'gateway killed') - Number(b === 'gateway killed'));
    await survive(subject.load, {
      name: `both: ${one[0]}, ${other[0]}`,
      async strike(load) {
        await one[1]();
        await load.during(before);
        await other[1]();
        await load.during(together);
        for (const [, , undo] of ends) await undo();
      },
    });
  }
  await subject.load.pause();
  for (const ledger of subject.ledgers) {
    while (!(await ledger.allDone())) await sleep(50);
    await ledger.searchOwn(5);
  }
  expect((await subject.gateway.stop()).status).toBe(0);
});
