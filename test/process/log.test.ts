import { spawn, spawnSync } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { closeSync, openSync } from 'node:fs';
import { request } from 'node:http';
import { resolve } from 'node:path';
import pg from 'pg';
import { describe, expect, onTestFinished, test } from 'vitest';
import { toHashedKey } from '../../src/auth/configured-keys.ts';
import { newKey } from '../../src/auth/credentials.ts';
import { embeddings, embeddingsServer, sendJson } from '../embedding/embeddings-server.ts';
import { eventually } from '../support/eventually.ts';
import { NO_SERVER, SERVER_URL } from '../support/postgres-server.ts';
import { startGateway, startProgram, temporaryFolder, watch } from './gateway.ts';
import { freePort } from './postgres-cluster.ts';

/** An empty database, without the extension, on the server; gone after the test. */
async function temporaryDatabase(): Promise<string> {
  const name = `omp_test_${randomBytes(6).toString('hex')}`;
  await onDatabase(SERVER_URL, `create database ${name}`);
  onTestFinished(() => onDatabase(SERVER_URL, `drop database ${name} with (force)`));
  const url = new URL(SERVER_URL);
  url.pathname = `/${name}`;
  return url.href;
}

async function onDatabase(url: string, statements: string): Promise<void> {
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  await client.query(statements).finally(() => client.end());
}

const MAIN = resolve('dist/src/main.js');

interface Line {
  readonly level: number;
  readonly msg: string;
  readonly [field: string]: unknown;
}

const linesOf = (printed: string): Line[] =>
  printed
    .split('\n')
    .filter((line) => line !== '')
    .map((line) => JSON.parse(line) as Line);

const MEMORY = { OMP_PROVIDER: 'memory' };

test('a request leaves one line, with what it takes to find it again', async () => {
  const { client, printed } = await startGateway({ env: MEMORY });
  const trace_id = 'a'.repeat(32);
  const headers = { 'x-request-id': 'r-1', traceparent: `00-${trace_id}-${'b'.repeat(16)}-01` };
  await client.ask('/memories/some-id', {}, headers);
  const found = await eventually(() => {
    const lines = linesOf(printed()).filter(({ request_id }) => request_id === 'r-1');
    expect(lines).toHaveLength(1);
    return lines[0] as Line;
  });
  expect(found).toEqual({
    level: 30,
    time: expect.any(Number),
    msg: 'request',
    request_id: 'r-1',
    trace_id,
    app: null,
    provider: 'memory',
    method: 'GET',
    route: '/memories/:id',
    status: 404,
    ms: expect.any(Number),
  });
});

test.for([
  ['info', false],
  ['debug', true],
] as const)('at level %s a probe leaves a line: %s', async ([OMP_LOG_LEVEL, told]) => {
  const { client, stop } = await startGateway({ env: { ...MEMORY, OMP_LOG_LEVEL } });
  for (const path of ['/livez', '/readyz', '/healthz']) await client.ask(path);
  const { stdout } = await stop();
  const routes = linesOf(stdout).flatMap(({ msg, route }) => (msg === 'request' ? [route] : []));
  expect(routes).toEqual(told ? ['/livez', '/readyz', '/healthz'] : []);
});

test('lines below the level are left out', async () => {
  const env = { ...MEMORY, OMP_LOG_LEVEL: 'warn', OMP_METRICS_PORT: '0' };
  const { child, ended, output } = startProgram({ env: { ...env, OMP_HOST: '0.0.0.0', OMP_SEARCH_MODE: 'keyword' } });
  // Told since it listens everywhere without a key.
  await output(/"level":40/);
  child.kill('SIGTERM');
  const { stdout, status } = await ended;
  expect(status).toBe(0);
  expect(linesOf(stdout).filter(({ level }) => level < 40)).toEqual([]);
});

describe('standard output', () => {
  const HAS_SCRIPT = spawnSync('script', ['--version'], { encoding: 'utf8' }).stdout?.includes('util-linux') === true;
  const environment = (folder: string) => ({
    PATH: process.env.PATH,
    TERM: 'xterm',
    OMP_DATA_DIR: folder,
    OMP_PORT: '0',
    OMP_PROVIDER: 'memory',
    OMP_SEARCH_MODE: 'keyword',
  });

  test('that is a terminal gets lines for people, to the last one', async ({ skip }) => {
    skip(!HAS_SCRIPT, 'script of util-linux is not installed');
    const folder = temporaryFolder();
    const command = `exec "${process.execPath}" "${MAIN}"`;
    const child = spawn('script', ['-qec', command, '/dev/null'], { env: environment(folder), cwd: folder });
    const { output, ended } = watch(child);
    const [, url = ''] = await output(/listens on (http:\/\/[\d.:]+)/);
    await fetch(`${url}/memories/some-id`);
    const [line] = await output(/\n[^\n]*request[^\n]*\n/);
    expect(line).toMatch(/\d\d:\d\d:\d\d/);
    expect(line).toContain('INFO');
    expect(line).toContain('/memories/:id');
    expect(line).not.toContain('"level"');
    // As Ctrl-C does.
    child.stdin?.write('\u0003');
    const { status, stdout } = await ended;
    expect(stdout).toContain('stopping');
    expect(status).toBe(0);
  });

  test('whose reader has gone does not end the gateway', async () => {
    const gateway = await startGateway({ env: MEMORY });
    gateway.child.stdout?.destroy();
    for (let i = 0; i < 20; i++) expect((await gateway.client.ask('/memories/some-id')).status).toBe(404);
    expect(await gateway.stop()).toMatchObject({ status: 0, stderr: '' });
  });

  test('that takes nothing, like a full disk, does not end the gateway, and does not keep it', async () => {
    const folder = temporaryFolder();
    const full = openSync('/dev/full', 'w');
    const port = await freePort();
    const env = { ...environment(folder), OMP_PORT: String(port) };
    const child = spawn(process.execPath, [MAIN], { env, cwd: folder, stdio: ['ignore', full, 'pipe'] });
    closeSync(full);
    const { ended } = watch(child);
    const url = `http://127.0.0.1:${port}`;
    await eventually(() => fetch(`${url}/livez`));
    for (let i = 0; i < 20; i++) expect((await fetch(`${url}/memories/some-id`)).status).toBe(404);
    child.kill('SIGTERM');
    expect(await ended).toMatchObject({ status: 0, stderr: '' });
  });

  test('whose reader does not read does not hold up requests', async () => {
    const gateway = await startGateway({ env: MEMORY });
    gateway.child.stdout?.pause();
    // More than a pipe and the reader's own buffer take.
    const id = 'x'.repeat(64);
    const ask = () => gateway.client.ask('/memories/some-id', {}, { 'x-request-id': id });
    for (let i = 0; i < 150; i++) {
      for (const { status } of await Promise.all(Array.from({ length: 20 }, ask))) expect(status).toBe(404);
    }
    gateway.child.stdout?.resume();
    const { status, stdout } = await gateway.stop();
    expect(status).toBe(0);
    expect(linesOf(stdout).filter(({ request_id }) => request_id === id)).toHaveLength(3_000);
  });
});

describe('what is never logged', () => {
  const SECRET = {
    content: 'zq-content-zq',
    user: 'zq-user-zq',
    query: 'zq-query-zq',
    tag: 'zq-tag-zq',
    embedding: 'sk-zq-embedding-zq',
  };

  test('contents, users, queries and keys, whatever succeeds or fails, at any level', async ({ skip }) => {
    skip(SERVER_URL === '', NO_SERVER);
    const key = newKey();
    const stranger = newKey();
    const DATABASE_URL = await temporaryDatabase();
    const service = await embeddingsServer();
    service.answer = embeddings(8);
    const gateway = await startGateway({
      env: {
        DATABASE_URL,
        OMP_SEARCH_MODE: 'hybrid',
        OMP_EMBEDDER: 'openai',
        OPENAI_BASE_URL: service.base_url,
        OPENAI_API_KEY: SECRET.embedding,
        OMP_AUTH_KEYS: JSON.stringify([{ name: 'editor', key: toHashedKey(key), grants: ['*:*'] }]),
        OMP_LOG_LEVEL: 'trace',
        OMP_METRICS_PORT: '0',
      },
    });
    const { client, url } = gateway;
    const authorization = { authorization: `Bearer ${key.key}` };
    const body = { user_id: SECRET.user, content: SECRET.content, tags: [SECRET.tag] };
    const statuses: number[] = [];
    const everything = async () => {
      const note = async (reply: Promise<{ status: number; body: unknown }>) => {
        const { status, body: answered } = await reply;
        statuses.push(status);
        return answered as { id?: string };
      };
      const { id = 'mem_none' } = await note(client.tell('POST', '/memories', body, authorization));
      const once = { ...authorization, 'idempotency-key': 'k1' };
      await note(client.tell('POST', '/memories', body, once));
      await note(client.tell('POST', '/memories', { ...body, content: `${SECRET.content}2` }, once));
      await note(client.ask(client.byId(id), {}, authorization));
      await note(client.tell('PATCH', client.byId(id), { content: `${SECRET.content} changed` }, authorization));
      await note(client.ask('/memories', { user_id: SECRET.user, tag: SECRET.tag }, authorization));
      await note(client.ask('/memories', { user_id: SECRET.user, cursor: SECRET.query }, authorization));
      await note(client.ask('/memories/search', { user_id: SECRET.user, q: SECRET.query }, authorization));
      await note(client.tell('POST', '/context', { user_id: SECRET.user, query: SECRET.query }, authorization));
      await note(client.ask('/audit', { user_id: SECRET.user }, authorization));
      await note(client.ask(client.byId(SECRET.content), {}, authorization));
      await note(client.tell('POST', '/memories', { ...body, confidence: SECRET.content }, authorization));
      await note(
        client.raw('/memories', {
          method: 'POST',
          body: `{"content":"${SECRET.content}`,
          headers: { ...authorization, 'content-type': 'application/json' },
        }),
      );
      await note(client.ask('/memories', { user_id: SECRET.user }, { authorization: `Bearer ${stranger.key}` }));
      await note(client.ask('/memories', { user_id: SECRET.user }, { 'x-api-key': SECRET.query }));
      await note(client.ask(`/${SECRET.content}`, { user_id: SECRET.user }, authorization));
      await note(client.tell('DELETE', client.byId(id), undefined, authorization));
    };
    await everything();
    expect(new Set(statuses)).toEqual(new Set([200, 201, 204, 400, 401, 404]));

    const leaving = request(`${url}/memories/search?user_id=${SECRET.user}&q=${SECRET.query}-new`, {
      headers: authorization,
    });
    leaving.on('error', () => {}).end();
    service.answer = () => leaving.destroy();
    await gateway.output(/"status":499/);

    // A service that repeats what it was sent, and a database that does so in its messages.
    service.answer = ({ input }, response) => sendJson(response, 500, { error: { message: `cannot embed ${input}` } });
    await everything();
    service.answer = ({ input }, response) => sendJson(response, 400, { error: { message: `cannot embed ${input}` } });
    await everything();
    service.answer = embeddings(8);
    await onDatabase(DATABASE_URL, 'alter table omp.memories add constraint c check (length(content) < 3) not valid');
    await everything();
    await onDatabase(
      DATABASE_URL,
      `create function omp.refuse() returns trigger language plpgsql as
      $$ begin raise exception '%', new.content using detail = new.content, hint = new.user_id, column = new.content; end $$;
      create trigger refuse before insert on omp.memories for each row execute function omp.refuse()`,
    );
    await everything();
    await onDatabase(DATABASE_URL, 'alter table omp.memories rename to gone');
    await everything();
    expect(new Set(statuses)).toContain(502);

    const { stdout, stderr } = await gateway.stop();
    expect(linesOf(stdout).filter(({ msg }) => msg === 'request').length).toBeGreaterThan(statuses.length - 1);
    const secret = [...Object.values(SECRET), key.key, stranger.key, toHashedKey(key)];
    const told = `${stdout}\n${stderr}`.split('\n').filter((line) => secret.some((text) => line.includes(text)));
    expect(told).toEqual([]);
  });
});
