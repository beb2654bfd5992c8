import { execFileSync } from 'node:child_process';
import {
  chmodSync,
  chownSync,
  copyFileSync,
  cpSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  truncateSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import pg from 'pg';
import { beforeEach, describe, expect, it, onTestFinished } from 'vitest';
import { judgeVersion } from '../../providers/postgres/commands/doctor.ts';
import { NO_PGBOUNCER, startPgBouncer } from '../process/pgbouncer.ts';
import { createCluster, NO_POSTGRES_BIN, POSTGRES_BIN, serverUser } from '../process/postgres-cluster.ts';
import { hashingEmbedder } from '../support/hashing-embedder.ts';
import { NO_SERVER, SERVER_URL } from '../support/postgres-server.ts';
import { call, contextOf, memoryOf } from '../support/requests.ts';
import { openStoreOf, type WritableStore } from '../support/stores.ts';
import { makeDataDir } from '../support/subject.ts';
import { factsOn, findingsOn, problemsOn, remediesOf, testDatabase, told } from './databases.ts';

describe('doctor where the database cannot be reached', () => {
  it.each([
    ['postgres://omp:hunter2@127.0.0.1:1/omp', 'ECONNREFUSED', 'nothing listens there'],
    ['postgres://omp:hunter2@name.invalid/omp', 'ENOTFOUND|EAI_AGAIN', 'the host in DATABASE_URL'],
    ['postgres://omp:hunter2@/omp?host=/nowhere', 'ENOENT', 'no such unix socket'],
  ])('%s: %s', async (url, code, advice) => {
    const findings = await findingsOn(url);
    expect(findings).toHaveLength(1);
    expect(told(findings, 'problem')[0]).toMatch(
      new RegExp(`^connection: cannot connect to the database \\((${code})\\): .*${advice}`),
    );
    expect(JSON.stringify(findings)).not.toMatch(/hunter|name\.invalid/);
  });

  it('says so where nothing answers in time', async () => {
    // A listener that takes the connection and never says a word.
    const { createServer } = await import('node:net');
    const silent = createServer(() => {}).listen(0, '127.0.0.1');
    onTestFinished(() => void silent.close());
    await new Promise((ready) => silent.once('listening', ready));
    const { port } = silent.address() as { port: number };
    const findings = await findingsOn(`postgres://omp@127.0.0.1:${port}/omp`, { connect_timeout_ms: 100 });
    expect(told(findings, 'problem')).toEqual([
      expect.stringContaining(
        'connection: the database did not answer within 100 ms (OMP_POSTGRES_CONNECT_TIMEOUT_MS)',
      ),
    ]);
  });
});

describe('doctor on a server', () => {
  beforeEach(({ skip }) => skip(SERVER_URL === '', NO_SERVER));

  it.each(['SQL_ASCII', 'LATIN1'])(
    '[Decision 25] [SPEC Memory content] a database in %s is refused at the start, and named by doctor',
    async (encoding) => {
      const { url, sql } = await testDatabase(SERVER_URL, `encoding ${encoding} template template0 locale 'C'`);
      await sql('create extension vector');
      await sql('create table notes (id text primary key, body text, author text, embedding vector(64))');
      const mapping = {
        preset: 'custom',
        table: 'notes',
        id: 'id',
        content: 'body',
        user_id: 'author',
        embedding: 'embedding',
      };
      const message = `the encoding of the database is ${encoding}, and the gateway needs UTF8; create a database with "createdb -E UTF8`;
      for (const options of [{}, { mapping }]) {
        const context = contextOf({ embedder: hashingEmbedder() });
        await expect(openStoreOf('postgres', { url, ...options }, context)).rejects.toThrow(message);
        expect(await problemsOn(url, options)).toEqual([expect.stringContaining(`connection: ${message}`)]);
      }
    },
  );

  it('names a database that the role may not connect to', async () => {
    const db = await testDatabase();
    const [{ name } = { name: '' }] = await db.sql<{ name: string }>('select current_database() as name');
    await db.sql(`revoke connect on database ${name} from public`);
    expect(await problemsOn(await db.role())).toEqual([
      expect.stringContaining('cannot connect to the database (42501): the role'),
    ]);
  });

  it('tells who it connects as, and to what', async () => {
    const db = await testDatabase();
    const findings = (await factsOn(db.url)).join('\n');
    expect(findings).toMatch(/connection: PostgreSQL \d+.* answers, as role "postgres"/);
    expect(findings).toContain('connection: not encrypted, and stays on this machine');
    expect(findings).not.toContain('pooler');
  });

  it('notices a pooler, and named statements that it might not carry', async ({ skip }) => {
    skip(NO_PGBOUNCER !== '', NO_PGBOUNCER);
    const url = await startPgBouncer((await testDatabase()).url);
    expect(await factsOn(url)).toContain('connection: a pooler such as PgBouncer is in front of the server');
    const forced = await findingsOn(url, { prepared_statements: 'on' });
    expect(told(forced, 'warning')).toEqual(
      expect.arrayContaining([expect.stringMatching(/^connection: a pooler.*OMP_POSTGRES_PREPARED_STATEMENTS/)]),
    );
    expect(told(forced, 'problem')).toEqual([]);
  });

  it('names an extension that is missing and that the role may not make', async () => {
    const db = await testDatabase();
    const url = await db.role('create schema omp', 'grant all on schema omp to ROLE');
    const findings = await findingsOn(url);
    expect(told(findings, 'problem')).toEqual([
      expect.stringMatching(/^extension: pgvector \S+ is on this server, but not created/),
    ]);
    for (const sql of remediesOf(findings)) await db.sql(sql);
    expect(await problemsOn(url)).toEqual([]);
  });

  it('warns of a pgvector with known faults, and only of one', async () => {
    const db = await testDatabase();
    await db.sql('create extension vector');
    const [{ version } = { version: '' }] = await db.sql<{ version: string }>(
      `select extversion as version from pg_extension where extname = 'vector'`,
    );
    const findings = (await findingsOn(db.url)).filter(({ area }) => area === 'extension');
    expect(findings).toEqual([judgeVersion(version, version, true)]);
  });
});

describe('doctor on versions of pgvector', () => {
  it.each([
    ['0.6.2', true, 'problem', 'too old: 0.7.0 or newer'],
    ['0.6.2', false, 'warning', 'before 0.8.0 no vector index can serve'],
    ['0.7.4', true, 'warning', 'before 0.8.0 no vector index can serve'],
    ['0.8.3', true, 'warning', 'CVE-2026-3172'],
    ['0.8.4', true, 'ok', 'pgvector 0.8.4'],
    ['0.10.0', true, 'ok', 'pgvector 0.10.0'],
  ])('%s, ours: %s: %s', (version, ours, level, message) => {
    expect(judgeVersion(version, '0.8.6', ours)).toMatchObject({
      area: 'extension',
      level,
      message: expect.stringContaining(message),
    });
  });

  it('says what to run, and when the package has to come first', () => {
    const remedy = (available: string) => judgeVersion('0.8.0', available, true).remedies?.[0];
    expect(remedy('0.8.6')).toEqual({
      sql: 'alter extension vector update;',
      reason: expect.stringMatching(/^then rebuild/),
    });
    expect(remedy('0.8.0')?.reason).toMatch(/^once the package of 0\.8\.4 or newer is on the server; then rebuild/);
  });
});

describe('doctor on a server of its own', () => {
  beforeEach(({ skip }) => skip(POSTGRES_BIN === '', NO_POSTGRES_BIN));

  it('tells a wrong password and whether the connection is encrypted, and shows no password', async () => {
    const cluster = await createCluster();
    await cluster.start();
    const wrong = new URL(cluster.url);
    wrong.password = 'hunter2';
    expect(await problemsOn(wrong.href)).toEqual([
      expect.stringContaining(
        'cannot connect to the database (28P01): the database rejected the credentials; check user and password in DATABASE_URL',
      ),
    ]);
    const inSecret = `${cluster.url}?sslmode=no-verify`;
    expect(await problemsOn(inSecret)).toEqual([
      expect.stringContaining('the server does not support encrypted connections'),
    ]);

    const certificate = await encrypt(cluster);
    expect(await factsOn(inSecret)).toContain(
      'connection: encrypted, and the certificate of the server is not checked',
    );
    const checked = `${cluster.url}?sslmode=verify-full&sslrootcert=${encodeURIComponent(certificate)}`;
    expect(await factsOn(checked)).toContain('connection: encrypted, and the certificate of the server is checked');
    const unknown = await findingsOn(`${cluster.url}?sslmode=verify-full`);
    expect(told(unknown, 'problem')).toEqual([
      expect.stringContaining('the certificate of the server is not signed by a known authority'),
    ]);
    expect(JSON.stringify(unknown)).not.toContain(cluster.password);
  });
});

/** Gives the server a certificate for 127.0.0.1, signed by itself; returns its file. */
async function encrypt({ url, stop, start }: Awaited<ReturnType<typeof createCluster>>): Promise<string> {
  const folder = mkdtempSync(join(tmpdir(), 'omp-t-'));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  const [key, certificate] = ['server.key', 'server.crt'].map((name) => join(folder, name)) as [string, string];
  const asked = ['req', '-x509', '-newkey', 'rsa:2048', '-nodes', '-days', '2', '-subj', '/CN=127.0.0.1'];
  execFileSync('openssl', [...asked, '-addext', 'subjectAltName=IP:127.0.0.1', '-keyout', key, '-out', certificate], {
    stdio: 'pipe',
  });
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  const { rows } = await client.query<{ data_directory: string }>('show data_directory');
  const data = rows[0]?.data_directory ?? '';
  const { uid, gid } = serverUser();
  for (const file of [key, certificate]) {
    const copy = join(data, file === key ? 'server.key' : 'server.crt');
    copyFileSync(file, copy);
    chmodSync(copy, 0o600);
    if (uid !== undefined && gid !== undefined) chownSync(copy, uid, gid);
  }
  await client.query('alter system set ssl = on');
  await client.end();
  await stop();
  await start();
  return certificate;
}

async function dataDir(): Promise<string> {
  const folder = await makeDataDir();
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  return folder;
}

const open = async (data_dir: string) => {
  const ranking = { mode: 'hybrid', keyword_weight: 0.5 } as const;
  const context = contextOf({ embedder: hashingEmbedder(), ranking, data_dir });
  return (await openStoreOf('postgres', {}, context)) as WritableStore;
};

/** Every file with its contents and time. */
const stateOf = (folder: string) =>
  readdirSync(folder, { recursive: true, encoding: 'utf8' })
    .sort()
    .map((name) => {
      const path = join(folder, name);
      const { mtimeMs, size } = statSync(path);
      return { name, mtimeMs, size, text: statSync(path).isFile() ? readFileSync(path).toString('base64') : '' };
    });
const copies = () => readdirSync(tmpdir()).filter((name) => name.startsWith('omp-doctor-'));

it('of an empty data folder the doctor says what will be made, and makes nothing', async () => {
  const folder = join(await dataDir(), 'not', 'there');
  const findings = await findingsOn(undefined, {}, { data_dir: folder });
  expect(told(findings, 'ok')).toEqual([
    `connection: no database in ${folder} yet; the gateway creates an embedded one there at its first start`,
  ]);
  expect(() => statSync(folder)).toThrow('ENOENT');
});

it('an embedded database is checked on a copy, or through the gateway that runs on it, and never changes', async () => {
  const folder = await dataDir();
  const provider = await open(folder);
  await provider.add({ input: memoryOf('ana', 'lives in Lisbon') }, call);
  const running = await findingsOn(undefined, {}, { data_dir: folder });
  expect(told(running, 'problem')).toEqual([]);
  expect(told(running, 'ok')).toEqual(
    expect.arrayContaining([
      `connection: a gateway runs on the data folder ${folder}`,
      'embedding: the stored vectors were made by "test-trigram-hashing" (64 dimensions)',
      'indexes: all indexes of the gateway exist and are valid',
    ]),
  );
  expect((await provider.get({ id: 'mem_none', users: null, within: null }, call)) === undefined).toBe(true);
  await provider.close();

  const [before, left] = [stateOf(folder), copies()];
  const findings = await findingsOn(undefined, {}, { data_dir: folder });
  expect(told(findings, 'problem')).toEqual([]);
  expect(told(findings, 'ok')).toEqual(
    expect.arrayContaining([
      `connection: the embedded Postgres in ${folder} starts (checked on a copy)`,
      'embedding: the stored vectors were made by "test-trigram-hashing" (64 dimensions)',
      'indexes: all indexes of the gateway exist and are valid',
    ]),
  );
  const others = await findingsOn(undefined, {}, { data_dir: folder, embedder: hashingEmbedder(32) });
  expect(told(others, 'problem')).toEqual([expect.stringContaining('omp-gateway reembed')]);
  expect(stateOf(folder)).toEqual(before);
  expect(copies()).toEqual(left);
});

it('an embedded database that does not start is reported with its folder', async () => {
  const folder = await dataDir();
  const broken = join(folder, 'broken');
  mkdirSync(broken);
  cpSync(join(folder, 'postgres'), join(broken, 'postgres'), { recursive: true });
  truncateSync(join(broken, 'postgres', 'global', 'pg_control'), 100);
  const left = copies();
  const findings = await findingsOn(undefined, {}, { data_dir: broken });
  expect(told(findings, 'problem')).toEqual([
    expect.stringContaining(`the embedded Postgres in ${broken} does not start`),
  ]);
  expect(copies()).toEqual(left);
});
