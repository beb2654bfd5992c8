import { setTimeout as sleep } from 'node:timers/promises';
import { beforeEach, expect, test } from 'vitest';
import { testDatabase } from '../postgres/databases.ts';
import { startGateway } from '../process/gateway.ts';
import { createCluster, NO_POSTGRES_BIN, POSTGRES_BIN } from '../process/postgres-cluster.ts';
import { clientOf } from '../support/client.ts';
import { eventually } from '../support/eventually.ts';
import { expectError } from '../support/expect-error.ts';
import { downOf, type Ledger, openLedger } from '../support/ledger.ts';
import { startLoad } from '../support/load.ts';
import { freshUser } from '../support/subject.ts';
import { startTcpProxy, type TcpProxy } from '../support/tcp-proxy.ts';
import type { WirePage } from '../support/wire.ts';
import { embeddedBy, startEmbedding } from './subject.ts';
import { type Fault, survive } from './survive.ts';

beforeEach(({ skip }) => skip(POSTGRES_BIN === '', NO_POSTGRES_BIN));

const WHILE_MS = 3_000;
/** Clients of each store. */
const CLIENTS = 6;
const SCOPES = { root: 'work', near: 'near/notes', far: 'far/notes' } as const;
type Name = keyof typeof SCOPES;
const NAMES = Object.keys(SCOPES) as Name[];

const p99 = (times: readonly number[]): number =>
  [...times].sort((a, b) => a - b)[Math.floor(times.length * 0.99)] ?? Number.NaN;

test('one of three stores slow, dead, flapping: nothing acknowledged is lost, and requests of the others succeed', async () => {
  const cluster = await createCluster();
  await cluster.start();
  const databases = await Promise.all(NAMES.map(() => testDatabase(cluster.url)));
  const [root = '', near = '', far = ''] = databases.map(({ url }) => url);
  const ways = { near: await startTcpProxy(near), far: await startTcpProxy(far) };
  const { base_url } = await startEmbedding();
  const embedding = { kind: 'openai', model: 'trigrams', base_url, timeout_ms: 500 };
  const stores = {
    near: { mount: 'near', postgres: { url: ways.near.through(near) }, embedding },
    far: { mount: 'far', required: false, postgres: { url: ways.far.through(far) }, embedding },
  };
  const gateway = await startGateway({
    env: { DATABASE_URL: root, OMP_AUDIT: 'writes', OMP_STORES: JSON.stringify(stores), ...embeddedBy(base_url) },
  });

  const times: Record<Name, number[]> = { root: [], near: [], far: [] };
  const timed = (name: Name) =>
    clientOf(async (path, init) => {
      const from = performance.now();
      try {
        return await fetch(gateway.url + path, init);
      } finally {
        if (!init?.signal?.aborted) times[name].push(performance.now() - from);
      }
    });
  // No failure of a store excuses one of another.
  const excuses = { root: () => false, near: downOf('near'), far: downOf('far') };
  const ledgers: Ledger[] = NAMES.flatMap((name) =>
    Array.from({ length: CLIENTS }, () => openLedger(timed(name), { scope: SCOPES[name], excuse: excuses[name] })),
  );
  const load = startLoad(ledgers);
  /** The time that 99 of 100 requests of each store took at most while this happened. */
  const during = async (work: () => Promise<unknown>) => {
    for (const name of NAMES) times[name].length = 0;
    await work();
    return NAMES.map((name) => p99(times[name]));
  };

  const user_id = freshUser();
  const client = clientOf((path, init) => fetch(gateway.url + path, init));
  for (const name of NAMES) await client.add({ user_id, scope: SCOPES[name], content: `a memory in ${name}` });
  const scopesOf = (page: unknown) => (page as WirePage).items.map(({ scope }) => scope);
  const isReady = async () => (await client.ask('/readyz')).status === 200;

  /** What is promised while an optional store is dead. */
  const leavesOut = async () => {
    const list = await client.ask('/memories', { user_id });
    expect([list.status, list.headers.get('x-partial')]).toEqual([200, 'far']);
    expect(list.body).toMatchObject({ 'x-partial': ['far'] });
    expect(scopesOf(list.body)).toEqual([SCOPES.near, SCOPES.root]);
    const search = await client.ask('/memories/search', { user_id, q: 'a memory' });
    expect(search.body).toMatchObject({ 'x-partial': ['far'], results: [{}, {}] });
    expectError(await client.tell('POST', '/memories', { user_id, scope: SCOPES.far, content: 'x' }), 'provider_error');
    expect(await isReady()).toBe(true);
  };
  /** What is promised while a required store is dead. */
  const fails = async () => {
    for (const reply of [
      await client.ask('/memories', { user_id }),
      await client.ask('/memories/search', { user_id, q: 'a memory' }),
    ]) {
      expectError(reply, 'provider_error');
      expect(reply.body).toMatchObject({ error: { provider: 'near' } });
    }
    expect(scopesOf((await client.ask('/memories', { user_id, scope: 'work' })).body)).toEqual([SCOPES.root]);
    await eventually(async () => expect(await isReady()).toBe(false));
  };

  const faultsOf = (name: 'near' | 'far', way: TcpProxy, promised: () => Promise<void>): readonly Fault[] => [
    {
      name: `stores: ${name} slow, 300 ms each way`,
      async strike() {
        way.become({ latency_ms: 300 });
        await load.during(WHILE_MS);
        way.become({});
      },
    },
    {
      name: `stores: ${name} dead`,
      async strike() {
        await way.down();
        await load.during(WHILE_MS / 2);
        await promised();
        await load.during(WHILE_MS / 2);
        await way.up();
      },
    },
    {
      name: `stores: ${name} flapping`,
      async strike() {
        for (let n = 0; n < 6; n++) {
          await way.down();
          await sleep(250);
          await way.up();
          await load.during(250);
        }
      },
    },
    {
      name: `stores: ${name} in a black hole`,
      async strike() {
        way.become({ black_hole: true });
        await load.during(WHILE_MS);
        way.become({});
      },
    },
  ];
  await load.during(WHILE_MS);
  const before = await during(() => load.during(2 * WHILE_MS));
  const faults = [...faultsOf('far', ways.far, leavesOut), ...faultsOf('near', ways.near, fails)];
  for (const fault of faults) {
    const { name, strike } = fault;
    await survive(load, {
      name,
      async strike() {
        const meanwhile = await during(() => strike(load));
        const all = NAMES.map((each, i) => `${each} ${before[i]?.toFixed(0)} → ${meanwhile[i]?.toFixed(0)} ms`);
        console.log(`${name}: p99 before → during: ${all.join(', ')}`);
      },
    });
  }
  await load.pause();
  for (const ledger of ledgers) await ledger.searchOwn(3);
  const { items } = await client.list({ user_id });
  expect(scopesOf({ items })).toEqual([SCOPES.far, SCOPES.near, SCOPES.root]);
  expect((await gateway.stop()).status).toBe(0);
});
