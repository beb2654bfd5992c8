import { resolve } from 'node:path';
import { Client } from '@modelcontextprotocol/client';
import { StdioClientTransport } from '@modelcontextprotocol/client/stdio';
import { describe, expect, it, onTestFinished } from 'vitest';
import { toHashedKey } from '../../src/auth/configured-keys.ts';
import { newKey } from '../../src/auth/credentials.ts';
import { callTool, connect, type Mode, REVISIONS, toolError } from '../mcp/client.ts';
import type { WireContext, WireMemory, WirePage } from '../support/wire.ts';
import { dataFolder, runProgram, startGateway } from './gateway.ts';

const KEYWORDS = { OMP_SEARCH_MODE: 'keyword' };

/** A client of the SDK that starts `omp-gateway mcp`; closed after the test at the latest. */
async function start(env: Record<string, string>, args: readonly string[] = [], mode: Mode = 'auto') {
  const transport = new StdioClientTransport({
    command: process.execPath,
    args: [resolve('dist/src/main.js'), 'mcp', ...args],
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
  return { client, strange, stderr: () => stderr };
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
    const { client } = await start({ ...KEYWORDS, OMP_DATA_DIR: await dataFolder() }, ['--user', 'ana']);
    const add = { name: 'add_memory', arguments: { content: 'drinks tea', tags: Array(500).fill('tea') } };
    await expect(client.callTool(add)).rejects.toThrow(/payload_too_large: the JSON holds more than 500 values/);
    expect((await callTool<WirePage>(client, 'list_memories')).items).toEqual([]);
  });

  it('says on standard error that another process has the store', async () => {
    const folder = await dataFolder();
    await startGateway({ env: { OMP_DATA_DIR: folder } });
    const env = { ...KEYWORDS, OMP_DATA_DIR: folder };
    const { status, stdout, stderr } = await runProgram({ args: ['mcp'], env });
    expect({ status, stdout }).toEqual({ status: 1, stdout: '' });
    expect(stderr).toMatch(/is in use by another omp-gateway/);
  });

  it('says what is wrong with its arguments', async () => {
    for (const [args, status, message] of [
      [['mcp', '--key', 'x'], 2, /Unknown option '--key'/],
      [['mcp', '--url', 'localhost'], 1, /--url must be an http/],
    ] as const) {
      const ending = await runProgram({ args });
      expect([ending.status, ending.stdout]).toEqual([status, '']);
      expect(ending.stderr).toMatch(message);
    }
  });
});

describe('[Decision 45] omp-gateway mcp with a URL', () => {
  const key = newKey();
  const keys = [{ name: 'ana', key: toHashedKey(key), grants: ['read:*', 'write:*'], users: ['ana'] }];
  const gateway = () => startGateway({ env: { OMP_PROVIDER: 'memory', OMP_AUTH_KEYS: JSON.stringify(keys) } });

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
    ['a wrong key', newKey().key, 'ana', 'unauthorized'],
    ['no key', '', 'ana', 'unauthorized'],
    ['another user', key.key, 'ben', 'scope_denied'],
  ] as const)('with %s the tools answer %s', async ([, OMP_KEY, user, code]) => {
    const { url } = await gateway();
    const { client } = await start({ OMP_KEY, OMP_URL: url, OMP_USER_ID: user });
    expect((await toolError(client, 'list_memories')).code).toBe(code);
  });

  it('starts without the gateway, and says what is missing', async () => {
    const { url, stop } = await gateway();
    await stop();
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
