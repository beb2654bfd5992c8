import { execFile } from 'node:child_process';
import { existsSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { describe, expect, it } from 'vitest';
import { OmpError, type Provider } from '#contract';
import { blocks, read } from '../docs/markdown.ts';
import { temporaryFolder } from '../process/gateway.ts';
import { knownCallers } from '../support/known-callers.ts';
import { memoryOf } from '../support/requests.ts';
import { type ServerOptions, serverForTest } from '../support/server.ts';
import { freshUser } from '../support/subject.ts';

// The official client is installed from npm, not everywhere.
const LIBRARIES = new URL('../mapped-libraries/node_modules', import.meta.url);
const CLIENT = new URL('node_modules/mem0ai/dist/index.mjs', LIBRARIES);

interface Mem0Memory {
  readonly id: string;
  readonly memory: string;
  readonly metadata?: unknown;
}
interface Mem0Client {
  ping(): Promise<void>;
  add(messages: object[], options: object): Promise<{ results: Mem0Memory[] }>;
  get(id: string): Promise<Mem0Memory>;
  getAll(options: object): Promise<{
    results: Mem0Memory[];
    count: number;
    next: string | null;
    previous: string | null;
  }>;
  search(query: string, options: object): Promise<{ results: (Mem0Memory & { score: number })[] }>;
  update(id: string, fields: object): Promise<Mem0Memory>;
  history(id: string): Promise<object[]>;
  delete(id: string, options?: object): Promise<{ message: string }>;
  deleteAll(options: object): Promise<{ message: string }>;
}

const serve = (infer: 'reject' | 'verbatim' = 'reject', options: ServerOptions = {}) =>
  serverForTest({ compat: { interface: 'mem0', infer }, ...options });
const NOW = '2026-03-02T08:00:00.000Z';
const contents = (found: { results: readonly Mem0Memory[] }) => found.results.map(({ memory }) => memory);

describe.skipIf(!existsSync(CLIENT))("mem0's official client", () => {
  const clientAt = async (url: string, apiKey = 'any'): Promise<Mem0Client> => {
    process.env.MEM0_TELEMETRY = 'false';
    const { MemoryClient } = (await import(CLIENT.href)) as { MemoryClient: new (options: object) => Mem0Client };
    return new MemoryClient({ apiKey, host: `${url}/compat/mem0` });
  };
  const open = async (infer?: 'verbatim', apiKey = 'any', options?: ServerOptions): Promise<Mem0Client> =>
    clientAt((await serve(infer, options)).url, apiKey);

  it('adds, reads, finds, changes and deletes', async () => {
    const client = await open();
    await client.ping();
    const userId = freshUser();
    const messages = [
      { role: 'system', content: 'be kind' },
      { role: 'user', content: 'I drink green tea' },
      { role: 'assistant', content: 'Noted: green tea' },
    ];
    const { results } = await client.add(messages, { userId, infer: false, metadata: { topic: 'drinks' } });
    expect(results).toMatchObject([{ memory: 'I drink green tea', event: 'ADD' }, { memory: 'Noted: green tea' }]);
    const [{ id } = { id: '' }] = results;
    expect(await client.get(id)).toMatchObject({ memory: 'I drink green tea', userId, metadata: { topic: 'drinks' } });
    const found = await client.search('who drinks tea?', { filters: { user_id: userId }, topK: 1 });
    expect(found.results).toMatchObject([{ id, score: expect.any(Number) }]);
    expect(await client.update(id, { text: 'I drink mint tea' })).toMatchObject({ memory: 'I drink mint tea' });
    expect(await client.update(id, { metadata: { topic: 'tea' } })).toMatchObject({ metadata: { topic: 'tea' } });
    const sure = { filters: { user_id: userId }, threshold: 1 };
    expect(contents(await client.search('tea or chocolate', sure))).toEqual([]);
    // The official client writes names its own way.
    expect(await client.history(id)).toMatchObject(
      [
        ['ADD', null, 'I drink green tea'],
        ['UPDATE', 'I drink green tea', 'I drink mint tea'],
        ['UPDATE', 'I drink mint tea', 'I drink mint tea'],
      ].map(([event]) => ({ event })),
    );
    const page = await client.getAll({ filters: { AND: [{ user_id: userId }] }, page: 1, pageSize: 1 });
    expect([contents(page), page.next]).toEqual([['Noted: green tea'], '?page=2&page_size=1']);
    const last = await client.getAll({ filters: { user_id: userId }, page: 2, pageSize: 1 });
    expect([contents(last), last.next]).toEqual([['I drink mint tea'], null]);
    expect(await client.delete(id)).toEqual({ message: 'Memory deleted successfully!' });
    await expect(client.get(id)).rejects.toThrow(/no memory has this id/);
    await client.deleteAll({ userId });
    expect(contents(await client.getAll({ filters: { user_id: userId } }))).toEqual([]);
  });

  it('runs the code of docs/integrations/mem0-api.md', async () => {
    const { url } = await serve('verbatim');
    const [code] = blocks(read('docs/integrations/mem0-api.md')).filter(({ language }) => language === 'js');
    const folder = temporaryFolder();
    symlinkSync(fileURLToPath(LIBRARIES), join(folder, 'node_modules'));
    writeFileSync(join(folder, 'page.mjs'), (code?.code ?? '').replace('http://127.0.0.1:8080', url));
    const env = { PATH: process.env.PATH, HOME: folder, MEM0_TELEMETRY: 'false' };
    const { stdout } = await promisify(execFile)(process.execPath, ['page.mjs'], { cwd: folder, env });
    expect(stdout).toBe('I drink green tea\n');
  });

  it('keeps agents and runs apart', async () => {
    const client = await open();
    const userId = freshUser();
    const entities = [
      {},
      { agentId: 'a' },
      { agentId: 'a', runId: 'r/1' },
      { agentId: 'ab', runId: 'r/1' },
      { agentId: '-' },
    ];
    for (const [n, entity] of entities.entries()) {
      await client.add([{ role: 'user', content: `likes tea ${n}` }], { userId, infer: false, ...entity });
    }
    for (const [filters, expected] of [
      [{}, [0, 1, 2, 3, 4]],
      [{ agent_id: 'a' }, [1, 2]],
      [{ run_id: 'r/1' }, [2, 3]],
      [{ agent_id: 'a', run_id: 'r/1' }, [2]],
      [{ agent_id: '-' }, [4]],
    ] as const) {
      const texts = expected.map((n) => `likes tea ${n}`);
      const all = { filters: { user_id: userId, ...filters } };
      expect(contents(await client.getAll(all)).sort()).toEqual(texts);
      expect(contents(await client.search('tea', all)).sort()).toEqual(texts);
    }
    const best = await client.search('tea', { filters: { user_id: userId, run_id: 'r/1' }, topK: 1 });
    expect(best.results).toHaveLength(1);
    await client.deleteAll({ userId, agentId: 'a' });
    expect(contents(await client.getAll({ filters: { user_id: userId } }))).toHaveLength(3);
  });

  it('is told that "*" is no name, wherever it stands, and nothing is deleted', async () => {
    const client = await open();
    const userId = freshUser();
    await client.add([{ role: 'user', content: 'likes tea' }], { userId, agentId: 'a', infer: false });
    for (const name of ['userId', 'agentId', 'runId']) {
      const entity = { userId, [name]: '*' };
      const filters = { user_id: userId, [name.replace('Id', '_id')]: '*' };
      await expect(client.deleteAll(entity)).rejects.toThrow(/does not take \\"\*\\"/);
      await expect(client.getAll({ filters })).rejects.toThrow(/does not take/);
      await expect(client.search('tea', { filters })).rejects.toThrow(/does not take/);
      await expect(client.add([{ role: 'user', content: 'x' }], { ...entity, infer: false })).rejects.toThrow(
        /does not take/,
      );
    }
    expect(contents(await client.getAll({ filters: { user_id: userId } }))).toEqual(['likes tea']);
  });

  it('pages with the count and both neighbours, also of an agent', async () => {
    const client = await open();
    const userId = freshUser();
    for (let n = 0; n < 5; n++)
      await client.add([{ role: 'user', content: `${n}` }], { userId, infer: false, ...(n < 3 && { agentId: 'a' }) });
    for (const [filters, count] of [
      [{ user_id: userId }, 5],
      [{ user_id: userId, agent_id: 'a' }, 3],
      [{ user_id: userId, run_id: 'r' }, 0],
    ] as const) {
      const page = async (number: number) => {
        const { results, ...rest } = await client.getAll({ filters, page: number, pageSize: 2 });
        return { ...rest, length: results.length };
      };
      const at = (number: number) => (number * 2 < count ? `?page=${number + 1}&page_size=2` : null);
      expect(await page(1)).toEqual({ count, next: at(1), previous: null, length: Math.min(2, count) });
      const length = Math.max(0, Math.min(2, count - 2));
      expect(await page(2)).toEqual({ count, next: at(2), previous: '?page=1&page_size=2', length });
    }
  });

  it('deletes with a memory those that it supersedes, if asked, and brings none of them back', async () => {
    const { client: own, url } = await serve();
    const client = await clientAt(url);
    const userId = freshUser();
    const chain = async (...contents: string[]) => {
      let [last] = [undefined as string | undefined];
      for (const content of contents)
        last = (await own.add({ user_id: userId, content, supersedes: last ? [last] : [] })).id;
      return last as string;
    };
    const found = async () => contents(await client.search('lives', { filters: { user_id: userId } }));
    const [kept, gone] = [
      await chain('lives in A', 'lives in B'),
      await chain('lives in C', 'lives in D', 'lives in E'),
    ];
    await own.add({ user_id: freshUser(), content: 'lives with others' });
    expect((await found()).sort()).toEqual(['lives in B', 'lives in E']);
    const elsewhere = await own.add({ user_id: userId, scope: 'a/b', content: 'moves', supersedes: [kept] });
    await client.delete(elsewhere.id, { deleteLinked: true });
    await client.delete(gone, { deleteLinked: true });
    expect(await found()).toEqual(['lives in B']);
    await client.delete(kept, { deleteLinked: false });
    expect(await found()).toEqual(['lives in A']);
    await expect(client.delete(kept, { deleteLinked: 'maybe' })).rejects.toThrow(/delete_linked/);
  });

  it('is told of a call that is not served, which is no memory that is not there', async () => {
    const client = (await open()) as unknown as Record<string, (...args: unknown[]) => Promise<unknown>>;
    for (const [method, ...args] of [
      ['users'],
      ['deleteUser', { entity_id: 'u' }],
      ['deleteUsers', { userId: 'u' }],
      ['batchUpdate', [{ memoryId: 'm', text: 'x' }]],
      ['batchDelete', ['m']],
      ['feedback', { memoryId: 'm' }],
      ['getProfile', { entityId: 'u' }],
    ] as const) {
      const failure = await client[method]?.(...args).catch((error: Error) => error);
      expect(failure, method).toMatchObject({ message: expect.stringContaining('does not serve this call') });
      expect((failure as Error).name, method).not.toBe('MemoryNotFoundError');
    }
  });

  it('is told that no facts are extracted, unless messages are stored as they are', async () => {
    const messages = [{ role: 'user', content: 'I drink tea' }];
    await expect((await open()).add(messages, { userId: 'u' })).rejects.toThrow(/OMP_COMPAT_INFER=verbatim/);
    expect(contents(await (await open('verbatim')).add(messages, { userId: 'u' }))).toEqual(['I drink tea']);
  });

  it('has the grants of its key', async () => {
    const callers = knownCallers();
    const { authorization = '' } = callers.admit({ users: ['u'], grants: ['read:*'] });
    const client = await open(undefined, authorization.slice('Bearer '.length), {
      authenticator: callers.authenticator,
    });
    await expect(client.add([{ role: 'user', content: 'x' }], { userId: 'u', infer: false })).rejects.toThrow(
      /permission/,
    );
    await expect(client.search('x', { filters: { user_id: 'v' } })).rejects.toThrow(/permission/);
    expect(contents(await client.search('x', { filters: { user_id: 'u' } }))).toEqual([]);
  });
});

describe("the routes of mem0's server", () => {
  it('answer in its shapes, and errors with their detail', async () => {
    const { url } = await serve();
    const ask = async (method: string, path: string, body?: object) => {
      const headers = { 'content-type': 'application/json', 'x-api-key': 'any' };
      const response = await fetch(`${url}/compat/mem0${path}`, {
        method,
        headers,
        body: body && JSON.stringify(body),
      });
      return [response.status, await response.json()] as const;
    };
    const added = await ask('POST', '/memories', { messages: 'likes tea', user_id: 'u', infer: false });
    const id = (added[1] as { results: Mem0Memory[] }).results[0]?.id;
    // Without these, the Python client (2.2.1) does not begin.
    expect(await ask('GET', '/v1/ping/')).toMatchObject([
      200,
      { org_id: expect.any(String), project_id: expect.any(String) },
    ]);
    const memory = { id, memory: 'likes tea', user_id: 'u', hash: 'c25e4adfcdcf2a2b2d6f1d1ba9f1a8b1' };
    expect(added).toEqual([200, { results: [{ id, memory: 'likes tea', event: 'ADD', role: 'user' }] }]);
    expect(await ask('GET', `/memories/${id}`)).toMatchObject([
      200,
      { ...memory, hash: expect.stringMatching(/^[0-9a-f]{32}$/) },
    ]);
    expect(await ask('GET', '/memories?user_id=u&limit=5')).toMatchObject([200, { results: [{ id }] }]);
    expect(await ask('POST', '/search', { query: 'tea', user_id: 'u' })).toMatchObject([200, { results: [{ id }] }]);
    expect(await ask('PUT', `/memories/${id}`, { text: 'likes mint' })).toMatchObject([200, { memory: 'likes mint' }]);
    expect(await ask('DELETE', `/memories/${id}`)).toEqual([200, { message: 'Memory deleted successfully!' }]);
    for (const [method, path, body, detail] of [
      ['GET', '/memories', undefined, /user_id/],
      ['POST', '/search', { query: 'x', filters: { user_id: 'u', category: 'a' } }, /filters.category/],
      ['POST', '/search', { query: 'x', user_id: 'u', categories: ['a'] }, /categories/],
      ['POST', '/search', { query: 'x', user_id: 'v', filters: { user_id: 'u' } }, /user_id/],
      ['POST', '/search', { query: 'x', filters: { AND: [{ user_id: 'v' }, { user_id: 'u' }] } }, /user_id/],
      ['POST', '/search', { query: 'x', filters: { OR: [{ user_id: 'u' }] } }, /filters.OR/],
      ['POST', '/search', { query: 'x', filters: { AND: [{ AND: [{ user_id: 'u' }] }] } }, /filters.AND/],
      ['POST', '/memories', { messages: 'x', user_id: 'u', agent_id: '\ud800', infer: false }, /agent_id/],
      ['POST', '/memories', { messages: 'x', user_id: 'u', infer: false, expiration_date: '2030-01-01' }, /expiration/],
      ['GET', '/memories?user_id=u&limit=0', undefined, /limit/],
      ['DELETE', '/memories?user_id=u&app_id=a', undefined, /app_id/],
      ['DELETE', '/memories?user_id=u&agent_id=', undefined, /agent_id/],
      ['DELETE', '/memories?user_id=u&user_id=v', undefined, /user_id/],
      ['POST', '/v3/memories/?page=200&page_size=100', { filters: { user_id: 'u' } }, /10000/],
      ['POST', '/memories', { messages: [], user_id: 'u', infer: false }, /messages/],
      [
        'POST',
        '/memories',
        { messages: [{ role: 'user', content: [{ type: 'image_url' }] }], user_id: 'u', infer: false },
        /messages/,
      ],
    ] as const) {
      const [status, answer] = await ask(method, path, body);
      expect([status, answer]).toEqual([
        400,
        expect.objectContaining({ detail: expect.stringMatching(detail), error: expect.any(Object) }),
      ]);
    }
    expect((await ask('DELETE', '/memories?user_id=u'))[0]).toBe(200);
  });

  const alter = (provider: Provider): Provider => ({
    ...provider,
    capabilities: { ...provider.capabilities, max_content_length: 100 },
  });
  it('[Decision 12] leave out of a search what is outdated', async () => {
    const { client } = await serve();
    const user_id = freshUser();
    const old = await client.add({ user_id, content: 'lives in Lisbon' });
    await client.add({ user_id, content: 'lives in Porto', supersedes: [old.id] });
    const { body } = await client.tell('POST', '/compat/mem0/search', { query: 'lives in', user_id });
    expect(contents(body as { results: Mem0Memory[] })).toEqual(['lives in Porto']);
  });

  it('leave out messages without text, and say if others of a failed add were stored', async () => {
    const { url, client } = await serve('verbatim', { alter });
    const add = async (messages: object[]) => {
      const response = await fetch(`${url}/compat/mem0/memories`, {
        method: 'POST',
        headers: { 'content-type': 'application/json' },
        body: JSON.stringify({ messages, user_id: 'u' }),
      });
      return [response.status, await response.json()] as const;
    };
    const tea = { role: 'user', content: 'likes tea' };
    const call = { role: 'assistant', content: null, tool_calls: [] };
    expect(await add([tea, call, { role: 'assistant', content: ' ' }])).toMatchObject([
      200,
      { results: [{ memory: 'likes tea' }] },
    ]);
    expect(await add([call])).toEqual([200, { results: [] }]);
    expect(await add([tea, { role: 'user', content: `x${'a'.repeat(100)}` }])).toEqual([
      400,
      expect.objectContaining({ detail: expect.stringMatching(/number 2: content.*; 1 other messages were stored$/) }),
    ]);
    // A scope that another application wrote.
    await client.add({ user_id: 'u', content: 'from elsewhere', scope: 'mem0/agent/%zz/run/%' });
    const all = (await (await fetch(`${url}/compat/mem0/memories?user_id=u`)).json()) as { results: Mem0Memory[] };
    expect(contents(all)).toEqual(['from elsewhere', 'likes tea', 'likes tea']);
  });

  it('list and delete nothing of a scope that only resembles the one of the agent or the run', async () => {
    const { url } = await serve();
    const mem0 = (method: string, query: object) =>
      fetch(`${url}/compat/mem0/memories?${new URLSearchParams({ user_id: 'u', ...query })}`, { method });
    const scopes = [
      'mem0/agent/alice/run/r1',
      'mem0/agent/alice/run/other/run/r1',
      'mem0/agent/alice/run/r1/run/other',
      'mem0/agent/bob/notes/run/r1',
    ];
    for (const scope of scopes) {
      const body = JSON.stringify({ user_id: 'u', content: scope, scope });
      await fetch(`${url}/memories`, { method: 'POST', headers: { 'content-type': 'application/json' }, body });
    }
    const left = async () => contents((await (await mem0('GET', {})).json()) as { results: Mem0Memory[] }).sort();
    for (const query of [{ run_id: 'r1' }, { agent_id: 'alice' }, { agent_id: 'alice', run_id: 'r1' }]) {
      const listed = (await (await mem0('GET', query)).json()) as { results: Mem0Memory[] };
      expect(contents(listed), JSON.stringify(query)).toEqual([scopes[0]]);
    }
    for (const query of [{ run_id: 'r1' }, { agent_id: 'alice' }]) await mem0('DELETE', query);
    expect(await left()).toEqual(scopes.slice(1).sort());
  });

  /** A user with 50,000 memories of this scope, of which none is ever gone. */
  const endless = (scope: string) => {
    const counts = { lists: 0, deletes: 0, atOnce: 0, erases: 0 };
    let deleting = 0;
    const alter = (provider: Provider): Provider => ({
      ...provider,
      list: async ({ user_id, limit, after }) => {
        counts.lists++;
        const first = after ? Number(after.id) - 1 : 50_000;
        const items = Array.from({ length: Math.min(limit, first) }, (_, n) => ({
          ...memoryOf(user_id, `text ${first - n}`, { scope }),
          id: String(first - n).padStart(6, '0'),
          ...{ created_at: NOW, updated_at: NOW, embedding_model: null, status: null },
        }));
        return items;
      },
      delete: async () => {
        counts.deletes++;
        counts.atOnce = Math.max(counts.atOnce, ++deleting);
        await new Promise((resolve) => setImmediate(resolve));
        deleting--;
        return true;
      },
      erase: async () => {
        counts.erases++;
        return 50_000;
      },
    });
    return { counts, alter };
  };

  it('look at 10,000 memories for one list, however many have a scope that resembles that of the run', async () => {
    const { counts, alter } = endless('mem0/agent/a/run/other/run/r');
    const { client } = await serve('reject', { alter });
    for (const [method, path] of [
      ['GET', '/memories?user_id=u&run_id=r'],
      ['DELETE', '/memories?user_id=u&run_id=r'],
    ] as const) {
      counts.lists = 0;
      const { status, text } = await client.tell(method, `/compat/mem0${path}`);
      expect([status, text]).toEqual([400, expect.stringContaining('run_id: among the newest 10000 memories')]);
      expect(counts.lists).toBe(21);
    }
    expect(counts).toMatchObject({ deletes: 0, erases: 0 });
  });

  it('delete all of a run several at once, 10,000 in one call, and say that there are more', async () => {
    const { counts, alter } = endless('mem0/agent/-/run/r');
    const { client } = await serve('reject', { alter });
    const { status, text, headers } = await client.tell('DELETE', '/compat/mem0/memories?user_id=u&run_id=r');
    expect([status, text]).toEqual([
      429,
      expect.stringContaining('deleted 10000 memories, and there are more; call again'),
    ]);
    expect(headers.get('retry-after')).toBe('1');
    expect(counts).toMatchObject({ deletes: 10_000, atOnce: 20, erases: 0 });
  });

  it("delete all of a user by the gateway's own erase, unless the key may not read and delete everything", async () => {
    const { counts, alter } = endless('other');
    const callers = knownCallers();
    const { client, url } = await serve('reject', { alter, authenticator: callers.authenticator });
    expect((await client.tell('DELETE', '/compat/mem0/memories?user_id=u')).status).toBe(200);
    expect(counts).toMatchObject({ lists: 0, deletes: 0, erases: 1 });
    for (const rights of [
      { grants: ['read:*', 'delete:other'] },
      { grants: ['read:other', 'delete:*'] },
      { grants: ['*:*'], untrusted: true },
    ]) {
      counts.deletes = 0;
      const headers = callers.admit(rights);
      await fetch(`${url}/compat/mem0/memories?user_id=u`, { method: 'DELETE', headers });
      expect(counts, JSON.stringify(rights)).toMatchObject({ deletes: rights.untrusted ? 0 : 10_000, erases: 1 });
    }
  });

  it('answer at most 16 MiB', async () => {
    const { url, client } = await serve();
    const large = { user_id: 'u', content: 'tea', 'x-large': 'a'.repeat(1_000_000) };
    for (let n = 0; n < 17; n++) await client.add(large);
    const status = async (limit: number) =>
      (await fetch(`${url}/compat/mem0/memories?user_id=u&limit=${limit}`)).status;
    expect([await status(16), await status(17)]).toEqual([200, 400]);
  });

  it('have the audit log and the authentication of all others', async () => {
    const callers = knownCallers();
    const headers = callers.admit({ users: ['u'], grants: ['read:*'] }) as Record<string, string>;
    const { url } = await serve('verbatim', {
      authenticator: {
        authenticate: async (credential, call) => {
          if (credential === 'wrong') throw new OmpError('unauthorized', 'no such key');
          return callers.authenticator.authenticate(credential, call);
        },
      },
    });
    const wrong = { headers: { authorization: 'Token wrong' } };
    const refused = await fetch(`${url}/compat/mem0/memories?user_id=u`, wrong);
    expect([refused.status, await refused.json()]).toEqual([
      401,
      expect.objectContaining({ detail: expect.any(String), error: expect.objectContaining({ code: 'unauthorized' }) }),
    ]);
    await fetch(`${url}/compat/mem0/memories?user_id=u`, { headers });
    const { entries } = (await (await fetch(`${url}/audit?user_id=u`, { headers })).json()) as { entries: object[] };
    expect(entries).toMatchObject([{ action: 'list', outcome: 'ok' }]);
  });

  it('are off by default', async () => {
    const { url } = await serverForTest();
    expect((await fetch(`${url}/compat/mem0/memories?user_id=u`)).status).toBe(404);
  });
});
