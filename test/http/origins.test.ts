import { describe, expect, it } from 'vitest';
import { callTool, connect, toolError } from '../mcp/client.ts';
import type { Client, Fields } from '../support/client.ts';
import { expectError } from '../support/expect-error.ts';
import { knownCallers, type Rights } from '../support/known-callers.ts';
import { type ServerOptions, serverForTest } from '../support/server.ts';
import { freshUser } from '../support/subject.ts';
import type { WireContext, WireHit, WireMemory, WirePage } from '../support/wire.ts';

/*
 * Ways in beside the protocol, and changes at the same time: `test/conformance/origins.suite.ts` has the rest, for every store.
 */

const CRAWLED = { 'x-omp-untrusted': true };
const FORGED = { 'x-omp-origin': { key: 'boss', via: 'http' }, 'x-omp-untrusted': false };

const serve = async (options: ServerOptions = {}) => {
  const { authenticator, admit } = knownCallers();
  const { url, client } = await serverForTest({
    authenticator,
    mcp: { enabled: 'on' },
    compat: { interface: 'mem0', infer: 'reject' },
    ...options,
  });
  const user_id = freshUser();
  const as = (rights: Rights) => {
    const headers = admit(rights);
    const send = async (method: string, path: string, body?: unknown) => client.tell(method, path, body, headers);
    return {
      send,
      mcp: () => connect(`${url}/mcp/${user_id}`, 'auto', headers),
      mem0: (method: string, path: string, body?: unknown) => send(method, `/compat/mem0${path}`, body),
      add: async (fields: Fields) => (await send('POST', '/memories', { user_id, ...fields })).body as WireMemory,
    };
  };
  return {
    client,
    user_id,
    editor: as({ app: 'editor' }),
    crawler: as({ app: 'crawler', untrusted: true }),
    read: (id: string) => client.get(id),
  };
};
type Served = Awaited<ReturnType<typeof serve>>;

describe.each(['editor', 'crawler'] as const)('the key %s', (name) => {
  const stamp = (via: string) => ({ 'x-omp-origin': { key: name, via }, ...(name === 'crawler' && CRAWLED) });
  const stamped = async ({ read }: Served, id: string, via: string) => {
    const { 'x-omp-origin': origin, 'x-omp-untrusted': untrusted } = await read(id);
    expect({ 'x-omp-origin': origin, ...(untrusted !== undefined && { 'x-omp-untrusted': untrusted }) }).toEqual(
      stamp(via),
    );
  };

  it('[Decision 54] is named by its memories over MCP', async () => {
    const served = await serve();
    const agent = await served[name].mcp();
    const { id } = await callTool<WireMemory>(agent, 'add_memory', { content: 'tea' });
    await stamped(served, id, 'mcp');
    await callTool(agent, 'update_memory', { id, content: 'coffee' });
    await stamped(served, id, 'mcp');
    await expect(
      agent.callTool({ name: 'add_memory', arguments: { content: 'tea', ...FORGED } }),
    ).resolves.toMatchObject({
      isError: true,
    });
    await served[name].send('PATCH', `/memories/${id}`, { tags: ['t'] });
    await stamped(served, id, 'http');
  });

  it("[Decision 54] is named by its memories over mem0's interface", async () => {
    const served = await serve();
    const { mem0 } = served[name];
    const messages = [{ role: 'user', content: 'tea' }];
    const { body } = await mem0('POST', '/memories', {
      messages,
      user_id: served.user_id,
      infer: false,
      metadata: FORGED,
    });
    const { results } = body as { results: { id: string }[] };
    const id = results[0]?.id ?? '';
    await stamped(served, id, 'mem0');
    expect((await mem0('PUT', `/memories/${id}`, { text: 'coffee', metadata: FORGED })).status).toBe(200);
    await stamped(served, id, 'mem0');
    expect((await mem0('POST', '/memories', { messages, user_id: 'u', infer: false, ...FORGED })).status).toBe(400);
  });
});

describe('an untrusted key', () => {
  it('[Decision 54] changes and deletes nothing else over MCP', async () => {
    const { editor, crawler, read } = await serve();
    const memory = await editor.add({ content: 'tea' });
    const agent = await crawler.mcp();
    for (const [tool, args] of [
      ['update_memory', { id: memory.id, content: 'poison' }],
      ['update_memory', { id: memory.id, valid_to: '2001-01-01' }],
      ['delete_memory', { id: memory.id }],
    ] as const) {
      expect((await toolError(agent, tool, args)).code).toBe('scope_denied');
    }
    expect(await read(memory.id)).toEqual(memory);
  });

  it("[Decision 54] changes and deletes nothing else over mem0's interface", async () => {
    const { editor, crawler, read, user_id } = await serve();
    const memory = await editor.add({ content: 'tea' });
    const { mem0 } = crawler;
    for (const { status } of [
      await mem0('PUT', `/memories/${memory.id}`, { text: 'poison' }),
      await mem0('PUT', `/memories/${memory.id}`, { metadata: { a: 1 } }),
      await mem0('DELETE', `/memories/${memory.id}`),
      await mem0('DELETE', `/memories?user_id=${user_id}`),
    ]) {
      expect(status).toBe(403);
    }
    expect(await read(memory.id)).toEqual(memory);
  });

  it('[Decision 54] is told of its texts over MCP, however much is left out', async () => {
    const { crawler, editor } = await serve();
    const padding = Array.from({ length: 30 }, (_, index) => [`x-pad-${index}`, 'p'.repeat(900)]);
    const { id } = await crawler.add({ content: 'pay 6666', ...Object.fromEntries(padding) });
    const shown = await callTool(await editor.mcp(), 'get_memory', { id });
    expect(shown).toMatchObject({ truncated: true, ...CRAWLED });
  });

  it('[Decision 54] supersedes nothing once somebody else has written the text', async () => {
    const { crawler, editor, client, user_id } = await serve();
    const truth = await editor.add({ content: 'pay 1111' });
    const { id } = await crawler.add({ content: 'pay 6666', supersedes: [truth.id] });
    await editor.send('PATCH', `/memories/${id}`, { content: 'pay by card' });
    expect(await client.get(id)).toMatchObject({ content: 'pay by card', supersedes: [] });
    const { items } = await client.list({ user_id, current: 'true' });
    expect(items.map((item) => item.id)).toEqual([id, truth.id]);
  });

  it.each([
    ['changes', (client: Client, id: string) => client.tell('PATCH', client.byId(id), { content: 'poison' })],
    ['deletes', (client: Client, id: string) => client.tell('DELETE', client.byId(id))],
  ])('[Decision 54] %s no memory that a trusted key writes anew meanwhile', async (_, change) => {
    const { authenticator, admit } = knownCallers();
    let meanwhile: (() => Promise<unknown>) | undefined;
    const { client, url } = await serverForTest({
      authenticator,
      alter: (provider) => ({
        ...provider,
        async get(ref, call) {
          const memory = await provider.get(ref, call);
          const work = meanwhile;
          meanwhile = undefined;
          await work?.();
          return memory;
        },
      }),
    });
    const asCrawler = admit({ untrusted: true });
    const { id } = (await client.tell('POST', '/memories', { user_id: 'u', content: 'tea' }, asCrawler))
      .body as WireMemory;
    meanwhile = () => client.update(id, { content: 'written by hand' });
    const crawler = {
      ...client,
      tell: (method: string, path: string, body?: unknown) => client.tell(method, path, body, asCrawler),
    };
    expectError(await change(crawler, id), 'scope_denied');
    expect(await client.get(id), url).toMatchObject({ content: 'written by hand' });
  });
});

it('[Decision 54] [Decision 45] agents get what is marked only if they ask, with its mark', async () => {
  const { editor, crawler } = await serve();
  const fact = await editor.add({ content: 'drinks tea' });
  const poison = await crawler.add({ content: 'drinks tea, poison', supersedes: [fact.id] });
  const agent = await editor.mcp();
  const ids = async (asked: object) => {
    const { results } = await callTool<{ results: WireHit[] }>(agent, 'search_memories', { query: 'tea', ...asked });
    const { items } = await callTool<WirePage>(agent, 'list_memories', asked);
    const { citations } = await callTool<WireContext>(agent, 'get_context', { query: 'drinks tea', ...asked });
    return [results.map(({ memory }) => memory.id), items.map(({ id }) => id), citations.map((one) => one.memory_id)];
  };
  expect(await ids({})).toEqual(Array(3).fill([fact.id]));
  expect(await ids({ untrusted: true })).toEqual(Array(3).fill([poison.id]));
  const { text } = await callTool<WireContext>(agent, 'get_context', { query: 'drinks tea', untrusted: true });
  expect(text).toContain('[1] [untrusted] ');
  const shown = await callTool<WireMemory>(agent, 'get_memory', { id: poison.id });
  expect(shown).toMatchObject(CRAWLED);
  expect(shown).not.toHaveProperty('x-omp-origin');
  const { contents } = await agent.readResource({ uri: 'memory://profile' });
  expect(JSON.stringify(contents)).not.toContain('poison');
});

it("[Decision 54] no answer of mem0's interface, which cannot show the mark, has what is marked", async () => {
  const { editor, crawler, user_id, read } = await serve();
  const fact = await editor.add({ content: 'drinks tea' });
  const { id } = await crawler.add({ content: 'drinks tea, poison', supersedes: [fact.id] });
  const user = `user_id=${user_id}`;
  const ask = async (method: string, path: string, body?: object) => {
    const { text } = await editor.mem0(method, path, body);
    expect(text, path).not.toContain('poison');
    return text;
  };
  expect(await ask('POST', '/search', { query: 'tea', user_id })).toContain(fact.id);
  expect(await ask('GET', `/memories?${user}`)).toContain(fact.id);
  expect(await ask('POST', '/v3/memories/', { filters: { user_id } })).toContain(fact.id);
  for (const path of [`/memories/${id}`, `/v1/memories/${id}/`])
    expect(await ask('GET', path)).toContain('untrusted key');
  await ask('GET', `/memories/${id}/history`);
  await ask('PUT', `/memories/${id}`, { metadata: { a: 1 } });
  expect(await read(id)).not.toHaveProperty('x-mem0-metadata');
  // What the caller writes itself is shown, from then on.
  await ask('PUT', `/memories/${id}`, { text: 'drinks water' });
  expect(await ask('GET', `/memories/${id}/history`)).toContain('drinks water');
  await crawler.add({ content: 'poison' });
  await ask('DELETE', `/memories?${user}`);
  expect((await editor.send('GET', `/memories?${user}`)).text).not.toContain('poison');
});
