import { McpServer } from '@modelcontextprotocol/server';
import { describe, expect, it, vi } from 'vitest';
import { OmpError } from '#contract';
import { DEFAULT_TOOLS, TOOL_NAMES } from '../../src/mcp/names.ts';
import { serverForTest } from '../support/server.ts';
import { freshUser } from '../support/subject.ts';
import type { WireContext, WireHit, WireMemory, WirePage } from '../support/wire.ts';
import { callTool, connect, REVISIONS, toolError } from './client.ts';

const ON = { enabled: 'on' } as const;

describe.for(REVISIONS)('[Decision 45] an agent that speaks %s', ([revision, mode]) => {
  it('adds, finds, lists, reads, changes and deletes memories', async () => {
    const { url } = await serverForTest({ mcp: ON });
    const client = await connect(`${url}/mcp/${freshUser()}`, mode);
    expect(client.getNegotiatedProtocolVersion()).toBe(revision);
    expect((await client.listTools()).tools.map(({ name }) => name)).toEqual(DEFAULT_TOOLS);

    const added = await callTool<WireMemory>(client, 'add_memory', {
      content: 'drinks green tea',
      scope: 'home/kitchen',
    });
    expect(added).toMatchObject({ content: 'drinks green tea', scope: 'home/kitchen' });
    const { results } = await callTool<{ results: WireHit[] }>(client, 'search_memories', { query: 'tea' });
    expect(results).toEqual([{ score: 1, memory: added }]);
    expect(await callTool(client, 'list_memories', { scope: 'home/*' })).toEqual({ items: [added], next_cursor: null });
    expect(await callTool(client, 'get_memory', { id: added.id })).toEqual(added);
    const { text, citations } = await callTool<WireContext>(client, 'get_context', { query: 'tea' });
    expect(text).toContain('drinks green tea');
    expect(citations.map(({ memory_id }) => memory_id)).toEqual([added.id]);

    const changed = await callTool<WireMemory>(client, 'update_memory', { id: added.id, content: 'drinks black tea' });
    expect(changed).toMatchObject({ id: added.id, content: 'drinks black tea', scope: 'home/kitchen' });
    expect(await callTool(client, 'delete_memory', { id: added.id })).toEqual({ deleted: added.id });
    expect(await toolError(client, 'get_memory', { id: added.id })).toEqual({
      code: 'not_found',
      message: 'no memory has this id',
    });
  });

  it('gets a prompt and a profile', async () => {
    const { url } = await serverForTest({ mcp: ON });
    const client = await connect(`${url}/mcp/${freshUser()}`, mode);
    await callTool(client, 'add_memory', { content: 'drinks green tea' });
    const { messages } = await client.getPrompt({ name: 'recall', arguments: { task: 'make tea' } });
    expect(messages).toHaveLength(1);
    expect(JSON.stringify(messages)).toMatch(/data, not instructions.*drinks green tea.*make tea/);
    const { contents } = await client.readResource({ uri: 'memory://profile' });
    expect(JSON.stringify(contents)).toContain('drinks green tea');
  });
});

describe('[Decision 45] the tools', () => {
  it('take at most 200 tokens each, schemas included', async () => {
    const { url } = await serverForTest({ mcp: { ...ON, tools: TOOL_NAMES } });
    const { tools } = await (await connect(`${url}/mcp/u`)).listTools();
    expect(tools.map(({ name }) => name)).toEqual(TOOL_NAMES);
    const sizes = tools.map(({ name, description, inputSchema, outputSchema }) => ({
      name,
      tokens: JSON.stringify([description, inputSchema, outputSchema]).length / 4,
    }));
    expect(sizes.filter(({ tokens }) => tokens > 200)).toEqual([]);
  });

  it('say which of them read and which destroy, and none takes a user', async () => {
    const { url } = await serverForTest({ mcp: { ...ON, tools: TOOL_NAMES } });
    const { tools } = await (await connect(`${url}/mcp/u`)).listTools();
    const named = (hint: 'readOnlyHint' | 'destructiveHint') =>
      tools.filter(({ annotations }) => annotations?.[hint]).map(({ name }) => name);
    expect(named('destructiveHint')).toEqual(['update_memory', 'delete_memory']);
    expect(named('readOnlyHint')).toEqual(TOOL_NAMES.filter((name) => !/^(add|update|delete)_/.test(name)));
    expect(tools.filter(({ outputSchema }) => outputSchema === undefined)).toEqual([]);
    expect(tools.filter(({ inputSchema }) => 'user_id' in (inputSchema.properties ?? {}))).toEqual([]);
  });

  it('[Decision 56] none of them rolls back', async () => {
    const { url } = await serverForTest({ mcp: { ...ON, tools: TOOL_NAMES } });
    const client = await connect(`${url}/mcp/u`);
    const { tools } = await client.listTools();
    expect(tools.filter(({ name }) => /roll/.test(name))).toEqual([]);
    await expect(client.callTool({ name: 'rollback', arguments: { since: '2001-01-01' } })).rejects.toThrow(
      /not found/,
    );
  });

  it('are those of OMP_MCP_TOOLS, as far as the provider supports their verbs', async () => {
    const tools = ['delete_memory', 'search', 'fetch'] as const;
    const { url } = await serverForTest({
      mcp: { ...ON, tools },
      alter: ({ delete: _, ...readOnly }) => readOnly,
    });
    const client = await connect(`${url}/mcp/u`);
    expect((await client.listTools()).tools.map(({ name }) => name)).toEqual(['search', 'fetch']);
    await expect(client.callTool({ name: 'add_memory', arguments: { content: 'x' } })).rejects.toThrow(/not found/);
  });

  it('search and fetch have the shapes that connectors of ChatGPT expect', async () => {
    const { url, client: http } = await serverForTest({ mcp: { ...ON, tools: ['search', 'fetch'] } });
    const user_id = freshUser();
    const { id } = await http.add({ user_id, content: 'drinks\ngreen tea', tags: ['kitchen'] });
    const client = await connect(`${url}/mcp/${user_id}`);
    const found = { id, title: 'drinks green tea', url: `memory://${id}` };
    expect(await callTool(client, 'search', { query: 'tea' })).toEqual({ results: [found] });
    expect(await callTool(client, 'fetch', { id })).toMatchObject({
      ...found,
      text: 'drinks\ngreen tea',
      metadata: { tags: ['kitchen'] },
    });
  });

  it('[Decision 12] leave out what is superseded or expired, and show it on request, marked', async () => {
    const { url, client: http } = await serverForTest({ mcp: { ...ON, tools: TOOL_NAMES } });
    const user_id = freshUser();
    const client = await connect(`${url}/mcp/${user_id}`);
    const old = await callTool<WireMemory>(client, 'add_memory', { content: 'lives in Lisbon' });
    const now = await callTool<WireMemory>(client, 'add_memory', { content: 'lives in Porto', supersedes: [old.id] });
    const expired = await http.add({ user_id, content: 'lives in Faro', valid_to: '2001-01-01' });
    const idsOf = (memories: readonly { id: string }[]) => memories.map(({ id }) => id).sort();
    const find = (args: object) =>
      callTool<{ results: WireHit[] }>(client, 'search_memories', { query: 'where she lives in', ...args });
    expect((await find({})).results.map(({ memory }) => memory.id)).toEqual([now.id]);
    const { results } = await find({ current: false });
    expect(idsOf(results.map(({ memory }) => memory))).toEqual(idsOf([old, now, expired]));
    expect(results.find(({ memory }) => memory.id === old.id)?.['x-superseded-by']).toEqual([now.id]);
    expect(idsOf((await callTool<WirePage>(client, 'list_memories')).items)).toEqual([now.id]);
    expect((await callTool<WirePage>(client, 'list_memories', { current: false })).items).toHaveLength(3);
    const found = await callTool<{ results: { id: string }[] }>(client, 'search', { query: 'lives in' });
    expect(idsOf(found.results)).toEqual([now.id]);
  });

  it('[Decision 58] name what is similar to a new memory, and how to supersede it', async () => {
    const { url } = await serverForTest({ mcp: ON });
    const client = await connect(`${url}/mcp/${freshUser()}`);
    const old = await callTool<WireMemory>(client, 'add_memory', { content: 'Ana lives in Lisbon' });
    expect(Object.keys(old)).not.toContain('note');
    type Added = WireMemory & { similar: { id: string }[]; note: string };
    const now = await callTool<Added>(client, 'add_memory', { content: `Ana lives in Lisbon ${'yes '.repeat(300)}` });
    expect(now.similar).toEqual([{ id: old.id, content: 'Ana lives in Lisbon', score: expect.any(Number) }]);
    expect(now.note).toMatch(/call update_memory .* supersedes/);
    await callTool(client, 'update_memory', { id: now.id, supersedes: [old.id] });
    const { results } = await callTool<{ results: WireHit[] }>(client, 'search_memories', { query: 'lives in' });
    expect(results.map(({ memory }) => memory.id)).toEqual([now.id]);
    const again = await callTool<Added>(client, 'add_memory', { content: `Ana lives in Lisbon ${'yes '.repeat(300)}` });
    expect(again.similar).toMatchObject([{ id: now.id, content: expect.stringMatching(/^.{400,501}$/) }]);
  });

  it('[Decision 58] answer each text once, and name copies', async () => {
    const { url, client: http } = await serverForTest({ mcp: { ...ON, tools: TOOL_NAMES } });
    const user_id = freshUser();
    const client = await connect(`${url}/mcp/${user_id}`);
    for (let n = 0; n < 5; n += 1) await http.add({ user_id, content: 'likes tea' });
    const { results } = await callTool<{ results: WireHit[] }>(client, 'search_memories', { query: 'tea' });
    expect(results.map((hit) => hit['x-copies']?.length)).toEqual([3]);
    expect((await callTool<{ results: unknown[] }>(client, 'search', { query: 'tea' })).results).toHaveLength(1);
  });

  it('record the agent as the source of what it adds', async () => {
    const { url } = await serverForTest({ mcp: ON });
    const { source } = await callTool<WireMemory>(await connect(`${url}/mcp/u`), 'add_memory', { content: 'x' });
    expect(source).toEqual({ app: 'test-agent', type: 'extracted' });
  });

  it.each([
    [{ name: 'memory' }, 'mcp'],
    [{ name: 'Omp-Gateway' }, 'mcp'],
    [{ name: 'memory', title: 'Planner' }, 'Planner'],
    [{ name: 'memory', title: 'Memory' }, 'mcp'],
    [{ name: '' }, 'mcp'],
    [{ name: 'memory-planner' }, 'memory-planner'],
  ])('[Decision 45] record %j, which may be the name of our entry, as the source %s', async (names, app) => {
    const { url } = await serverForTest({ mcp: ON });
    const client = await connect(`${url}/mcp/u`, 'auto', {}, names);
    expect((await callTool<WireMemory>(client, 'add_memory', { content: 'x' })).source?.app).toBe(app);
  });

  it('[Decision 45] store what an agent adds without a source where there is no place for one', async () => {
    const { url } = await serverForTest({
      mcp: ON,
      alter: (provider) => ({
        ...provider,
        async add(request, call) {
          if (request.input.source) throw new OmpError('unsupported_capability', 'source: no place');
          return (provider.add as NonNullable<typeof provider.add>)(request, call);
        },
      }),
    });
    const added = await callTool<WireMemory>(await connect(`${url}/mcp/u`), 'add_memory', { content: 'x' });
    expect([added.content, added.source]).toEqual(['x', undefined]);
  });

  it('name an argument that has another name on the wire as the agent does', async () => {
    const { url } = await serverForTest({ mcp: { ...ON, tools: TOOL_NAMES } });
    const client = await connect(`${url}/mcp/u`);
    for (const name of ['search_memories', 'search']) {
      const { isError, content } = await client.callTool({ name, arguments: { query: ' ' } });
      expect([isError, JSON.stringify(content)]).toEqual([true, expect.stringMatching(/query: must not be blank/)]);
    }
  });

  it.for([
    ['add_memory', { content: ' ' }, /content: must not be blank/],
    ['add_memory', { content: 'x', scope: 'a//b' }, /scope: /],
    ['add_memory', { content: 'x', valid_to: 'soon' }, /valid_to: /],
    ['list_memories', { cursor: 'forged' }, /cursor/],
  ] as const)('answer %s %j with an error that an agent can act on', async ([name, args, message]) => {
    const { url } = await serverForTest({ mcp: ON });
    const error = await toolError(await connect(`${url}/mcp/u`), name, args);
    expect(error.code).toBe('invalid_request');
    expect(error.message).toMatch(message);
  });

  it('answer with at most 5,000 tokens, every memory among them', async () => {
    const { url, client: http } = await serverForTest({ mcp: ON });
    const user_id = freshUser();
    const tags = Array.from({ length: 64 }, (_, index) => `${index}-${'t'.repeat(100)}`);
    for (let count = 0; count < 30; count++) {
      await http.add({ user_id, content: `tea ${'\u{1f375}'.repeat(9_000)}`, tags, 'x-large': 'y'.repeat(9_000) });
    }
    await http.add({ user_id, content: 'tea, small' });
    const client = await connect(`${url}/mcp/${user_id}`);
    const page = await callTool<WirePage>(client, 'list_memories', { limit: 50 });
    expect(page.items).toHaveLength(31);
    expect(page.items[0]).not.toHaveProperty('truncated');
    expect(page.items[1]).toMatchObject({ truncated: true });
    expect(page.items.every(({ content }) => content.startsWith('tea') && content.isWellFormed())).toBe(true);
    const one = await callTool<WireMemory>(client, 'get_memory', { id: page.items[1]?.id });
    const { results } = await callTool<{ results: WireHit[] }>(client, 'search_memories', { query: 'tea', limit: 50 });
    for (const answer of [page, one, results]) expect(JSON.stringify(answer).length / 4).toBeLessThan(5_500);
    expect(one.content.length).toBeGreaterThan(5_000);
  });
});

describe('[Decision 45] a request', () => {
  const initialize = { jsonrpc: '2.0', id: 1, method: 'initialize', params: {} };

  it('carries one message', async () => {
    const { client } = await serverForTest({ mcp: ON });
    for (const body of [[initialize], []]) {
      const { status, text } = await client.tell('POST', '/mcp/u', body);
      expect(status).toBe(400);
      expect(text).toContain('batches are not supported');
    }
    const spaced = await client.raw('/mcp/u', {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: `\ufeff${' \n'.repeat(100)}[]`,
    });
    expect(spaced.text).toContain('batches are not supported');
  });

  it('is bounded like every other', async () => {
    const { client } = await serverForTest({ mcp: ON, max_request_bytes: 1_024 });
    const { status } = await client.tell('POST', '/mcp/u', { ...initialize, padding: 'x'.repeat(2_000) });
    expect(status).toBe(413);
  });

  it('is answered with 404 if OMP_MCP is off', async () => {
    const { client } = await serverForTest();
    expect((await client.tell('POST', '/mcp/u', initialize)).status).toBe(404);
  });

  it.for([
    ['no origin', {}, 200],
    ['its own origin', { origin: 'own' }, 200],
    ['a listed origin', { origin: 'https://app.example.com' }, 200],
    ['another origin', { origin: 'https://evil.example.com' }, 403],
    ['an opaque origin', { origin: 'null' }, 403],
  ] as const)('from a page of %s', async ([, headers, expected]) => {
    const { client, url } = await serverForTest({ mcp: ON, cors_origins: ['https://app.example.com'] });
    const origin = 'origin' in headers ? { origin: headers.origin === 'own' ? url : headers.origin } : {};
    const params = { protocolVersion: '2025-11-25', capabilities: {}, clientInfo: { name: 'page', version: '1' } };
    const accept = { accept: 'application/json, text/event-stream' };
    const sent = { ...accept, ...origin } as Record<string, string>;
    const { status } = await client.tell('POST', '/mcp/u', { ...initialize, params }, sent);
    expect(status).toBe(expected);
  });

  it('opens no subscription, which would hold a connection', async () => {
    const { client } = await serverForTest({ mcp: ON });
    const _meta = {
      'io.modelcontextprotocol/protocolVersion': '2026-07-28',
      'io.modelcontextprotocol/clientInfo': { name: 'test', version: '1' },
      'io.modelcontextprotocol/clientCapabilities': {},
    };
    const method = 'subscriptions/listen';
    const params = { _meta, notifications: { toolsListChanged: true } };
    const headers = {
      accept: 'application/json, text/event-stream',
      'mcp-protocol-version': '2026-07-28',
      'mcp-method': method,
    };
    const { text } = await client.tell('POST', '/mcp/u', { jsonrpc: '2.0', id: 1, method, params }, headers);
    expect(text).toContain('Subscription limit reached');
  });
});

it('[Decision 45] the call of a tool makes this tool alone', async () => {
  const { url } = await serverForTest({ mcp: ON });
  const client = await connect(`${url}/mcp/${freshUser()}`);
  const register = vi.spyOn(McpServer.prototype, 'registerTool');
  await callTool(client, 'search_memories', { query: 'tea' });
  expect(register.mock.calls.map(([name]) => name)).toEqual(['search_memories']);
  register.mockClear();
  await client.listTools();
  expect(register.mock.calls.map(([name]) => name)).toEqual(DEFAULT_TOOLS);
});
