import { once } from 'node:events';
import { statSync } from 'node:fs';
import { type AddressInfo, createServer, type Socket } from 'node:net';
import { join, resolve } from 'node:path';
import { Client } from '@modelcontextprotocol/client';
import { StdioClientTransport } from '@modelcontextprotocol/client/stdio';
import { describe, expect, it, onTestFinished } from 'vitest';
import { toHashedKey } from '../../src/auth/configured-keys.ts';
import { newKey } from '../../src/auth/credentials.ts';
import { callTool, connect, type Mode, REVISIONS, toolError } from '../mcp/client.ts';
import { eventually } from '../support/eventually.ts';
import { FULL } from '../support/full.ts';
import type { WireContext, WireMemory, WirePage } from '../support/wire.ts';
import { dataFolder, FAST_START, serveHere, startGateway, startProgram } from './gateway.ts';

const KEYWORDS = { OMP_SEARCH_MODE: 'keyword' };

/** A client of the SDK that starts `omp-gateway mcp`; closed after the test at the latest. */
async function start(env: Record<string, string>, args: readonly string[] = [], mode: Mode = 'auto') {
  const transport = new StdioClientTransport({
    command: process.execPath,
    args: [...FAST_START, resolve('dist/src/main.js'), 'mcp', ...args],
    env: { PATH: process.env.PATH ?? '', ...env },
    stderr: 'pipe',
  });
  let stderr = '';
  transport.stderr?.on('data', (chunk: Buffer) => {
    stderr += chunk;
  });
  const strange: string[] = [];
  const client = new Client({ name: 'desktop', version: '1' }, { versionNegotiation: { mode } });
  // Anything on standard output that is no message.
  client.onerror = ({ message }) => strange.push(message);
  onTestFinished(() => client.close());
  await client.connect(transport, { timeout: 600_000 });
  /** Resolves when the process has ended. */
  const kill = async () => {
    const closed = new Promise<void>((done) => {
      client.onclose = done;
    });
    process.kill(transport.pid as number, 'SIGKILL');
    await closed;
  };
  return { client, strange, stderr: () => stderr, pid: transport.pid as number, kill };
}

describe('[Decision 45] omp-gateway mcp without a URL', () => {
  it.for(REVISIONS)('serves the store of this machine in revision %s', async ([revision, mode]) => {
    const env = { ...KEYWORDS, OMP_DATA_DIR: await dataFolder() };
    const first = await start(env, ['--user', 'ana'], mode);
    expect(first.client.getNegotiatedProtocolVersion()).toBe(revision);
    const added = await callTool<WireMemory>(first.client, 'add_memory', { content: 'drinks green tea' });
    expect(added.source).toEqual({ app: 'desktop', type: 'extracted' });
    await first.client.close();

    const second = await start(env, ['--user', 'ana'], mode);
    expect((await callTool<WirePage>(second.client, 'list_memories')).items).toEqual([added]);
    expect((await callTool<WireContext>(second.client, 'get_context', { query: 'tea' })).text).toContain('green tea');
    const { contents } = await second.client.readResource({ uri: 'memory://profile' });
    expect(JSON.stringify(contents)).toContain('green tea');
    await second.client.close();

    const other = await start({ ...env, OMP_USER_ID: 'ben' }, [], mode);
    expect((await callTool<WirePage>(other.client, 'list_memories')).items).toEqual([]);
    expect((await toolError(other.client, 'delete_memory', { id: added.id })).code).toBe('not_found');
    for (const { strange, stderr } of [first, second, other]) expect([strange, stderr()]).toEqual([[], '']);
  });

  it('answers a message with more than 500 values with an error, and the next one', async () => {
    const { client } = await start({ ...KEYWORDS, OMP_PROVIDER: 'memory' }, ['--user', 'ana']);
    const add = { name: 'add_memory', arguments: { content: 'drinks tea', tags: Array(500).fill('tea') } };
    await expect(client.callTool(add)).rejects.toThrow(/payload_too_large: the JSON holds more than 500 values/);
    expect((await callTool<WirePage>(client, 'list_memories')).items).toEqual([]);
  });

  it('answers its client before the store is open, and says at each call that it cannot be opened', async () => {
    const folder = await dataFolder();
    const { stop } = await startGateway({ env: { OMP_DATA_DIR: folder } });
    const { client, stderr } = await start({ ...KEYWORDS, OMP_DATA_DIR: folder }, ['--user', 'ana']);
    expect((await client.listTools()).tools).toHaveLength(7);
    const { code, message } = await toolError(client, 'list_memories');
    expect(code).toBe('provider_error');
    expect(message).toMatch(/cannot be opened: .* is in use by another omp-gateway/);
    expect(stderr()).toMatch(/is in use by another omp-gateway/);
    await stop();
    expect((await callTool<WirePage>(client, 'list_memories')).items).toEqual([]);
  });

  it('answers initialize while a server does not answer, and lists the tools once it does', async () => {
    const silent = createServer().listen(0, '127.0.0.1');
    await once(silent, 'listening');
    const sockets: Socket[] = [];
    silent.on('connection', (socket) => sockets.push(socket.on('error', () => {})));
    const { port } = silent.address() as AddressInfo;
    const { client } = await start({ DATABASE_URL: `postgres://x@127.0.0.1:${port}/x`, ...KEYWORDS }, [], 'legacy');
    const listing = client.listTools();
    await eventually(() => expect(sockets).not.toEqual([]));
    silent.close();
    for (const socket of sockets) socket.destroy();
    expect((await listing).tools).toHaveLength(7);
  });
});

/** What a client of that revision writes that calls a tool without waiting for anything, with no line end at the end. */
const CALLS = {
  '2025-11-25': [
    {
      id: 1,
      method: 'initialize',
      params: { protocolVersion: '2025-11-25', capabilities: {}, clientInfo: { name: 'script', version: '1' } },
    },
    { method: 'notifications/initialized' },
    { id: 2, method: 'tools/call', params: { name: 'add_memory', arguments: { content: 'drinks tea' } } },
    { id: 3, method: 'tools/list' },
    { id: 4, method: 'tools/call', params: { name: 'list_memories', arguments: {} } },
    { method: 'notifications/cancelled', params: { requestId: 4 } },
  ],
  '2026-07-28': [
    {
      id: 2,
      method: 'tools/call',
      params: {
        name: 'add_memory',
        arguments: { content: 'drinks tea' },
        _meta: {
          'io.modelcontextprotocol/protocolVersion': '2026-07-28',
          'io.modelcontextprotocol/clientInfo': { name: 'script', version: '1' },
          'io.modelcontextprotocol/clientCapabilities': {},
        },
      },
    },
  ],
};
const linesOf = (messages: readonly object[]) =>
  messages.map((message) => JSON.stringify({ jsonrpc: '2.0', ...message })).join('\n');

describe('[Decision 45] the end of omp-gateway mcp', () => {
  it.for(
    REVISIONS.flatMap(([revision]) => [
      [revision, 'its own store'],
      [revision, 'a URL'],
    ]),
  )('in revision %s every request that it read is answered first, with %s', async ([revision, where]) => {
    const url = where === 'a URL' ? (await serveHere()).url : undefined;
    const at: Record<string, string> = url === undefined ? { OMP_DATA_DIR: await dataFolder() } : { OMP_URL: url };
    const env = { ...KEYWORDS, ...at };
    const calls = CALLS[revision as keyof typeof CALLS];
    const { child, ended } = startProgram({ args: ['mcp', '--user', 'ana'], env, stdin: 'pipe' });
    child.stdin?.end(linesOf(calls));
    const { status, stdout, stderr } = await ended;
    const answers = stdout
      .trim()
      .split('\n')
      .map((line) => JSON.parse(line) as { id: number; result: { structuredContent?: WireMemory } });
    const cancelled = calls.flatMap(({ params }) => (params && 'requestId' in params ? [params.requestId] : []));
    const asked = calls.flatMap(({ id }) => (id === undefined || cancelled.includes(id) ? [] : [id]));
    expect(
      answers
        .map(({ id }) => id)
        .filter((id) => !cancelled.includes(id))
        .sort(),
    ).toEqual(asked);
    const added = answers.find(({ id }) => id === 2)?.result.structuredContent;
    expect([status, stderr, added?.content]).toEqual([0, '', 'drinks tea']);
    const next = url === undefined ? (await start(env, ['--user', 'ana'])).client : await connect(`${url}/mcp/ana`);
    expect((await callTool<WirePage>(next, 'list_memories')).items).toEqual([added]);
  });

  it.for([[['stdout']], [['stdout', 'stderr']]] as const)(
    'is clean when its client no longer reads %s',
    async ([closed]) => {
      const env = { ...KEYWORDS, OMP_PROVIDER: 'memory' };
      const { child, ended } = startProgram({ args: ['mcp', '--user', 'ana'], env, stdin: 'pipe' });
      for (const name of closed) child[name]?.destroy();
      // Its input stays open.
      child.stdin?.write(`${linesOf(CALLS['2025-11-25'])}\n`);
      expect((await ended).status).toBe(0);
    },
  );
});

describe('[Decision 45] several omp-gateway mcp on one data folder', () => {
  it('share the store, each for its own user, with the same tools as /mcp', async () => {
    const env = { ...KEYWORDS, OMP_DATA_DIR: await dataFolder() };
    const first = await start(env, ['--user', 'ana']);
    const second = await start(env, ['--user', 'ana']);
    const other = await start(env, ['--user', 'ben']);
    const added = await callTool<WireMemory>(first.client, 'add_memory', { content: 'drinks green tea' });
    expect(await callTool(second.client, 'get_memory', { id: added.id })).toEqual(added);
    const mine = await callTool<WireMemory>(second.client, 'add_memory', { content: 'likes cake' });
    expect((await callTool<WirePage>(first.client, 'list_memories')).items).toEqual([mine, added]);
    expect((await callTool<WirePage>(other.client, 'list_memories')).items).toEqual([]);
    expect(await toolError(other.client, 'delete_memory', { id: added.id })).toEqual(
      await toolError(first.client, 'delete_memory', { id: 'mem_of_nobody' }),
    );
    const mode = (path: string) => (statSync(join(env.OMP_DATA_DIR, 'mcp', path)).mode & 0o777).toString(8);
    expect(['.', 'socket', 'lock'].map(mode)).toEqual(['700', '600', '600']);
    for (const { strange, stderr } of [first, second, other]) expect([strange, stderr()]).toEqual([[], '']);

    for (const client of [first.client, second.client]) await client.close();
    expect((await callTool<WirePage>(other.client, 'list_memories')).items).toEqual([]);
    const { url } = await serveHere();
    expect(await other.client.listTools()).toEqual(await (await connect(`${url}/mcp`)).listTools());
  });

  it('answers its client while the process that has the store does not answer', async () => {
    const env = { ...KEYWORDS, OMP_DATA_DIR: await dataFolder() };
    const first = await start(env, ['--user', 'ana']);
    const { id } = await callTool<WireMemory>(first.client, 'add_memory', { content: 'drinks green tea' });
    process.kill(first.pid, 'SIGSTOP');
    const second = await start(env, ['--user', 'ana']);
    expect((await second.client.listTools()).tools).toHaveLength(7);
    const reading = callTool(second.client, 'get_memory', { id });
    await first.kill();
    expect(await reading).toMatchObject({ id });
  });

  it('say what helps once the process that has the store is silent for longer than a request may take, and go on when it does', async () => {
    const env = { ...KEYWORDS, OMP_DATA_DIR: await dataFolder() };
    const first = await start(env, ['--user', 'ana']);
    const { id } = await callTool<WireMemory>(first.client, 'add_memory', { content: 'drinks green tea' });
    const second = await start({ ...env, OMP_REQUEST_TIMEOUT_MS: '1' }, ['--user', 'ana']);
    expect(await callTool(second.client, 'get_memory', { id })).toMatchObject({ id });
    process.kill(first.pid, 'SIGSTOP');
    const third = await start({ ...env, OMP_REQUEST_TIMEOUT_MS: '1' }, ['--user', 'ana']);
    for (const { client } of [second, third]) {
      const { code, message } = await toolError(client, 'get_memory', { id });
      expect([code, message]).toEqual(['provider_error', expect.stringMatching(/let it continue, or end it/)]);
    }
    process.kill(first.pid, 'SIGCONT');
    for (const { client } of [second, third])
      expect(await callTool(client, 'get_memory', { id })).toMatchObject({ id });
  });

  it('lose nothing that was acknowledged, and store nothing twice, when the one with the store is killed again and again', async () => {
    const env = { ...KEYWORDS, OMP_DATA_DIR: await dataFolder() };
    const acknowledged: string[] = [];
    let running = [await start(env, ['--user', 'ana'])];
    for (let round = 0; round < (FULL ? 3 : 2); round++) {
      const others = await Promise.all([start(env, ['--user', 'ana']), start(env, ['--user', 'ana'])]);
      const [owner, ...rest] = running;
      const writers = others.map(async ({ client }, writer) => {
        for (let i = 0; i < 20; i++) {
          const content = `${round}.${writer}.${i}`;
          acknowledged.push((await callTool<WireMemory>(client, 'add_memory', { content })).content);
          if (writer === 0 && i === 10) await owner?.kill();
        }
      });
      await Promise.all(writers);
      await Promise.all(rest.map(({ kill }) => kill()));
      running = others;
    }
    const [last] = running;
    const stored: string[] = [];
    for (let cursor: string | null | undefined; cursor !== null; ) {
      const page: WirePage = await callTool(last?.client as Client, 'list_memories', {
        limit: 50,
        ...(cursor && { cursor }),
      });
      stored.push(...page.items.map(({ content }) => content));
      cursor = page.next_cursor;
    }
    expect(stored.sort()).toEqual(acknowledged.sort());
  });
});

describe('[Decision 45] omp-gateway mcp with a URL', () => {
  const key = newKey();
  const keys = [{ name: 'ana', key: toHashedKey(key), grants: ['read:*', 'write:*'], users: ['ana'] }];
  const gateway = () => serveHere({ OMP_AUTH_KEYS: JSON.stringify(keys) });

  it('has the same tools and results as /mcp', async () => {
    const { url } = await gateway();
    const { client, strange, stderr } = await start({ OMP_KEY: key.key, OMP_URL: url }, ['--user', 'ana']);
    const direct = await connect(`${url}/mcp`, 'auto', { authorization: `Bearer ${key.key}` });
    expect(await client.listTools()).toEqual(await direct.listTools());

    const added = await callTool<WireMemory>(client, 'add_memory', { content: 'drinks tea', tags: ['t'] });
    await callTool(client, 'update_memory', { id: added.id, scope: 'home' });
    for (const [name, args] of [
      ['get_memory', { id: added.id }],
      ['search_memories', { query: 'tea', scope: 'ho', limit: 5 }],
      ['list_memories', { tag: 't', since: '2020-01-01' }],
      ['get_context', { query: 'tea' }],
    ] as const) {
      expect(await callTool(client, name, args), name).toEqual(await callTool(direct, name, args));
    }
    for (const [name, args] of [
      ['get_memory', { id: 'nothing/here?x' }],
      ['delete_memory', { id: added.id }],
      ['add_memory', { content: ' ' }],
    ] as const) {
      expect(await toolError(client, name, args), name).toEqual(await toolError(direct, name, args));
    }
    expect([strange, stderr()]).toEqual([[], '']);
  });

  it.for([
    ['a wrong key', 'unauthorized', newKey().key, 'ana'],
    ['no key', 'unauthorized', '', 'ana'],
    ['another user', 'scope_denied', key.key, 'ben'],
  ] as const)('with %s the tools answer %s', async ([, code, OMP_KEY, user]) => {
    const { url } = await gateway();
    const { client } = await start({ OMP_KEY, OMP_URL: url, OMP_USER_ID: user });
    expect((await toolError(client, 'list_memories')).code).toBe(code);
  });

  it('starts without the gateway, and says what is missing', async () => {
    const { url, close } = await gateway();
    await close();
    const { client, stderr } = await start({}, ['--url', url, '--user', 'ana']);
    expect((await client.listTools()).tools).toHaveLength(7);
    const { code, message } = await toolError(client, 'list_memories');
    expect({ code, message }).toEqual({
      code: 'provider_error',
      message: `${url} does not answer; is the gateway running?`,
    });
    expect(stderr()).toContain('does not answer yet');
  });
});
