import fc from 'fast-check';
import { afterEach, describe, expect, it } from 'vitest';
import { type Lag, type Pinecone, type PineconeOptions, startPinecone } from '../pinecone-server/start.ts';
import { openSubject } from '../support/subject.ts';
import { checkAgreement } from './check.ts';
import { checkThroughWeather, type Stage, type Weather } from './weather.ts';
import { openModel, openStore, type WorldStore } from './world.ts';

/** A gateway on this Pinecone. */
const openPineconeStore = (label: string, { url }: Pinecone, options: object): Promise<WorldStore> =>
  openStore(label, (more) =>
    openSubject({
      provider: 'pinecone',
      options: { api_key: 'test', index_host: url, ...options },
      mode: 'vector',
      ...more,
    }),
  );

/** Set OMP_TEST_RUNS for a longer search, OMP_TEST_SEED to look elsewhere or to repeat what a failure printed. */
const RUNS = Number(process.env.OMP_TEST_RUNS ?? 30);
const SEED = Number(process.env.OMP_TEST_SEED ?? 42);
const options = { seed: SEED, shrink: true };

const oneOf = <const Values extends readonly string[]>(...values: Values) => fc.constantFrom<Values[number]>(...values);
const READS = ['query', 'fetch', 'list'] as const;
const WRITES = ['upsert', 'update', 'delete'] as const;

const SETTLING = fc.constant<Weather>('settle');
/** The first read of each kind fails; the gateway may repeat it. */
const PASSING = oneOf('429', '500', '503', 'reset', 'reset-after', 'garbage', 'empty').map(
  (kind): Weather => READS.map((operation) => ({ operation, kind })),
);
/** Every request fails, or every one of a kind; nothing is changed. */
const STANDING = fc
  .tuple(
    oneOf('429', '500', '503', '400', '401', '403-text', '404', 'reset', 'garbage', 'empty'),
    fc.option(oneOf(...READS, ...WRITES)),
  )
  .map(([kind, operation]): Weather => [{ kind, times: 0, ...(operation && { operation }) }]);
/** Changes are made, and nobody is told. */
const UNANSWERED = fc.constant<Weather>(WRITES.map((operation) => ({ operation, kind: 'reset-after', times: 0 })));

/**
 * The memory provider with scopes of its own is the model. Whatever sequence of requests is made, the gateway on Pinecone,
 * where scopes are tags, has to give the same answers: however late Pinecone shows what was written, and whatever fails.
 */
describe('the gateway on Pinecone gives the same answers as on memory', () => {
  const opened: (() => Promise<void>)[] = [];
  afterEach(async () => {
    for (const close of opened.splice(0).reverse()) await close();
  });
  const start = async (server?: PineconeOptions): Promise<Pinecone> => {
    const pinecone = await startPinecone(server);
    opened.push(pinecone.close);
    return pinecone;
  };
  const keep = async (opening: Promise<WorldStore>): Promise<WorldStore> => {
    const store = await opening;
    opened.push(store.subject.close);
    return store;
  };

  it.for<[label: string, server: PineconeOptions, options: object, share?: number]>([
    ['without lag, where nothing has to be remembered', { lsn: false }, { settle_ms: 0 }, 1],
    ['three writes late', { lagWrites: 3 }, { layout: 'sharded' }],
    ['with a namespace for every user, measured as a distance', { metric: 'euclidean' }, { layout: 'per-user' }],
    ['as the emulator speaks, one write late', { apiVersion: '2025-01', lsn: false, lagWrites: 1 }, {}],
    ['a few milliseconds late, long after the gateway forgot', { lagMs: 10 }, { settle_ms: 500 }],
  ])(
    '[Decision 1] [Decision 4] [Decision 14] [SPEC GET /memories/search order] %s',
    async ([label, server, more, share = 1 / 3]) => {
      const store = await keep(openPineconeStore(label, await start(server), more));
      await checkAgreement(await keep(openModel()), [store], { ...options, runs: Math.ceil(RUNS * share) });
    },
  );

  it('[SPEC Service capabilities] a gateway that remembers none of its writes is noticed', async () => {
    const pinecone = await start({ lagWrites: 2, lsn: false });
    const store = await keep(openPineconeStore('forgetful', pinecone, { settle_ms: 0 }));
    const checked = checkAgreement(await keep(openModel()), [store], { seed: SEED, shrink: false, runs: RUNS });
    await expect(checked).rejects.toThrow(/Property failed/);
  });

  const stage = async (server: PineconeOptions, lag: Lag, more: object): Promise<Stage> => {
    const pinecone = await start(server);
    const [store, replica, model] = await Promise.all([
      keep(openPineconeStore('pinecone', pinecone, more)),
      keep(openPineconeStore('another gateway', pinecone, more)),
      keep(openModel()),
    ]);
    await pinecone.lag(lag);
    return { model, store, replica, pinecone, seen: { steps: 0, failed: 0, happened: 0 } };
  };
  /** Of three steps, `share` are made in this weather. */
  const check = async (at: Stage, share: 1 | 2, weather: fc.Arbitrary<Weather>) => {
    const calm = { weight: 3 - share, arbitrary: fc.constant<Weather>('calm') };
    const changing = fc.oneof(calm, { weight: share, arbitrary: weather });
    await checkThroughWeather(at, { ...options, runs: Math.ceil(RUNS / 3), weather: changing });
    console.log(JSON.stringify(at.seen));
  };

  const NEVER_MS = 3_600_000;
  it.for<[label: string, lag: Lag]>([
    ['nothing new', { held: true }],
    ['what is new to queries, but not to fetch and list', { fetchMs: NEVER_MS }],
    ['what is new to fetch and list, but not to queries', { held: true, fetchMs: 0 }],
  ])('[SPEC Service capabilities] that shows %s, until it shows everything at once', async ([, lag]) => {
    await check(await stage({}, lag, {}), 1, SETTLING);
  });

  it('[SPEC Service capabilities] that fails at a read and works when it is asked again', {}, async () => {
    const at = await stage({ metric: 'dotproduct' }, { writes: 2 }, {});
    await check(at, 1, PASSING);
    const failed = (await at.pinecone.calls()).filter(({ status }) => status !== 200);
    expect(failed.length).toBeGreaterThan(at.seen.steps / 30);
  });

  it('[SPEC Errors provider_error] [SPEC Errors rate_limited] that fails: what failed was not done', {}, async () => {
    const at = await stage({}, { held: true }, {});
    await check(at, 2, fc.oneof({ weight: 1, arbitrary: SETTLING }, { weight: 3, arbitrary: STANDING }));
    expect(at.seen.failed).toBeGreaterThan(at.seen.steps / 20);
  });

  it('[SPEC Errors provider_error] that does not answer: what failed was done wholly or not at all', {}, async () => {
    const at = await stage({}, {}, { settle_ms: 1 });
    await check(at, 1, UNANSWERED);
    expect(at.seen.happened).toBeGreaterThan(at.seen.steps / 20);
  });
});
