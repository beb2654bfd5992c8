import { EventEmitter, once as event } from 'node:events';
import { describe, expect, it } from 'vitest';
import { type AuditLog, Call, type Memory, type NewMemory, OmpError, type Provider } from '#contract';
import type { Store } from '../../src/core/store.ts';
import { createApp } from '../../src/http/app.ts';
import { unopenedStore } from '../../src/stores/unopened.ts';
import { eventually } from '../support/eventually.ts';
import { expectError } from '../support/expect-error.ts';
import { knownCallers } from '../support/known-callers.ts';
import { withoutOrigin } from '../support/origin.ts';
import { callBy, memoryOf } from '../support/requests.ts';
import { APP_LIMITS, clientTo, freshUser, gateOn, recordingLog } from '../support/subject.ts';
import type { WireChanges, WireErased, WireError, WirePage } from '../support/wire.ts';
import {
  altered,
  COMPLETE,
  CRM,
  down,
  exported,
  failing,
  HANDBOOK,
  leftOut,
  memory,
  once,
  open,
  PARTIAL,
  reads,
} from './mounts-subject.ts';

const call = callBy();

describe('[Decision 49] a store that fails', () => {
  it('fails every answer that it could be in, by its name, if it is required', async () => {
    const { client, add, as, user_id } = await open([HANDBOOK, { ...CRM, current: failing }]);
    await add('tea');
    for (const reply of await Promise.all(reads(client, user_id))) {
      expect(expectError(reply, 'provider_error').provider).toBe('crm');
    }
    expectError(await client.ask(client.byId('~crm~x')), 'provider_error');
    // Not asked: the filter, or no grant, reaches it.
    expect(leftOut(await client.ask('/memories', { user_id, scope: 'docs/*' }))).toEqual(COMPLETE);
    expect(leftOut(await client.ask('/memories/search', { user_id, q: 'tea', scope: 'docs' }))).toEqual(COMPLETE);
    const reader = as('*:docs/*', 'read:notes');
    for (const reply of await Promise.all(reads(reader, user_id))) expect(leftOut(reply)).toEqual(COMPLETE);
    expectError(await reader.ask(reader.byId('~crm~x')), 'not_found');
  });

  it('is left out and named, in body and header, if it is optional', async () => {
    const { client, add, as, user_id, all } = await open([HANDBOOK, { ...CRM, required: false, current: failing }]);
    await add('tea');
    await add('tea', 'docs/handbook');
    for (const reply of await Promise.all(reads(client, user_id))) expect(leftOut(reply)).toEqual(PARTIAL);
    expect((await client.list({ user_id })).items).toHaveLength(2);
    const reader = as('*:docs/*');
    for (const reply of await Promise.all(reads(reader, user_id))) expect(leftOut(reply)).toEqual(COMPLETE);
    expect(expectError(await client.ask(client.byId('~crm~x')), 'provider_error').provider).toBe('crm');
    let page = await client.ask('/export', { user_id });
    while (page.status === 200)
      page = await client.ask('/export', { user_id, cursor: String((page.body as WirePage).next_cursor) });
    expect(expectError(page, 'provider_error').provider).toBe('crm');
    // Without it, the gateway is ready.
    await all.ping(call);
  });

  it('[Decision 57] is asked for the neighbours of its own hits, and a store that has none says so', async () => {
    const current = once(altered(() => ({ neighbours: undefined as never })));
    const { client, add, user_id } = await open([HANDBOOK, { ...CRM, current }]);
    const source = { source: { ref: 'talk' } };
    const talk = async (scope: string | null) => {
      await add(`tea ${scope}`, scope, source);
      return (await add(`green ${scope}`, scope, source)).id;
    };
    const [own, mounted, unable] = [await talk(null), await talk('docs/handbook/a'), await talk('crm/a')];
    const query = { user_id, query: 'tea', min_score: 0.001, explain: true };
    const { citations } = await client.context(query);
    const explained = new Map(citations.map(({ memory_id, explanation }) => [memory_id, explanation]));
    for (const id of [own, mounted]) expect(explained.get(id)?.neighbour).toBeGreaterThan(0);
    expect(explained.get(unable)?.neighbour ?? null).toBeNull();
    expect([...explained].filter(([id]) => id.startsWith('~crm~')).map(([, one]) => one?.neighbours)).toContain(false);
  });

  it('is left out of the memories of changes if it is optional, and the log says why', async () => {
    let isDown = false;
    const current = once(altered(({ name, get }) => ({ get: (ref, own) => (isDown ? down(name) : get(ref, own)) })));
    const { client, add, user_id, subject } = await open([{ ...CRM, required: false, current }]);
    const made = [await add('tea', 'crm'), await add('coffee')];
    const read = async () => {
      const reply = await client.ask('/changes', { user_id, include: 'memory' });
      const { changes } = reply.body as WireChanges;
      return { shown: changes.map(({ memory }) => memory), left: leftOut(reply) };
    };
    expect(await read()).toEqual({ shown: made, left: COMPLETE });
    isDown = true;
    expect(await read()).toEqual({ shown: [undefined, made[1]], left: PARTIAL });
    const lines = subject.lines.filter(({ message }) => message === 'a store was left out');
    expect(lines).toEqual([
      expect.objectContaining({ level: 'warn', fields: expect.objectContaining({ provider: 'crm' }) }),
    ]);
  });

  it('has a share of the time of the request, if it is optional', async () => {
    const never = once(altered(() => ({ list: () => new Promise<never>(() => {}) })));
    const { all, user_id } = await open([{ ...CRM, required: false, current: never }]);
    const late = callBy().with({ deadline: performance.now() });
    expect(await all.list({ user_id, tags: [], within: null, limit: 9, max_bytes: 1e9 }, late)).toEqual([]);
    expect(late.leftOut).toEqual({ 'x-partial': ['crm'] });
    expect(late.aborted).toBe(false);
  });

  it('a request that ends does not count as a failure of the store', async () => {
    const never = once(altered(() => ({ list: () => new Promise<never>(() => {}) })));
    const { all, user_id } = await open([{ ...CRM, required: false, current: never }]);
    const ended = callBy().with({ deadline: performance.now() + 600_000 });
    const listing = all.list({ user_id, tags: [], within: null, limit: 9, max_bytes: 1e9 }, ended);
    ended.abort(new Error('gone'));
    await expect(listing).rejects.toThrow('gone');
    expect(ended.leftOut).toBeUndefined();
  });

  it('that opens later is there from then on', async () => {
    const placeholder = unopenedStore('crm');
    let isOpen = false;
    const { client, add, user_id, subject } = await open([
      HANDBOOK,
      { ...CRM, required: false, current: (store) => (isOpen ? store : placeholder) },
    ]);
    await add('tea');
    for (const reply of await Promise.all(reads(client, user_id))) expect(leftOut(reply)).toEqual(PARTIAL);
    const ofOrigin = await client.tell('GET', `/memories?user_id=${user_id}&origin=key:abc`);
    expect(leftOut(ofOrigin)).toEqual(PARTIAL);
    expectError(await client.tell('POST', '/memories', { user_id, content: 'x', scope: 'crm' }), 'provider_error');
    isOpen = true;
    const { id } = await add('tea', 'crm');
    expect(id).toMatch(/^~crm~/);
    for (const reply of await Promise.all(reads(client, user_id))) expect(leftOut(reply)).toEqual(COMPLETE);
    expect(JSON.stringify(await subject.client.capabilities())).toContain('"name":"crm"');
  });

  it('agents and clients of mem0 get its name too', async () => {
    const { all, user_id } = await open([{ ...CRM, required: false, current: failing }]);
    const log = recordingLog();
    const { gate } = gateOn(all, log);
    const { authenticator } = knownCallers();
    const app = createApp({
      gate,
      authenticator,
      log,
      compat: { interface: 'mem0', infer: 'reject' },
      mcp: { enabled: 'on' },
      ...APP_LIMITS,
    });
    const client = clientTo(app, { accept: 'application/json, text/event-stream' });
    for (const reply of [
      await client.tell('POST', '/compat/mem0/search', { user_id, query: 'tea' }),
      await client.ask('/compat/mem0/memories', { user_id }),
    ]) {
      expect(leftOut(reply)).toEqual(PARTIAL);
    }
    const removed = await client.tell('DELETE', `/compat/mem0/memories?user_id=${user_id}`);
    expect(removed).toMatchObject({ status: 502, body: { error: { code: 'provider_error', provider: 'crm' } } });
    for (const name of ['search_memories', 'list_memories', 'get_context']) {
      const params = { name, arguments: name === 'list_memories' ? {} : { query: 'tea' } };
      const reply = await client.tell('POST', `/mcp/${user_id}`, {
        jsonrpc: '2.0',
        id: 1,
        method: 'tools/call',
        params,
      });
      expect(reply.text, name).toMatch(/x-partial[^}]*crm/);
    }
  });
});

describe('[Decision 49] a store that lacks a verb', () => {
  const PLAIN = { ...CRM, open: memory('none') };
  it('is named where others answer, unless no grant reaches it', async () => {
    const { client, as, add, user_id } = await open([HANDBOOK, PLAIN]);
    await add('tea', 'crm/x');
    const without = { ...COMPLETE, without: [['crm'], 'crm'] };
    expect(leftOut(await client.ask('/stats', { user_id }))).toEqual(without);
    expect(leftOut(await client.ask('/users', { prefix: user_id }))).toEqual(without);
    expect(leftOut(await as('read:docs/*').ask('/stats', { user_id }))).toEqual(COMPLETE);
    expect(expectError(await as('read:crm/*').ask('/stats', { user_id }), 'unsupported_capability').provider).toBe(
      'crm',
    );
    expect(leftOut(await client.ask('/memories', { user_id }))).toEqual(COMPLETE);
  });

  it('filters that it does not support are rejected with its name', async () => {
    const timeless = once((store) => ({
      ...store,
      capabilities: { ...store.capabilities, temporal: false, temporal_search: false, explain: false },
    }));
    const { client, user_id } = await open([HANDBOOK, { ...CRM, current: timeless }]);
    const rejected = [
      await client.ask('/memories', { user_id, since: '2020-01-01' }),
      await client.ask('/memories/search', { user_id, q: 'tea', explain: 'true' }),
      await client.ask('/memories/search', { user_id, q: 'tea', since: '2020-01-01' }),
      await client.tell('POST', '/context', { user_id, query: 'tea', until: '2030-01-01' }),
    ];
    for (const reply of rejected) expect(expectError(reply, 'unsupported_capability').provider).toBe('crm');
    expect((await client.ask('/memories', { user_id, since: '2020-01-01', scope: 'docs/*' })).status).toBe(200);
    const inDocs = { user_id, q: 'tea', since: '2020-01-01', scope: 'docs/handbook' };
    expect((await client.ask('/memories/search', inDocs)).status).toBe(200);
  });

  it('[Decision 18] a search by a tag names it if it has none, and finds those of the others below their scopes', async () => {
    const alter = (provider: Provider): Provider => ({
      ...provider,
      capabilities: { ...provider.capabilities, tags: false },
    });
    const { client, add, user_id } = await open([HANDBOOK, { ...CRM, open: (own) => memory()({ ...own, alter }) }]);
    const { id } = await add('tea', 'docs/handbook', { tags: ['t'] });
    await add('tea', 'docs/handbook');
    const query = { user_id, q: 'tea', tag: 't' };
    const rejected = await client.ask('/memories/search', query);
    expect(expectError(rejected, 'unsupported_capability').provider).toBe('crm');
    expect((await client.search({ ...query, scope: 'docs/' })).map(({ memory }) => memory.id)).toEqual([id]);
  });

  it('erase is no success while it may hold the user', async () => {
    const { client, add, user_id } = await open([
      HANDBOOK,
      { ...CRM, current: once(altered(() => ({ erase: undefined }) as never)) },
    ]);
    await add('tea', 'docs/handbook');
    await add('tea');
    expect(await client.erase(user_id)).toBe(2);
    await add('tea');
    const { id } = await add('tea', 'crm');
    const failure = expectError(await client.tell('DELETE', `/users/${user_id}/memories`), 'unsupported_capability');
    expect(failure).toMatchObject({
      provider: 'crm',
      message: expect.stringContaining('was erased in handbook, memory'),
    });
    expect((await client.list({ user_id })).items.map((one) => one.id)).toEqual([id]);
    await client.remove(id);
    expect(await client.erase(user_id)).toBe(0);
  });

  it('[Decision 62] an erase that outlasts the request says where it is still running, and goes on', async () => {
    const gate = new EventEmitter();
    const slow = altered(({ erase }) => ({
      async erase(...own) {
        const goesOn = event(gate, 'go on');
        gate.emit('started');
        await goesOn;
        return erase(...own);
      },
    }));
    const { all, client, add, user_id } = await open([{ ...CRM, current: once(slow) }]);
    await add('tea', 'crm');
    const call = new Call('erase');
    const started = event(gate, 'started');
    const answer = all.erase({ user_id }, call);
    await started;
    call.abort(new OmpError('provider_error', 'the request took too long'));
    await expect(answer).rejects.toMatchObject({
      message: expect.stringMatching(/still running in crm: repeat the request .* was erased in no store$/),
    });
    expect((await client.list({ user_id })).items).toHaveLength(1);
    gate.emit('go on');
    await eventually(async () => expect((await client.list({ user_id })).items).toEqual([]));
  });

  it('[Decision 62] the receipt of an erase has a part for each store, and is not complete without an optional one that fails', async () => {
    let isDown = false;
    const current = once(altered(({ name, erase }) => ({ erase: (...own) => (isDown ? down(name) : erase(...own)) })));
    const { client, add, user_id } = await open([HANDBOOK, { ...CRM, required: false, current }]);
    const fill = async () => {
      for (const scope of [null, 'docs/handbook', 'crm']) await add('tea', scope);
    };
    await fill();
    const one = { removed: { memories: 1 }, left: { memories: 0 }, read_back: 'counted' };
    const whole = await client.receipt(user_id);
    expect(whole).toMatchObject({
      complete: true,
      stores: ['handbook', 'crm', 'memory'].map((name) => ({ name, ...one })),
    });
    await fill();
    isDown = true;
    const reply = await client.tell('DELETE', `/users/${user_id}/memories`);
    const failed = { name: 'crm', removed: {}, left: {}, read_back: 'failed' };
    expect(reply.body).toMatchObject({ deleted: 2, receipt: { complete: false }, 'x-partial': ['crm'] });
    expect((reply.body as WireErased).receipt.stores).toContainEqual(failed);
  });
});

it('[Decision 53] all stores are frozen, or none', async () => {
  const frozen = async (store: Store) => ((await store.freezing?.current(call)) ? 'frozen' : 'open');
  let isDown = true;
  const current = once(
    altered(({ name, freezing }) => ({
      freezing: { ...freezing, freeze: (request, own) => (isDown ? down(name) : freezing.freeze(request, own)) },
    })),
  );
  const { all, root, client, user_id } = await open([HANDBOOK, { ...CRM, current }]);
  const stores = [root, ...(all.mounts?.stores ?? []).map((one) => one.current())];
  const states = () => Promise.all(stores.map(frozen));
  await expect(all.freezing.freeze({ by: 'ana' }, call)).rejects.toThrow('it does not answer');
  expect(await states()).toEqual(['open', 'open', 'open']);
  isDown = false;
  await all.freezing.freeze({ by: 'ana' }, call);
  expect(await states()).toEqual(['frozen', 'frozen', 'frozen']);
  for (const scope of [null, 'crm', 'docs/handbook'])
    expect((await client.tell('POST', '/memories', { user_id, content: 'x', scope })).status, `${scope}`).toBe(503);
  await all.freezing.unfreeze(call);
  expect(await states()).toEqual(['open', 'open', 'open']);
});

describe('[Decision 49] unions', () => {
  it('count users and memories of all stores, each user once', async () => {
    const { client } = await open();
    const run = freshUser();
    const users = ['a', 'b', 'c', 'd', 'e', 'f'].map((name) => `${run}-${name}`);
    const scopes = [null, 'crm', 'docs/handbook/x', 'crm/y'];
    for (const [i, user_id] of users.entries()) {
      for (const [j, scope] of scopes.entries()) {
        if ((i + 1) & (1 << (j % 3))) await client.add({ user_id, scope, content: `${i} ${j}`, tags: ['t', `t${j}`] });
      }
    }
    const due = users.map((user_id, i) => ({
      user_id,
      count: scopes.filter((_, j) => (i + 1) & (1 << (j % 3))).length,
    }));
    for (const limit of [1, 2, 4, 50]) {
      const found: { user_id: string; count: number }[] = [];
      for (let cursor: string | undefined; ; ) {
        const { items, next_cursor } = await client.users({ prefix: run, limit, cursor });
        expect(items.length).toBeLessThanOrEqual(limit);
        found.push(...items.map(({ user_id, count }) => ({ user_id, count })));
        if (next_cursor === null) break;
        cursor = next_cursor;
      }
      expect(found.sort((a, b) => (a.user_id < b.user_id ? -1 : 1))).toEqual(due);
    }
    const last = users.at(-2) as string;
    const { items } = await client.list({ user_id: last });
    const times = items.map(({ created_at }) => created_at).sort();
    const stats = await client.stats(last);
    expect(stats).toMatchObject({
      count: items.length,
      oldest: times[0],
      newest: times.at(-1),
      created: { per: 'day' },
    });
    expect(stats.scopes.map(({ scope }) => scope).sort()).toEqual(items.map(({ scope }) => scope).sort());
    expect(stats.tags[0]).toEqual({ tag: 't', count: items.length });
  });

  it('export what is named by its ids', async () => {
    const { client, add, user_id } = await open();
    const memories = [];
    for (const scope of [null, 'crm', 'docs/handbook']) memories.push(await add(`in ${scope}`, scope));
    await add('another', 'crm');
    const wanted = memories.map(({ id }) => id);
    const query = new URLSearchParams({ user_id });
    for (const id of wanted) query.append('id', id);
    const found = (await exported(client, `${query}`)).memories.map(({ id }) => id);
    expect(found.sort()).toEqual(wanted.sort());
  });

  it('export what has changed since a time, and name the store that cannot tell; alone it is an error', async () => {
    const timeless = once(
      altered((store) => ({
        export: async (query, call) => {
          if (query.since !== undefined) throw new OmpError('unsupported_capability', 'since: no times');
          return store.export(query, call);
        },
      })),
    );
    const { client, add, user_id } = await open([{ ...HANDBOOK, current: timeless }, CRM]);
    for (const scope of [null, 'docs/handbook', 'crm']) await add(`in ${scope}`, scope);
    const { replies, memories } = await exported(client, `${new URLSearchParams({ user_id, since: '2020-01-01' })}`);
    expect(memories.map(({ content }) => content)).toEqual(['in null', 'in crm']);
    const without = replies.map((reply) => leftOut(reply).without[1]);
    expect(without.filter((name) => name !== null)).toEqual(['handbook']);
    const alter = (provider: Provider): Provider => ({ ...provider, export: undefined });
    const alone = await open([{ ...HANDBOOK, current: timeless }], { alter });
    expectError(await alone.client.ask('/export', { since: '2020-01-01' }), 'unsupported_capability');
  });

  it('export everything, and import it into the same stores elsewhere', async () => {
    const from = await open();
    for (const scope of [null, 'crm', 'crm/a', 'docs/handbook']) await from.add(`in ${scope}`, scope);
    const query = new URLSearchParams({ user_id: from.user_id, limit: '1' });
    const { memories } = await exported(from.client, `${query}`);
    expect(memories).toHaveLength(4);
    const to = await open();
    const load = async (all: readonly object[]) =>
      (
        (await to.client.tell('POST', '/import', { memories: all })).body as {
          results: { outcome?: string; error?: WireError['error'] }[];
        }
      ).results;
    expect((await load(memories)).map(({ outcome }) => outcome)).toEqual(Array(4).fill('stored'));
    expect((await load(memories)).map(({ outcome }) => outcome)).toEqual(Array(4).fill('unchanged'));
    const [listed, before] = await Promise.all([to, from].map(({ client }) => client.list({ user_id: from.user_id })));
    expect(listed?.items.map(withoutOrigin)).toEqual(before?.items.map(withoutOrigin));
    const wrong = [
      { ...memories[0], id: '~crm~mem_1', scope: 'notes' },
      { ...memories[0], id: 'mem_1', scope: 'crm' },
    ];
    expect((await load(wrong)).map(({ error }) => error?.message)).toEqual([
      'id: names the store crm, whose memories have the scope crm or one below',
      'id: memories of this scope are in the store crm, and their ids begin with ~crm~',
    ]);
  });

  it('changes in mounted stores are in the log of the root store before the answer', async () => {
    const { client, add, user_id, all } = await open();
    const { id } = await add('tea', 'crm/x');
    await client.update(id, { content: 'coffee' });
    await client.batch([{ user_id, content: 'x', scope: 'docs/handbook' }]);
    await client.remove(id);
    // Past the queue, which holds the entries of reads.
    const entries = await all.audit.read({ user_id, within: null, limit: 9 }, call);
    expect(
      entries.map(({ action, memory_id, scope, outcome }) => [action, memory_id?.slice(0, 5), scope, outcome]),
    ).toEqual([
      ['delete', '~crm~', 'crm/x', 'ok'],
      ['add', '~hand', 'docs/handbook', 'ok'],
      ['update', '~crm~', 'crm/x', 'ok'],
      ['add', '~crm~', 'crm/x', 'ok'],
    ]);
  });

  it('their changes are those of the feed: a reader learns what left its scopes, and no-ops are none', async () => {
    const { client, add, as, user_id } = await open();
    const { id } = await add('tea', 'crm/a');
    await client.update(id, { tags: [] });
    await client.update(id, { scope: 'crm/b' });
    await add('tea', 'crm/a');
    await client.erase(user_id);
    const of = async (reader: typeof client) =>
      (await reader.changes({ user_id })).changes.map((one) => [one.action, one.id, one.scope]);
    const second = expect.stringMatching('^~crm~');
    expect(await of(client)).toEqual([
      ['add', id, 'crm/a'],
      ['update', id, 'crm/b'],
      ['add', second, 'crm/a'],
      ['erase', null, null],
      // That of the root store, which has none of them.
      ['erase', null, null],
    ]);
    expect(await of(as('read:crm/a'))).toEqual([
      ['add', id, 'crm/a'],
      ['update', id, 'crm/a'],
      ['add', second, 'crm/a'],
      ['erase', null, null],
    ]);
    expect(await of(as('read:docs/*'))).toEqual([]);
  });

  it.each<[string, (store: Required<Store>) => Partial<Store>]>([
    ['that counts them', () => ({})],
    ['that cannot count them', () => ({ userStats: undefined as never })],
    [
      'with more than are counted',
      ({ userStats }) => ({
        userStats: async (query, own) => {
          const { scopes, ...stats } = await userStats(query, own);
          return { ...stats, scopes: Array.from({ length: query.limit }, () => scopes[0] as (typeof scopes)[number]) };
        },
      }),
    ],
  ])('an erase is a change for the readers of each of its scopes, in a store %s', async (_, counting) => {
    const pages = ({ list }: Required<Store>): Partial<Store> => ({
      list: (query, own) => list({ ...query, limit: Math.min(query.limit, 100) }, own),
    });
    const current = once(altered((store) => ({ ...pages(store), ...counting(store) })));
    const { client, as, user_id, all } = await open([{ ...CRM, current }]);
    const scopes = Array.from({ length: 250 }, (_, i) => `crm/x/${i}`);
    for (const start of [0, 100, 200])
      await client.batch(scopes.slice(start, start + 100).map((scope) => ({ user_id, content: 'x', scope })));
    const after = (await client.changes({ after: 'now' })).next_cursor;
    expect(await client.erase(user_id)).toBe(250);
    const { changes } = await all.changes({ after, users: null, within: null, limit: 100 }, call);
    const left = changes.map(({ left_scopes }) => left_scopes);
    expect(left.map(({ length }) => length)).toEqual([100, 100, 50, 0]);
    expect(left.flat().sort()).toEqual(scopes.sort());
    for (const scope of ['crm/x/0', 'crm/x/249'])
      expect((await as(`read:${scope}`).changes({ after })).changes).toMatchObject([{ action: 'erase', user_id }]);
  });

  it.each(['by itself', 'when the gateway closes'])(
    'a change whose entry cannot be written is not answered as a success, and its entry comes later, %s',
    async (when) => {
      let isDown = true;
      const alter = (provider: Provider): Provider => {
        const { audit } = provider;
        const record: AuditLog['record'] = (...args) => (isDown ? down('memory') : (audit as AuditLog).record(...args));
        return { ...provider, ...(audit && { audit: { ...audit, record } }) };
      };
      const { client, user_id, all } = await open([CRM], { alter });
      const input: Partial<NewMemory> = { user_id, content: 'x', scope: 'crm' };
      expectError(await client.tell('POST', '/memories', input), 'provider_error');
      isDown = false;
      const look = async () =>
        expect((await client.changes({ user_id })).changes).toMatchObject([{ action: 'add', scope: 'crm' }]);
      if (when === 'by itself') return await eventually(look);
      await all.mounts.close();
      await look();
    },
  );

  it('a repeated add is no other change', async () => {
    const { client, user_id } = await open();
    const input = { user_id, content: 'tea', scope: 'crm/a' };
    const key = { 'idempotency-key': 'again' };
    const batch = { memories: [input, { ...input, scope: null }] };
    for (let n = 0; n < 3; n++) {
      expect((await client.tell('POST', '/memories', input, key)).status).toBe(201);
      expect((await client.tell('POST', '/memories/batch', batch, key)).status).toBe(200);
    }
    const { changes } = await client.changes({ user_id });
    expect(changes.map(({ scope }) => String(scope)).sort()).toEqual(['crm/a', 'crm/a', 'null']);
  });

  it('concurrent changes of one memory follow one another: the reader of each scope is told', async () => {
    const { client, add, as, user_id } = await open();
    const { id } = await add('tea', 'crm/a');
    await Promise.all(['crm/b', 'crm/c'].map((scope) => client.update(id, { scope })));
    await Promise.all([client.tell('PATCH', client.byId(id), { scope: 'crm/d' }), client.remove(id)]);
    const { changes } = await client.changes({ user_id });
    for (const scope of new Set(changes.map((change) => change.scope))) {
      const seen = (await as(`read:${scope}`).changes({ user_id })).changes;
      // It came, and it left.
      expect(seen, `${scope}`).toHaveLength(2);
    }
  });

  it('a change is one also where the store knows no times', async () => {
    const timeless = (one: Memory | undefined) => one && { ...one, updated_at: '1970-01-01T00:00:00.000Z' };
    const current = once(
      altered(({ get, update }) => ({
        get: async (ref, own) => timeless(await get(ref, own)),
        update: async (request, own) => timeless(await update(request, own)),
      })),
    );
    const { client, add, user_id } = await open([{ ...CRM, current }]);
    const { id } = await add('tea', 'crm');
    await client.update(id, { content: 'coffee' });
    await client.update(id, { content: 'coffee' });
    const { changes } = await client.changes({ user_id });
    expect(changes.map(({ action }) => action)).toEqual(['add', 'update']);
  });

  it('an erase is no success while a root store that cannot erase has the user below a mount', async () => {
    const alter = ({ erase: _, ...provider }: Provider): Provider => provider;
    const { client, root, user_id } = await open([CRM], { alter });
    await root.add({ input: memoryOf(user_id, 'x', { scope: 'crm/hidden' }) }, call);
    expectError(await client.tell('DELETE', `/users/${user_id}/memories`), 'unsupported_capability');
  });
});
