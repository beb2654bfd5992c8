import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it, vi } from 'vitest';
import type { Memory } from '#contract';
import { type Lag, type Pinecone, startPinecone } from '../pinecone-server/start.ts';
import { expectError } from '../support/expect-error.ts';
import { hashingEmbedder } from '../support/hashing-embedder.ts';
import { openMemoriesOf } from '../support/memories.ts';
import { openPineconeSubject, type PineconeSubject } from '../support/pinecone-server.ts';
import { call, contextOf, listOf, memoryOf, refTo, searchFor } from '../support/requests.ts';
import { freshUser, laterMoment } from '../support/subject.ts';
import type { WireMemory } from '../support/wire.ts';
import { type Gateway, openGateway } from './gateways.ts';

describe('verbs', () => {
  let server: Pinecone;
  let gateway: Gateway;
  let user: string;
  beforeAll(async () => {
    server = await startPinecone();
    gateway = await openGateway(server);
  });
  beforeEach(() => {
    user = freshUser();
  });
  afterEach(() => void vi.useRealTimers());
  afterAll(async () => {
    await gateway?.close();
    await server?.close();
  });

  /** What a verb asks of the service. */
  async function requests(verb: () => Promise<unknown>): Promise<string[]> {
    await server.resetCalls();
    await verb();
    return (await server.calls()).map(({ operation }) => operation);
  }
  const update = (memory: Memory, content: string) => gateway.update(refTo(memory.id), { content }, call);

  it('[SPEC Capabilities features] what it can do is said as it is', () => {
    expect(gateway.capabilities).toEqual({
      vector_search: true,
      keyword_search: false,
      explain: true,
      temporal: true,
      scopes: 'tags',
      tags: true,
      max_content_length: 9_000,
      supports_supersession: true,
      max_search_results: 10_000,
      max_list_scan: 10_000,
      consistency_tokens: true,
      etags: false,
    });
    expect([gateway.addIdempotent, gateway.audit, gateway.keys]).toEqual([undefined, undefined, undefined]);
  });

  it('hybrid ranking counts as vector: there are no keywords', async () => {
    const ranking = { mode: 'hybrid', keyword_weight: 1 } as const;
    const context = contextOf({ embedder: hashingEmbedder(), ranking });
    const hybrid = (await openMemoriesOf('pinecone', { api_key: 'k', index_host: server.url }, context)) as Gateway;
    expect(hybrid.capabilities).toMatchObject({ vector_search: true, keyword_search: false });
    const memory = await hybrid.add(memoryOf(user, 'the cat sleeps'), call);
    expect(await hybrid.search(searchFor(user, 'the cat sleeps'), call)).toEqual([{ memory, score: 1 }]);
    await hybrid.close();
  });

  describe('each verb takes as many requests as docs/backends/pinecone.md says', () => {
    it('add, get, update, delete, search, ping', async () => {
      let memory = {} as Memory;
      expect(
        await requests(async () => {
          memory = await gateway.add(memoryOf(user, 'the cat sleeps'), call);
        }),
      ).toEqual(['upsert']);
      expect(await requests(() => gateway.get(refTo(memory.id), call))).toEqual(['fetch']);
      // The first look decides whether there is something to embed.
      expect(await requests(() => update(memory, 'a dog barks'))).toEqual(['fetch', 'fetch', 'update']);
      expect(await requests(() => update(memory, 'a dog barks'))).toEqual(['fetch', 'fetch']);
      expect(await requests(() => gateway.search(searchFor(user, 'a dog'), call))).toEqual(['query']);
      expect(await requests(() => gateway.list(listOf(user), call))).toEqual(['list', 'fetch']);
      expect(await requests(() => gateway.delete(refTo(memory.id), call))).toEqual(['fetch', 'delete']);
      expect(await requests(() => gateway.get(refTo(memory.id), call))).toEqual([]);
      expect(await requests(() => gateway.ping(call))).toEqual(['fetch']);
    });

    it('an id that is not of our making costs none', async () => {
      for (const id of [
        '',
        'mem_',
        'omp-index',
        'x'.repeat(600),
        'ü',
        `mem_${'a'.repeat(51)}`,
        'mem_01ARZ3NDEKTSV4RRFFQ69G5FAV',
      ]) {
        const asked = await requests(async () => {
          expect(await gateway.get(refTo(id), call)).toBeUndefined();
          expect(await gateway.update(refTo(id), { content: 'x' }, call)).toBeUndefined();
          expect(await gateway.delete(refTo(id), call)).toBe(false);
        });
        expect(asked).toEqual([]);
      }
    });
  });

  describe('[Decision 7] a patch', () => {
    it('sends what changes and nothing else', async () => {
      const memory = await gateway.add(memoryOf(user, 'the cat sleeps', { tags: ['a'], confidence: 0.5 }), call);
      await server.resetCalls();
      await gateway.update(refTo(memory.id), { content: memory.content, tags: ['b'] }, call);
      const sent = (await server.calls()).find(({ operation }) => operation === 'update')?.body as {
        setMetadata: object;
        values?: unknown;
      };
      expect(sent.setMetadata).toEqual({ tags: ['b'], updated_at: expect.any(String) });
      expect(sent.values).toBeUndefined();
    });

    it('of a text without signal to one with it, and back, is found as it should be', async () => {
      const silent = '\u00a0.';
      const { id } = await gateway.add(memoryOf(user, 'the cat sleeps'), call);
      const other = await openGateway(server);
      const scores = async () =>
        (await other.search(searchFor(user, 'the cat sleeps'), call)).map(({ score }) => score);
      const emptied = await openGateway(server, {
        embedder: {
          ...hashingEmbedder(),
          embed: async (texts) => texts.map(() => new Float32Array(64)),
        },
      });
      await emptied.update(refTo(id), { content: silent }, call);
      expect(await scores()).toEqual([0]);
      await gateway.update(refTo(id), { content: 'the cat sleeps' }, call);
      expect(await scores()).toEqual([1]);
      await other.close();
      await emptied.close();
    });
  });

  it('the largest vector and the largest metadata stay below the 2 MB of an upsert', async () => {
    const wide = await startPinecone({ dimension: 20_000 });
    const large = await openGateway(wide, { embedder: hashingEmbedder(20_000) });
    const more = { extensions: { 'x-more': 'm'.repeat(10_000) } };
    const memory = await large.add(memoryOf(user, '語'.repeat(9_000), more), call);
    expect(await large.search(searchFor(user, memory.content), call)).toEqual([{ memory, score: 1 }]);
    await large.close();
    await wide.close();
  });

  it('[SPEC Memory created_at] ever later within one gateway, also when the clock is set back', async () => {
    const first = await gateway.add(memoryOf(user, 'one'), call);
    vi.useFakeTimers({ toFake: ['Date'], now: Date.now() - 3_600_000 });
    const second = await gateway.add(memoryOf(user, 'two'), call);
    const changed = (await gateway.update(refTo(first.id), { content: 'three' }, call)) as Memory;
    expect(second.created_at > first.created_at).toBe(true);
    expect(changed.updated_at > first.updated_at).toBe(true);
    expect(await gateway.list(listOf(user), call)).toEqual([second, changed]);
  });
});

describe('reading own writes', () => {
  /** What nobody has to wait for in a test. */
  const NEVER_MS = 3_600_000;

  const LAGS: readonly (readonly [string, Lag])[] = [
    ['nothing new becomes visible', { held: true }],
    ['writes are visible after three later ones', { writes: 3 }],
    ['writes are visible after an hour', { ms: NEVER_MS }],
    ['queries see everything, fetch and list lag', { fetchMs: NEVER_MS }],
    ['queries lag, fetch and list see everything', { held: true, fetchMs: 0 }],
    ['nothing lags', {}],
  ];

  describe.each([
    ['single', true],
    ['per-user', true],
    ['single', false],
  ] as const)('in the layout %s, log numbers told: %s', (layout, lsn) => {
    let server: Pinecone;
    let gateway: Gateway;
    beforeAll(async () => {
      server = await startPinecone({ lsn });
      gateway = await openGateway(server, { options: { layout, namespace: layout } });
    });
    beforeEach(async () => {
      await server.lag({});
      await server.settle();
    });
    afterAll(async () => {
      await gateway?.close();
      await server?.close();
    });

    describe.each(layout === 'single' && lsn ? LAGS : LAGS.slice(0, 2))('while %s', (_, lag) => {
      let user: string;
      beforeEach(async () => {
        user = freshUser();
        await server.lag(lag);
      });
      const add = (content: string, tags: readonly string[] = []) =>
        gateway.add(memoryOf(user, content, { tags }), call);
      const listed = async (tags: readonly string[] = []) => gateway.list(listOf(user, { tags }), call);

      it('[Decision 1] [SPEC GET /memories/{id}] [SPEC PATCH /memories/{id}] [SPEC DELETE /memories/{id}] [SPEC GET /memories/search] every verb shows every write, and others see it once it is visible', async () => {
        const [one, two, three, four] = [
          await add('one'),
          await add('the cat sleeps', ['a']),
          await add('a dog barks loudly'),
          await add('four'),
        ] as const;
        expect(await gateway.get(refTo(two.id), call)).toEqual(two);
        expect(await listed()).toEqual([four, three, two, one]);
        expect((await gateway.search(searchFor(user, two.content), call))[0]).toEqual({ memory: two, score: 1 });

        const tagged = (await gateway.update(refTo(two.id), { tags: ['b'] }, call)) as Memory;
        const bird = (await gateway.update(refTo(two.id), { content: 'birds sing at dawn' }, call)) as Memory;
        expect(bird).toMatchObject({ content: 'birds sing at dawn', tags: ['b'] });
        expect(bird.updated_at > tagged.updated_at).toBe(true);
        expect(await gateway.get(refTo(two.id), call)).toEqual(bird);
        expect([await listed(['a']), await listed(['b'])]).toEqual([[], [bird]]);

        expect(await gateway.delete(refTo(three.id), call)).toBe(true);
        expect(await gateway.delete(refTo(three.id), call)).toBe(false);
        expect(await gateway.get(refTo(three.id), call)).toBeUndefined();
        expect(await gateway.update(refTo(three.id), { content: 'back' }, call)).toBeUndefined();

        const check = async (by: Gateway) => {
          const list = (more: object) => by.list(listOf(user, more), call);
          expect(await by.get(refTo(two.id), call)).toEqual(bird);
          expect(await list({})).toEqual([four, bird, one]);
          expect(await list({ limit: 1, after: four })).toEqual([bird]);
          expect(await list({ since: bird.created_at })).toEqual([four, bird]);
          expect(await list({ until: bird.created_at })).toEqual([bird, one]);
          const hits = await by.search(searchFor(user, 'birds sing at dawn'), call);
          expect(hits[0]).toEqual({ memory: bird, score: 1 });
          expect(hits.map(({ memory }) => memory.id).sort()).toEqual([one.id, two.id, four.id].sort());
        };
        await check(gateway);
        await server.settle();
        const other = await openGateway(server, { options: { layout, namespace: layout } });
        await check(other);
        await other.close();
      });
    });

    it('a deleted memory never comes back, whether the service or the gateway forgets first', async () => {
      const user = freshUser();
      const memory = await gateway.add(memoryOf(user, 'the cat sleeps'), call);
      await server.settle();
      const brief = await openGateway(server, { options: { layout, namespace: layout, settle_ms: 1 } });
      await server.lag({ held: true });
      expect(await brief.delete(refTo(memory.id), call)).toBe(true);
      const isGone = async () => {
        expect(await brief.get(refTo(memory.id), call)).toBeUndefined();
        expect(await brief.list(listOf(user), call)).toEqual([]);
        expect(await brief.search(searchFor(user, memory.content), call)).toEqual([]);
        expect(await brief.update(refTo(memory.id), { content: 'back' }, call)).toBeUndefined();
        expect(await brief.delete(refTo(memory.id), call)).toBe(false);
      };
      // Where the service tells numbers, what it does not show yet is kept in mind for longer than settle_ms.
      if (lsn) {
        await laterMoment();
        await isGone();
      }
      await server.lag({});
      await server.settle();
      await isGone();
      await laterMoment();
      await isGone();
      await brief.close();
    });

    it('a patch does not bring a memory back that another gateway deleted, however late it arrives', async () => {
      const user = freshUser();
      const memory = await gateway.add(memoryOf(user, 'the cat sleeps'), call);
      await server.settle();
      const other = await openGateway(server, { options: { layout, namespace: layout } });
      await server.lag({ held: true });
      expect(await other.delete(refTo(memory.id), call)).toBe(true);
      expect(await gateway.update(refTo(memory.id), { content: 'a dog barks' }, call)).toBeDefined();
      await server.settle();
      expect(await other.get(refTo(memory.id), call)).toBeUndefined();
      const third = await openGateway(server, { options: { layout, namespace: layout } });
      expect(await third.get(refTo(memory.id), call)).toBeUndefined();
      expect(await third.list(listOf(user), call)).toEqual([]);
      await other.close();
      await third.close();
    });
  });
});

describe('scopes', () => {
  const MAX_SCAN = 60;

  /** Scopes are written as tags: what Pinecone filters, what the gateway looks at, and where it stops. */
  describe('scopes on Pinecone', () => {
    let subject: PineconeSubject;
    beforeAll(async () => {
      subject = await openPineconeSubject({ lagWrites: 2 }, { max_scan: MAX_SCAN }, { mode: 'vector' });
    });
    afterAll(() => subject?.close());

    /** A user with one memory in each of these scopes, oldest first. */
    const store = async (scopes: readonly (string | null)[]) => {
      const user_id = freshUser();
      const added: WireMemory[] = [];
      for (const [number, scope] of scopes.entries()) {
        added.push(await subject.client.add({ user_id, scope, content: `note ${number}` }));
      }
      return { user_id, newestFirst: added.reverse() };
    };
    const hay = (rows: number): string[] => Array.from({ length: rows }, (_, row) => `hay/${row}`);
    const found = async (query: { user_id: string; scope: string; limit?: number }) =>
      (await subject.client.search({ q: 'note', ...query })).map(({ memory }) => memory.scope).sort();
    const asked = async (work: () => Promise<unknown>) => {
      await subject.pinecone.resetCalls();
      await work();
      return subject.pinecone.calls();
    };
    const scopesOf = (items: readonly WireMemory[]) => items.map(({ scope }) => scope);

    it('[SPEC GET /memories/search scope] are filtered by Pinecone itself as far as they are whole segments', async () => {
      const { user_id } = await store(['in/x', 'in/x/y', ...hay(30), 'inner/x', 'in', null]);
      const calls = await asked(async () => {
        expect(await found({ user_id, scope: 'in/' })).toEqual(['in/x', 'in/x/y']);
      });
      expect(calls.map(({ operation }) => operation)).toEqual(['query']);
      expect(JSON.stringify(calls[0]?.body)).toContain('"omp:under:in"');
      // The rest of a prefix is looked at here.
      expect(await found({ user_id, scope: 'in/x/' })).toEqual(['in/x/y']);
      expect(await found({ user_id, scope: 'in' })).toEqual(['in', 'in/x', 'in/x/y', 'inner/x']);
    });

    it('[SPEC GET /memories/search scope] are found also where everything else ranks before them', async () => {
      const { user_id } = await store([...hay(150), 'needle/1', 'needle/2']);
      const { client } = subject;
      // Another text than all others have: it shares nothing with the question.
      for (const scope of ['needle/3', 'nebula']) await client.add({ user_id, scope, content: 'zzz' });
      for (const limit of [3, 5, 100]) {
        expect(await found({ user_id, scope: 'need', limit })).toEqual(['needle/1', 'needle/2', 'needle/3']);
        expect(await found({ user_id, scope: 'neb', limit })).toEqual(['nebula']);
      }
    });

    describe('that take reading more memories than the gateway may', () => {
      const rows = MAX_SCAN + 20;
      let user_id: string;
      let newestFirst: WireMemory[];
      beforeAll(async () => {
        ({ user_id, newestFirst } = await store(['needle/1', ...hay(rows), 'needle/2']));
      });
      const list = (query: object) => subject.client.ask('/memories', { user_id, ...query });
      const items = async (query: object) => scopesOf((await subject.client.list({ user_id, ...query })).items);

      it.for(['needl*', '*dle/1', 'needle/*', 'needle/1'])(
        '[SPEC Errors invalid_request] are refused, never answered in part: a list of %s',
        async (scope) => {
          const error = expectError(await list({ scope }), 'invalid_request');
          expect(error.message).toMatch(/too (many|few)/);
          expect(error.message).toMatch(/narrow the list by since and until/);
        },
      );

      it('[SPEC GET /memories since] [SPEC GET /memories until] are listed where the times leave few enough', async () => {
        const oldest = newestFirst.at(-30)?.created_at ?? '';
        for (const scope of ['needl*', '*dle/1', 'needle/*', 'needle/1']) {
          expect(await items({ scope, until: oldest })).toEqual(['needle/1']);
          expect(await items({ scope, since: oldest })).toEqual(scope.endsWith('1') ? [] : ['needle/2']);
        }
      });

      it('[SPEC GET /memories limit] are listed where the page is full before', async () => {
        expect(await items({ scope: 'ha*', limit: 10 })).toEqual(hay(rows).reverse().slice(0, 10));
      });

      it('[SPEC GET /memories/search scope] are searched, for there the index helps', async () => {
        expect(await found({ user_id, scope: 'need' })).toEqual(['needle/1', 'needle/2']);
        expect(await found({ user_id, scope: 'needle/' })).toEqual(['needle/1', 'needle/2']);
      });
    });
  });
});
