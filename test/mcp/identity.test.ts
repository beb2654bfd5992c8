import { describe, expect, it, onTestFinished } from 'vitest';
import { openAuthenticator } from '../../src/auth/authenticator.ts';
import { toHashedKey } from '../../src/auth/configured-keys.ts';
import { newKey } from '../../src/auth/credentials.ts';
import { openLimits } from '../rate-limit/limits.ts';
import { serverForTest } from '../support/server.ts';
import { recordingLog } from '../support/subject.ts';
import type { WirePage } from '../support/wire.ts';
import { callTool, connect, REVISIONS, toolError } from './client.ts';

const ON = { enabled: 'on' } as const;

/** A closed gateway with one key for each of these rights, and a memory of ana and of ben. */
async function closedGateway() {
  const rights = {
    ana: { users: ['ana'], grants: ['*:*'] },
    both: { users: ['ana', 'ben'], grants: ['*:*'] },
    all: { grants: ['*:*'] },
    reader: { users: ['ana'], grants: ['read:*'] },
  };
  const made = Object.entries(rights).map(([name, granted]) => ({ name, granted, fresh: newKey() }));
  const authenticator = await openAuthenticator({
    keys: made.map(({ name, granted, fresh }) => ({ name, key: toHashedKey(fresh), ...granted })),
    store: undefined,
    jwt: undefined,
    required: true,
    log: recordingLog(),
  });
  onTestFinished(() => authenticator.close());
  const server = await serverForTest({ mcp: ON, authenticator });
  const keys = Object.fromEntries(made.map(({ name, fresh }) => [name, { authorization: `Bearer ${fresh.key}` }]));
  const headersOf = (key: string): Record<string, string> => keys[key] ?? { authorization: `Bearer ${newKey().key}` };
  const ids: Record<string, string> = {};
  for (const user_id of ['ana', 'ben']) {
    const { body } = await server.client.tell('POST', '/memories', { user_id, content: user_id }, headersOf('all'));
    ids[user_id] = (body as { id: string }).id;
  }
  return { ...server, headersOf, ids };
}

/** What the request names, by its URL and its header, and whose memories the tools then are. */
const CASES = [
  // Key, user in the URL, X-User-Id, result.
  ['ana', undefined, undefined, 'ana'],
  ['ana', 'ana', undefined, 'ana'],
  ['ana', undefined, 'ana', 'ana'],
  ['ana', 'ana', 'ana', 'ana'],
  ['ana', 'ben', undefined, 403],
  ['ana', undefined, 'ben', 403],
  ['ana', 'ana', 'ben', 400],
  ['both', undefined, undefined, 'unknown'],
  ['both', 'ben', undefined, 'ben'],
  ['both', undefined, 'ben', 'ben'],
  ['both', 'carl', undefined, 403],
  ['all', undefined, undefined, 'unknown'],
  ['all', 'ben', undefined, 'ben'],
  ['all', undefined, 'ben', 'ben'],
  ['all', 'ben', 'ana', 400],
  ['wrong', undefined, undefined, 401],
  ['wrong', 'ana', undefined, 401],
] as const;

describe('[Decision 45] whose memories the tools reach', () => {
  it.for(CASES)('key %s, path %s, X-User-Id %s: %s', async ([key, path, header, expected]) => {
    const { url, client: http, headersOf } = await closedGateway();
    const headers = { ...headersOf(key), ...(header !== undefined && { 'x-user-id': header }) };
    const at = path === undefined ? '/mcp' : `/mcp/${path}`;
    if (typeof expected === 'number') {
      const { status } = await http.tell('POST', at, { jsonrpc: '2.0', id: 1, method: 'initialize' }, headers);
      expect(status).toBe(expected);
      await expect(connect(url + at, 'legacy', headers)).rejects.toThrow();
      return;
    }
    for (const [, mode] of REVISIONS) {
      const client = await connect(url + at, mode, headers);
      if (expected === 'unknown') {
        const { code, message } = await toolError(client, 'list_memories');
        expect(code).toBe('invalid_request');
        expect(message).toMatch(/\/mcp\/\{user_id\}.*X-User-Id.*omp-gateway keys create/);
        await expect(client.readResource({ uri: 'memory://profile' })).rejects.toThrow(/X-User-Id/);
        continue;
      }
      const { items } = await callTool<WirePage>(client, 'list_memories');
      expect(items.map(({ content }) => content)).toEqual([expected]);
    }
  });

  it('an agent cannot choose another user, by an argument or by an id', async () => {
    const { url, headersOf, ids } = await closedGateway();
    for (const key of ['ana', 'both', 'all']) {
      const client = await connect(`${url}/mcp/ana`, 'auto', headersOf(key));
      const given = { name: 'add_memory', arguments: { content: 'x', user_id: 'ben' } };
      expect(await client.callTool(given)).toMatchObject({ isError: true });
      for (const name of ['get_memory', 'update_memory', 'delete_memory']) {
        expect((await toolError(client, name, { id: ids.ben })).code, `${key} ${name}`).toBe('not_found');
      }
      expect((await callTool<WirePage>(client, 'list_memories')).items).toHaveLength(1);
    }
  });

  it('[Decision 14] the grants of the key apply', async () => {
    const { url, headersOf, ids } = await closedGateway();
    const client = await connect(`${url}/mcp`, 'auto', headersOf('reader'));
    expect((await callTool<WirePage>(client, 'list_memories')).items).toHaveLength(1);
    expect((await toolError(client, 'add_memory', { content: 'x' })).code).toBe('scope_denied');
    expect((await toolError(client, 'delete_memory', { id: ids.ana })).code).toBe('scope_denied');
  });

  it('an open gateway takes the user of the URL or of the header', async () => {
    const { url } = await serverForTest({ mcp: ON });
    await callTool(await connect(`${url}/mcp/ana`), 'add_memory', { content: 'of ana' });
    for (const [at, headers, count] of [
      ['/mcp', { 'x-user-id': 'ana' }, 1],
      ['/mcp/ben', {}, 0],
      [`/mcp/${encodeURIComponent('ana/\u00e9')}`, {}, 0],
    ] as const) {
      const client = await connect(url + at, 'auto', headers);
      expect((await callTool<WirePage>(client, 'list_memories')).items).toHaveLength(count);
    }
    expect((await toolError(await connect(`${url}/mcp`), 'list_memories')).code).toBe('invalid_request');
  });

  it.for(['%20', 'x'.repeat(257), '%00'])('the path /mcp/%s names no user', async (path) => {
    const { client } = await serverForTest({ mcp: ON });
    const { status } = await client.tell('POST', `/mcp/${path}`, { jsonrpc: '2.0', id: 1, method: 'initialize' });
    expect(status).toBe(400);
  });
});

describe('[Decision 45] what holds for every request holds for tools', () => {
  it('[Decision 13] a closed gateway answers initialize without a credential with 401', async () => {
    const { client, url } = await closedGateway();
    const { status, headers } = await client.tell('POST', '/mcp/ana', { jsonrpc: '2.0', id: 1, method: 'initialize' });
    expect(status).toBe(401);
    expect(headers.get('www-authenticate')).toBe('Bearer realm="memories"');
    await expect(connect(`${url}/mcp/ana`)).rejects.toThrow();
  });

  it('[Decision 11] every tool call is in the audit log, with the key', async () => {
    const { url, client: http, headersOf } = await closedGateway();
    const client = await connect(`${url}/mcp`, 'auto', headersOf('ana'));
    await callTool(client, 'search_memories', { query: 'tea' });
    await toolError(client, 'get_memory', { id: 'nothing' });
    const { body } = await http.ask('/audit', { user_id: 'ana' }, headersOf('ana'));
    const { entries } = body as { entries: { action: string; app: string; result: string }[] };
    expect(entries.map(({ action, app }) => `${app} ${action}`)).toContain('ana search');
  });

  it('[Decision 17] a tool call counts as a request', async () => {
    const { requests } = await openLimits({ store: 'memory' }, { requests_per_minute: 10 });
    const { url } = await serverForTest({ mcp: ON, rate: { requests, failures: undefined } });
    const client = await connect(`${url}/mcp/ana`);
    const calls = Array.from({ length: 10 }, () => client.callTool({ name: 'list_memories', arguments: {} }));
    const results = await Promise.allSettled(calls);
    const rejected = results.filter(({ status }) => status === 'rejected');
    expect(rejected.length).toBeGreaterThan(0);
    expect(rejected.length).toBeLessThan(10);
  });
});

describe('[Decision 45] [Decision 13] the metadata of the protected resource', () => {
  const issuer = 'https://login.example.com/';
  const closed = async (audience: string) => {
    const { authenticator } = await (await import('../support/closed.ts')).closedTo('only');
    return serverForTest({ mcp: ON, authenticator, tokens: { issuer, audience } });
  };

  it('name the identity provider, and every 401 of the tools points to them', async () => {
    const { client, url } = await closed('omp-gateway');
    for (const path of ['/mcp', '/mcp/ana']) {
      const { headers } = await client.tell('POST', path, {});
      const metadata = `${url}/.well-known/oauth-protected-resource${path}`;
      expect(headers.get('www-authenticate')).toBe(`Bearer realm="memories", resource_metadata="${metadata}"`);
      const reply = await client.ask(`/.well-known/oauth-protected-resource${path}`);
      expect(reply.status).toBe(200);
      expect(reply.body).toEqual({
        resource: url + path,
        authorization_servers: [issuer],
        bearer_methods_supported: ['header'],
      });
    }
  });

  it('name the audience of the tokens if it is a URL, and the scheme of a proxy', async () => {
    const at = '/.well-known/oauth-protected-resource/mcp';
    const { client } = await closed('https://memory.example.com/mcp');
    expect((await client.ask(at)).body).toMatchObject({ resource: 'https://memory.example.com/mcp' });
    const { client: other, port } = await closed('omp-gateway');
    const { body } = await other.ask(at, {}, { 'x-forwarded-proto': 'https' });
    expect(body).toMatchObject({ resource: `https://127.0.0.1:${port}/mcp` });
  });

  it('do not exist without an identity provider', async () => {
    const { client } = await serverForTest({ mcp: ON });
    expect((await client.ask('/.well-known/oauth-protected-resource/mcp')).status).toBe(404);
  });
});
