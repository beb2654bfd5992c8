import { once } from 'node:events';
import { existsSync, readFileSync } from 'node:fs';
import { type AddressInfo, connect, createServer } from 'node:net';
import { join } from 'node:path';
import { beforeEach, describe, expect, it, onTestFinished } from 'vitest';
import { isNew } from '../../src/cli/move-follow.ts';
import { embeddedBy, startEmbedding } from '../chaos/subject.ts';
import { embeddingsServer } from '../embedding/embeddings-server.ts';
import { testDatabase } from '../postgres/databases.ts';
import {
  type Program,
  type RunningGateway,
  serveHere,
  startGateway,
  startProgram,
  temporaryFolder,
} from '../process/gateway.ts';
import { eventually } from '../support/eventually.ts';
import { FULL } from '../support/full.ts';
import { NO_SERVER, SERVER_URL } from '../support/postgres-server.ts';
import type { WireMemory } from '../support/wire.ts';
import { all } from './all.ts';
import { runHere } from './run.ts';

let folder: string;
beforeEach(() => {
  folder = temporaryFolder();
});

type Gateway = Pick<RunningGateway, 'client' | 'url'>;
const memoryGateway = serveHere;

const files = () => ({ progress: join(folder, 'place.json'), report: join(folder, 'report.json') });
const migrate = (a: Gateway, b: Gateway, ...more: readonly string[]) => {
  const { progress, report } = files();
  return ['migrate', a.url, b.url, '--progress', progress, '--report', report, ...more];
};
const start = (args: readonly string[]): Program => startProgram({ args });
async function expectEnd(args: readonly string[], status = 0) {
  const ended = await runHere(args);
  expect(ended.status, `${args.join(' ')}\n${ended.stdout}${ended.stderr}`).toBe(status);
  return ended;
}
const reportOf = () => JSON.parse(readFileSync(files().report, 'utf8'));

const expectSame = (a: Gateway, b: Gateway) => eventually(async () => expect(await all(b)).toEqual(await all(a)));

async function fill({ client }: Gateway, count: number) {
  await client.batch(
    Array.from({ length: count }, (_, n) => ({ user_id: `user ${n % 5}`, content: `note ${n}`, tags: [`t${n % 3}`] })),
  );
}

/** One of each change. */
async function change({ client }: Gateway, round: number) {
  const added = await client.add({ user_id: 'user 1', content: `new ${round}`, scope: 'a/b', 'x-n': { round } });
  const [first, second, third] = (await client.list({ user_id: 'user 2' })).items as [
    WireMemory,
    WireMemory,
    WireMemory,
  ];
  await client.update(first.id, { content: `changed ${round}`, scope: `c/${round}` });
  await client.remove(second.id);
  const { embedding_model: _, status: __, ...whole } = third;
  const imported = [
    { ...whole, content: `imported over ${round}` },
    { id: `own-${round}`, user_id: 'user 3', content: 'with an id', created_at: '2020-01-01T00:00:00.000Z' },
  ];
  expect((await client.tell('POST', '/import', { memories: imported, on_conflict: 'replace' })).status).toBe(200);
  await client.add({ user_id: `erased ${round}`, content: 'soon gone' });
  await client.tell('DELETE', `/users/erased%20${round}/memories`);
  await client.add({ user_id: `erased ${round}`, content: 'after that' });
  return added;
}

describe.each([
  ['with a feed', {}],
  ['without a feed', { OMP_AUDIT: 'off' }],
])('a source %s', (_, env) => {
  it('[Decision 53] is followed through every kind of change, also after kill -9, then frozen, verified, and followed back', async () => {
    const [a, b] = [await memoryGateway(env), await memoryGateway(env)];
    await fill(a, 60);
    let follower = start(migrate(a, b, '--follow'));
    await expectSame(a, b);
    for (const round of FULL ? [1, 2] : [1]) {
      await change(a, round);
      await expectSame(a, b);
      follower.child.kill('SIGKILL');
      await follower.ended;
      // While nothing follows.
      await change(a, 10 * round);
      follower = start(migrate(a, b, '--follow'));
    }
    await expectSame(a, b);
    follower.child.kill('SIGINT');
    const stopped = await follower.ended;
    expect(stopped.status).toBe(1);
    expect(stopped.stderr).toMatch(/stopped: .* changes applied; the same command goes on there\n$/);
    await change(a, 3);
    const { stdout } = await expectEnd(migrate(a, b, '--cutover'));
    expect(stdout).toContain(`Now start the gateways with ${b.url}.`);
    expect(await all(b)).toEqual(await all(a));
    const report = reportOf();
    expect(report).toMatchObject({ from: a.url, to: b.url, verified: true, reasons: [], queries: { overlap: 1 } });
    expect(report.queries.results).toHaveLength(10);
    expect(report.frozen.hashes[0]).toBe(report.frozen.hashes[1]);
    expect(report.users.memories).toEqual([(await all(a)).length, (await all(b)).length]);
    expect(report.freeze.milliseconds).toBeGreaterThan(0);
    // Contents stay in the stores.
    expect(readFileSync(files().report, 'utf8')).not.toContain('note 1');
    const rejected = await a.client.tell('POST', '/memories', { user_id: 'u', content: 'too late' });
    expect([rejected.status, rejected.headers.get('retry-after')]).toEqual([503, '2']);

    // And back: the old store is kept up to date, without a copy.
    await change(b, 4);
    expect((await runHere(migrate(b, a, '--follow'))).stderr).toContain('omp-gateway unfreeze');
    expect((await expectEnd(['unfreeze', a.url])).stdout).toContain('takes changes again; it was frozen since');
    const back = start(migrate(b, a, '--follow'));
    await expectSame(b, a);
    await change(b, 5);
    await expectSame(b, a);
    back.child.kill('SIGINT');
    await back.ended;
    await expectEnd(migrate(b, a, '--cutover'));
    expect(await all(a)).toEqual(await all(b));
  });
});

it('[Decision 43] [Decision 53] a mapped table moves to the tables of the gateway, followed by comparisons, and the command says that it cannot be frozen', async ({
  skip,
}) => {
  skip(SERVER_URL === '', NO_SERVER);
  const database = await testDatabase();
  await database.sql('create extension vector');
  await database.sql(`create table notes (id text primary key, owner text, body text, tags text[], v vector(64))`);
  const vectors = { ...embeddedBy((await startEmbedding()).base_url), OMP_SEARCH_MODE: 'vector' };
  const mapping = { TABLE: 'notes', ID: 'id', USER_ID: 'owner', CONTENT: 'body', TAGS: 'tags', EMBEDDING: 'v' };
  const mapped = Object.entries({ PRESET: 'custom', WRITABLE: 'true', ...mapping }).map(
    ([name, value]) => [`OMP_MAPPING_${name}`, value] as const,
  );
  const a = await startGateway({ env: { DATABASE_URL: database.url, ...vectors, ...Object.fromEntries(mapped) } });
  const b = await startGateway({ env: { DATABASE_URL: database.url, ...vectors } });
  for (let n = 0; n < 6; n++) await fill(a, 100);
  const rows = () => database.sql('select id, owner as user_id, body as content from notes order by id collate "C"');
  const copied = async () => (await all(b)).map(({ id, user_id, content }) => ({ id, user_id, content }));
  const follower = start(migrate(a, b, '--follow'));
  await eventually(async () => expect(await copied()).toHaveLength(600));
  await database.sql(`update notes set body = 'changed' where body = 'note 7'`);
  await database.sql(`delete from notes where body = 'note 8'`);
  await database.sql(`insert into notes select 'new', owner, 'a new note', tags, v from notes limit 1`);
  await eventually(async () => expect(await copied()).toEqual(await rows()));
  follower.child.kill('SIGINT');
  await follower.ended;
  await database.sql(`delete from notes where body = 'note 9'`);
  const { stderr } = await expectEnd(migrate(a, b, '--cutover'));
  expect(stderr).toContain('It cannot be frozen: stop everything that writes to it');
  expect(await copied()).toEqual(await rows());
});

it('[Decision 53] a target waits for a gateway that is down when it begins to follow', async () => {
  const [a, b] = [await memoryGateway(), await memoryGateway()];
  await fill(a, 5);
  let refused = 0;
  const { hostname, port } = new URL(a.url);
  // More often than a command asks that a person watches.
  const server = createServer((client) => {
    if (refused++ < 3) return client.resetAndDestroy();
    const upstream = connect(Number(port), hostname);
    for (const socket of [client, upstream]) socket.on('error', () => {});
    client.pipe(upstream).pipe(client);
  }).listen(0, '127.0.0.1');
  onTestFinished(() => void server.close());
  await once(server, 'listening');
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const follower = start(migrate({ ...a, url }, b, '--follow'));
  const early = follower.ended.then(({ stderr }) => Promise.reject(new Error(stderr)));
  await Promise.race([early, expectSame(a, b)]);
  follower.child.kill('SIGINT');
  expect((await follower.ended).stderr).toContain('does not answer; the request is sent again');
  await early.catch(() => {});
});

it('[Decision 53] the first copy leaves out what was added since it began, so that it ends in a store that is written fast', () => {
  const now = Date.now();
  const added = (ms: number) => ({ created_at: new Date(now + ms).toISOString() });
  const HOUR = 3_600_000;
  expect(isNew(added(-HOUR / 2), now - HOUR)).toBe(true);
  expect(isNew(added(-2 * HOUR), now - HOUR)).toBe(false);
  // The clock of the source may differ, and an imported memory may be of any time.
  expect(isNew(added(30_000), now)).toBe(false);
  expect(isNew(added(HOUR), now - HOUR)).toBe(false);
});

describe('a cutover', () => {
  it('[Decision 53] that finds a difference lets the source take changes again, and says why', async () => {
    const embeddings = await embeddingsServer();
    const vectors = { OMP_SEARCH_MODE: 'vector', OMP_EMBEDDER: 'openai', OPENAI_BASE_URL: embeddings.base_url };
    const [a, b] = [await memoryGateway(), await memoryGateway(vectors)];
    await a.client.batch(Array.from({ length: 30 }, (_, n) => ({ user_id: 'ana', content: `word${n}` })));
    const { stderr } = await expectEnd(migrate(a, b, '--cutover'), 1);
    expect(stderr).toContain(`${a.url} is frozen`);
    expect(stderr).toMatch(/the stores differ .*report.json has the report\): only \d.* % of the ten best/);
    expect(stderr).toContain(`${a.url} takes changes again.`);
    expect(reportOf()).toMatchObject({ verified: false });
    const { stdout } = await expectEnd(['verify', a.url, b.url], 1);
    expect(stdout).toContain('of the ten best of 20 queries are the same (at least 90 %).\nNo memory differs.\n');
    await a.client.add({ user_id: 'ana', content: 'goes on' });
    // A freeze of somebody else stays.
    await expectEnd(['freeze', a.url]);
    await expectEnd(migrate(a, b, '--cutover'), 1);
    expect((await a.client.ask('/freeze')).body).toMatchObject({ since: expect.any(String) });
    await expectEnd(migrate(a, b, '--cutover', '--overlap', '0'));
    await embeddings.close();
  });

  it('[Decision 53] does not begin while the target rejects memories', async () => {
    const [a, b] = [await memoryGateway(), await memoryGateway({ OMP_MAX_REQUEST_BYTES: '20000' })];
    const add = async () => (await a.client.add({ user_id: 'ana', content: 'x'.repeat(30_000) })).id;
    const ids = [await add(), await add(), await add()];
    // The second time from its place, which holds nothing that grows with what is rejected: a large one could not be read.
    for (let times = 0; times < 2; times++) {
      const { stderr } = await expectEnd(migrate(a, b, '--cutover'), 1);
      for (const id of ids) expect(stderr).toContain(`rejected ${id}: `);
      expect(stderr).toContain('rejected 3 memories; nothing was frozen');
      const place = readFileSync(files().progress, 'utf8');
      expect(JSON.parse(place).state).toMatchObject({ copying: null, froze: false });
      for (const id of ids) expect(place).not.toContain(id);
    }
    for (const id of ids) await a.client.update(id, { content: 'short enough' });
    await expectEnd(migrate(a, b, '--cutover'));
    expect(await all(b)).toEqual(await all(a));
  });

  it('[Decision 53] needs an empty target, or deletes what only the target has if that is asked for', async () => {
    const [a, b] = [await memoryGateway(), await memoryGateway()];
    await fill(a, 20);
    await fill(b, 10);
    expect((await expectEnd(migrate(a, b, '--cutover'), 1)).stderr).toContain('--mirror');
    expect(await all(b)).toHaveLength(10);
    await expectEnd(migrate(a, b, '--cutover', '--mirror', '--user', 'user 1'));
    expect((await b.client.list({ user_id: 'user 2' })).items).toHaveLength(2);
    const ofUser = async (one: Gateway) => (await all(one)).filter(({ user_id }) => user_id === 'user 1');
    expect(await ofUser(b)).toEqual(await ofUser(a));
    await expectEnd(['unfreeze', a.url]);
    await expectEnd(migrate(a, b, '--cutover', '--mirror', '--restart'));
    expect(await all(b)).toEqual(await all(a));
    expect(existsSync(files().report)).toBe(true);
  });
});

describe('a freeze', () => {
  it('[Decision 53] shows in the capabilities, without who did it', async () => {
    const a = await memoryGateway();
    const frozen = async () => ((await a.client.ask('/capabilities')).body as { frozen: unknown }).frozen;
    expect(await frozen()).toBe(null);
    const { since } = JSON.parse((await expectEnd(['freeze', a.url, '--json'])).stdout);
    await eventually(async () => expect(await frozen()).toEqual({ since }));
    await expectEnd(['unfreeze', a.url]);
    await eventually(async () => expect(await frozen()).toBe(null));
    expect((await expectEnd(['unfreeze', a.url])).stdout).toContain('was not frozen');
  });
});
