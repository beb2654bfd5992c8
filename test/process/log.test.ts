import { spawn, spawnSync } from 'node:child_process';
import { closeSync, openSync } from 'node:fs';
import { request } from 'node:http';
import { resolve } from 'node:path';
import { describe, expect, test } from 'vitest';
import { toHashedKey } from '../../src/auth/configured-keys.ts';
import { newKey } from '../../src/auth/credentials.ts';
import { embeddings, embeddingsServer, sendJson } from '../embedding/embeddings-server.ts';
import { testDatabase } from '../postgres/databases.ts';
import { eventually } from '../support/eventually.ts';
import { NO_SERVER, SERVER_URL } from '../support/postgres-server.ts';
import { startGateway, startProgram, temporaryFolder, watch } from './gateway.ts';
import { freePort } from './postgres-cluster.ts';

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

test('a request is one line, with its ids and its route', async () => {
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

test('lines below the level are left out', async () => {
  const env = { ...MEMORY, OMP_LOG_LEVEL: 'warn', OMP_METRICS_PORT: '0' };
  const { child, ended, output } = startProgram({
    env: { ...env, OMP_HOST: '0.0.0.0', OMP_AUTH: 'open', OMP_SEARCH_MODE: 'keyword' },
  });
  // The warning that it listens everywhere without a key.
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

  test('that is a terminal gets what a person wants next, then readable lines, the last one included', async ({
    skip,
  }) => {
    skip(!HAS_SCRIPT, 'script of util-linux is not installed');
    const folder = temporaryFolder();
    const command = `exec "${process.execPath}" "${MAIN}"`;
    const child = spawn('script', ['-qec', command, '/dev/null'], { env: environment(folder), cwd: folder });
    const { output, ended, printed } = watch(child);
    const [, url = ''] = await output(/Address +(http:\/\/[\d.:]+)[\s\S]*Ctrl-C/);
    expect(printed()).toContain(`Console  ${url}/console/`);
    expect(printed()).toContain('Data     in memory');
    expect(printed()).toMatch(/Access +open: no key is needed/);
    expect(printed()).toContain(`MCP      claude mcp add --transport http memory ${url}/mcp/`);
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

  test('that is closed does not end the gateway', async () => {
    const gateway = await startGateway({ env: MEMORY });
    gateway.child.stdout?.destroy();
    for (let i = 0; i < 20; i++) expect((await gateway.client.ask('/memories/some-id')).status).toBe(404);
    expect(await gateway.stop()).toMatchObject({ status: 0, stderr: '' });
  });

  test('on a full disk neither ends the gateway nor delays its end', async () => {
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

  test('that nobody reads does not delay requests', async () => {
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

  test('contents, users, queries and keys, on success and failure, at level trace', async ({ skip }) => {
    skip(SERVER_URL === '', NO_SERVER);
    const key = newKey();
    const stranger = newKey();
    const database = await testDatabase();
    const service = await embeddingsServer();
    service.answer = embeddings(8);
    const gateway = await startGateway({
      env: {
        DATABASE_URL: database.url,
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
      const { ask, tell, raw, byId } = client;
      const { user, query, content, tag } = SECRET;
      const added = await tell('POST', '/memories', body, authorization);
      const path = byId((added.body as { id?: string }).id ?? 'mem_none');
      const keyed = { ...authorization, 'idempotency-key': 'k1' };
      const broken = {
        method: 'POST',
        body: `{"content":"${content}`,
        headers: { 'content-type': 'application/json' },
      };
      const replies = [
        added,
        await tell('POST', '/memories', body, keyed),
        await tell('POST', '/memories', { ...body, content: `${content}2` }, keyed),
        await ask(path, {}, authorization),
        await tell('PATCH', path, { content: `${content} changed` }, authorization),
        await ask('/memories', { user_id: user, tag }, authorization),
        await ask('/memories', { user_id: user, cursor: query }, authorization),
        await ask('/memories/search', { user_id: user, q: query }, authorization),
        await tell('POST', '/context', { user_id: user, query }, authorization),
        await ask('/audit', { user_id: user }, authorization),
        await ask(byId(content), {}, authorization),
        await tell('POST', '/memories', { ...body, confidence: content }, authorization),
        await raw('/memories', { ...broken, headers: { ...broken.headers, ...authorization } }),
        await ask('/memories', { user_id: user }, { authorization: `Bearer ${stranger.key}` }),
        await ask('/memories', { user_id: user }, { 'x-api-key': query }),
        await ask(`/${content}`, { user_id: user }, authorization),
        await tell('DELETE', path, undefined, authorization),
      ];
      statuses.push(...replies.map(({ status }) => status));
    };
    await everything();
    expect(new Set(statuses)).toEqual(new Set([200, 201, 204, 400, 401, 404]));

    const leaving = request(`${url}/memories/search?user_id=${SECRET.user}&q=${SECRET.query}-new`, {
      headers: authorization,
    });
    leaving.on('error', () => {}).end();
    service.answer = () => leaving.destroy();
    await gateway.output(/"status":499/);

    // A service and a database that repeat contents in their errors.
    for (const status of [500, 400]) {
      service.answer = ({ input }, response) =>
        sendJson(response, status, { error: { message: `cannot embed ${input}` } });
      await everything();
    }
    service.answer = embeddings(8);
    await database.sql('alter table omp.memories add constraint c check (length(content) < 3) not valid');
    await everything();
    await database.sql(
      `create function omp.refuse() returns trigger language plpgsql as
      $$ begin raise exception '%', new.content using detail = new.content, hint = new.user_id, column = new.content; end $$;
      create trigger refuse before insert on omp.memories for each row execute function omp.refuse()`,
    );
    await everything();
    await database.sql('alter table omp.memories rename to gone');
    await everything();
    expect(new Set(statuses)).toContain(502);

    const { stdout, stderr } = await gateway.stop();
    expect(linesOf(stdout).filter(({ msg }) => msg === 'request').length).toBeGreaterThan(statuses.length - 1);
    const secret = [...Object.values(SECRET), key.key, stranger.key, toHashedKey(key)];
    const leaked = `${stdout}\n${stderr}`.split('\n').filter((line) => secret.some((text) => line.includes(text)));
    expect(leaked).toEqual([]);
  });
});
