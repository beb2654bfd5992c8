import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import pg from 'pg';
import { beforeEach, describe, expect, it, onTestFinished } from 'vitest';
import type { Memory } from '#contract';
import { startGateway, startProgram, temporaryFolder } from '../process/gateway.ts';
import { eventually } from '../support/eventually.ts';
import { withoutOrigin } from '../support/origin.ts';
import { IS_CITUS, NO_SERVER, SERVER_URL } from '../support/postgres-server.ts';
import type { FullStore } from '../support/stores.ts';
import { testEmbedder } from './ingestion-subject.ts';
import { call, memoryOf, refTo, storeForEach, until } from './store.ts';

const store = storeForEach();

it('[Decision 53] vectors that the queue owes are written while the store is frozen', async () => {
  let release = () => {};
  const released = new Promise<void>((resolve) => {
    release = resolve;
  });
  const embedder = testEmbedder(() => released);
  const provider = (await store.open({ embedder, options: { ingestion: 'async' } })) as FullStore;
  const { id } = (await provider.add({ input: memoryOf('u', 'tea') }, call)) as Memory;
  const by = "o'brien \\ $frozen$";
  await provider.freezing.freeze({ by }, call);
  release();
  await until(async () => (await provider.get(refTo(id), call))?.status === 'done');
  expect(await provider.freezing.current(call)).toMatchObject({ by });
  await provider.freezing.unfreeze(call);
});

describe('on a server', () => {
  beforeEach(({ skip }) => skip(SERVER_URL === '' || IS_CITUS, NO_SERVER));

  /** A session whose transaction stays open. */
  async function transaction(...statements: readonly string[]) {
    const client = new pg.Client({ connectionString: store.url });
    onTestFinished(() => client.end());
    await client.connect();
    await client.query('begin');
    for (const statement of statements) await client.query(statement);
    return client;
  }

  it('[Decision 53] a change under way comes wholly before the freeze', async () => {
    const provider = (await store.open()) as FullStore;
    const { id } = (await provider.add({ input: memoryOf('u', 'tea') }, call)) as Memory;
    const change = await transaction(`update ${store.names.memories} set content = 'coffee', updated_at = now()`);
    let isFrozen = false;
    const freezing = provider.freezing.freeze({ by: 'test' }, call).then(() => {
      isFrozen = true;
    });
    await until(async () => (await store.sql('select 1 from pg_locks where not granted')).length > 0);
    expect(isFrozen).toBe(false);
    await change.query('commit');
    await freezing;
    expect((await provider.get(refTo(id), call))?.content).toBe('coffee');
    await expect(provider.delete(refTo(id), call)).rejects.toMatchObject({ frozen: true, retryAfter: 2 });
    await provider.freezing.unfreeze(call);
  });

  it('[Decision 53] a cutover waits for changes that an open transaction holds back, and loses none of them', async () => {
    const url = SERVER_URL;
    const a = await startGateway({ env: { DATABASE_URL: url, OMP_POSTGRES_SCHEMA: store.schema } });
    const b = await startGateway({ env: { OMP_PROVIDER: 'memory' } });
    const folder = temporaryFolder();
    const report = join(folder, 'report.json');
    const args = ['migrate', a.url, b.url, '--progress', join(folder, 'place.json'), '--report', report];
    const follower = startProgram({ args: [...args, '--follow'] });
    await a.client.add({ user_id: 'u', content: 'before' });
    await eventually(async () => expect((await b.client.list({ user_id: 'u' })).items).toHaveLength(1));
    const open = await transaction('select pg_current_xact_id()');
    await a.client.batch(Array.from({ length: 100 }, (_, n) => ({ user_id: 'u', content: `held ${n}` })));
    follower.child.kill('SIGINT');
    await follower.ended;
    // What is compared beforehand is brought by the comparison; the rest has to come with the feed.
    const cutover = startProgram({ args: [...args, '--cutover'] });
    await eventually(async () => {
      expect((await a.client.ask('/freeze')).body).toMatchObject({ since: expect.any(String) });
    });
    await open.query('commit');
    const { status, stderr } = await cutover.ended;
    expect(status, stderr).toBe(0);
    const { freeze } = JSON.parse(readFileSync(report, 'utf8'));
    expect(freeze.changes_applied).toBeGreaterThanOrEqual(100);
    console.log(`frozen for ${freeze.milliseconds} ms with ${freeze.changes_applied} changes left`);
    const all = async ({ client }: typeof a) =>
      (await client.list({ user_id: 'u', limit: 200 })).items.map(withoutOrigin);
    expect(await all(b)).toEqual(await all(a));
    await a.client.tell('DELETE', '/freeze');
  });
});
