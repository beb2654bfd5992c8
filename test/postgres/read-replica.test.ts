import pg from 'pg';
import { beforeEach, expect, it, onTestFinished } from 'vitest';
import type { Call } from '#contract';
import { openConnections } from '../../providers/postgres/client/connections.ts';
import { openReadReplica } from '../../providers/postgres/scaling/read-replica.ts';
import { type Cluster, createCluster, NO_POSTGRES_BIN, POSTGRES_BIN } from '../process/postgres-cluster.ts';
import { callBy, contextOf } from '../support/requests.ts';
import { type FullStore, openStoreOf } from '../support/stores.ts';
import { recordingLog } from '../support/subject.ts';
import { findingsOn, told } from './databases.ts';
import { call, listOf, memoryOf, refTo, searchFor, until } from './store.ts';

beforeEach(({ skip }) => skip(POSTGRES_BIN === '', NO_POSTGRES_BIN));

/** A primary with a table, and a standby that streams from it. */
async function startPair() {
  const primary = await createCluster({ trust: true });
  await primary.start();
  await sqlOn(primary, 'create extension vector');
  await sqlOn(primary, 'create table t (n int)');
  const standby = await createCluster({ trust: true, standbyOf: primary });
  await standby.start();
  return { primary, standby };
}

async function sqlOn({ url }: Cluster, text: string): Promise<Record<string, unknown>[]> {
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  try {
    return (await client.query(text)).rows;
  } finally {
    await client.end();
  }
}

/** As a gateway opens it. `server`: which one answers a read. */
function gatewayOf({ primary, standby }: Awaited<ReturnType<typeof startPair>>, every_ms = 50) {
  const [main, copy] = [primary, standby].map(({ url }) =>
    openConnections({
      config: { connectionString: url },
      ...{ connections: 1, prepared_statements: 'on', acquire_timeout_ms: 60_000, query_timeout_ms: 60_000 },
    }),
  ) as [ReturnType<typeof openConnections>, ReturnType<typeof openConnections>];
  const log = recordingLog();
  const replica = openReadReplica({ primary: main, replica: copy, log, every_ms });
  onTestFinished(async () => {
    await replica.close();
    await main.close();
    await copy.close();
  });
  const withToken = (token: string | undefined, answer: (token: string) => void = () => {}): Call =>
    callBy({}, { token, answer, behind: () => {} });
  return {
    log,
    replica,
    server: (user: string, token?: string) => replica.read(user, withToken(token), async (on) => on),
    async write(users: readonly string[]): Promise<string> {
      await sqlOn(primary, 'insert into t values (1)');
      let answered = '';
      await replica.wrote(
        users,
        withToken(undefined, (token) => {
          answered = token;
        }),
      );
      return answered;
    },
  };
}
const NEVER_AGAIN = 3_600_000;

it('[Decision 44] a read goes to the replica unless that lacks a write of its user or of its token', async () => {
  const pair = await startPair();
  const gateway = gatewayOf(pair, NEVER_AGAIN);
  const other = gatewayOf(pair, NEVER_AGAIN);
  await until(async () => (await gateway.server('ana')) === 'replica' && (await other.server('ana')) === 'replica');
  await sqlOn(pair.standby, 'select pg_wal_replay_pause()');
  const token = await gateway.write(['ana']);
  expect(await gateway.server('ana')).toBe('primary');
  expect(await gateway.server('ben')).toBe('replica');
  expect(await gateway.server('ben', token)).toBe('primary');
  expect(await other.server('ana')).toBe('replica');
  expect(await other.server('ana', token)).toBe('primary');
  for (const unknown of ['', 'x', '0/', '0/G', '1/2/3', `${'F'.repeat(9)}/0`])
    expect(await other.server('ana', unknown)).toBe('replica');
  // Of a user that is not known.
  await gateway.write([]);
  expect(await gateway.server('ben')).toBe('primary');
  await sqlOn(pair.standby, 'select pg_wal_replay_resume()');
  await until(async () => (await gateway.server('ana', token)) === 'replica');
  expect(await gateway.server('ben')).toBe('replica');
  expect(await other.server('ana', token)).toBe('replica');
});

it('[Decision 44] a replica that lags, ends, or is promoted is not used, and no read fails', async () => {
  const pair = await startPair();
  const { server, write, replica, log } = gatewayOf(pair);
  const used = () => until(async () => (await server('ben')) === 'replica');
  const unused = () => until(async () => (await server('ben')) === 'primary');
  await used();
  await sqlOn(pair.standby, 'select pg_wal_replay_pause()');
  await write(['ana']);
  await unused();
  await sqlOn(pair.standby, 'select pg_wal_replay_resume()');
  await used();
  await pair.standby.stop('SIGQUIT');
  await unused();
  await pair.standby.start();
  await used();
  // One that fails on the replica is done on the primary.
  const tried: string[] = [];
  const done = await replica.read('ben', call, async (on) => {
    tried.push(on);
    if (on === 'replica') throw new Error('cancelled because of a conflict with recovery');
    return 'done';
  });
  expect([tried, done]).toEqual([['replica', 'primary'], 'done']);
  await used();
  await sqlOn(pair.standby, 'select pg_promote()');
  await unused();
  expect(log.lines.map(({ message }) => message)).toContain(
    'the read replica cannot be used; the primary answers all reads',
  );
});

it('[Decision 44] a gateway shows every write at once, wherever it reads', async () => {
  const pair = await startPair();
  const options = { url: pair.primary.url, read_url: pair.standby.url, large_user_rows: 30 };
  const provider = (await openStoreOf('postgres', options, contextOf())) as FullStore;
  onTestFinished(() => provider.close());
  expect(provider.capabilities.consistency_tokens).toBe(true);
  for (let i = 0; i < 60; i++) {
    const { id } = await provider.add({ input: memoryOf('ana', `note ${i}`) }, call);
    // Some reads find the replica behind, some do not.
    if (i % 10 === 0) await sqlOn(pair.standby, 'select pg_wal_replay_pause()');
    if (i % 10 === 5) await sqlOn(pair.standby, 'select pg_wal_replay_resume()');
    expect((await provider.list(listOf('ana', { limit: 1 }), call))[0]?.id).toBe(id);
    expect((await provider.search(searchFor('ana', `note ${i}`), call))[0]?.memory.id).toBe(id);
    await provider.update({ ref: refTo(id), patch: { content: `changed ${i}` } }, call);
    expect((await provider.search(searchFor('ana', `changed ${i}`), call))[0]?.memory.id).toBe(id);
    if (i % 2) {
      await provider.delete(refTo(id), call);
      expect(await provider.list(listOf('ana', { limit: 100 }), call)).toHaveLength((i + 1) / 2);
    }
  }
  const scans = `select 1 from pg_stat_all_tables where relname = 'memories' and idx_scan > 0`;
  await until(async () => (await sqlOn(pair.standby, scans)).length > 0);
  const findings = await findingsOn(options.url, options);
  expect(told(findings, 'ok').join('\n')).toMatch(/the read replica answers; its last transaction is \d+ seconds old/);
  const wrong = await findingsOn(options.url, { ...options, read_url: options.url });
  expect(told(wrong, 'warning').join('\n')).toContain('leads to a server that is no replica');
});
