import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import type { Memory } from '#contract';
import { type Lag, type Pinecone, startPinecone } from '../pinecone-server/start.ts';
import { call, listOf, memoryOf, refTo, searchFor } from '../support/requests.ts';
import { freshUser, laterMoment } from '../support/subject.ts';
import { type Gateway, openGateway } from './gateways.ts';

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

  describe.each(LAGS)('while %s', (_, lag) => {
    let user: string;
    beforeEach(async () => {
      user = freshUser();
      await server.lag(lag);
    });
    const add = (content: string, tags: readonly string[] = []) => gateway.add(memoryOf(user, content, { tags }), call);
    const listed = async (tags: readonly string[] = []) => gateway.list(listOf(user, { tags }), call);
    const found = async (text: string) =>
      (await gateway.search(searchFor(user, text), call)).map(({ memory }) => memory);

    it('[SPEC GET /memories/{id}] a memory is there right after it was created', async () => {
      const memory = await add('the cat sleeps');
      expect(await gateway.get(refTo(memory.id), call)).toEqual(memory);
    });

    it('[SPEC PATCH /memories/{id}] can be patched right after it was created, again and again', async () => {
      const { id } = await add('the cat sleeps', ['a']);
      const tagged = (await gateway.update(refTo(id), { tags: ['b'] }, call)) as Memory;
      expect(tagged).toMatchObject({ content: 'the cat sleeps', tags: ['b'] });
      const moved = (await gateway.update(refTo(id), { content: 'a dog barks' }, call)) as Memory;
      expect(moved).toMatchObject({ content: 'a dog barks', tags: ['b'] });
      expect(moved.updated_at > tagged.updated_at).toBe(true);
      expect(await gateway.get(refTo(id), call)).toEqual(moved);
      expect(await listed()).toEqual([moved]);
      expect(await listed(['a'])).toEqual([]);
      expect(await listed(['b'])).toEqual([moved]);
    });

    it('[SPEC DELETE /memories/{id}] can be deleted right after it was created, once', async () => {
      const { id } = await add('the cat sleeps');
      expect(await gateway.delete(refTo(id), call)).toBe(true);
      expect(await gateway.delete(refTo(id), call)).toBe(false);
      expect(await gateway.get(refTo(id), call)).toBeUndefined();
      expect(await gateway.update(refTo(id), { content: 'back' }, call)).toBeUndefined();
      expect(await listed()).toEqual([]);
      expect(await found('the cat sleeps')).toEqual([]);
    });

    it('[SPEC GET /memories/search] is found right after it was created, changed or deleted', async () => {
      const cat = await add('the cat sleeps');
      const dog = await add('a dog barks loudly');
      expect((await gateway.search(searchFor(user, 'the cat sleeps'), call))[0]).toEqual({ memory: cat, score: 1 });
      const bird = (await gateway.update(refTo(cat.id), { content: 'birds sing at dawn' }, call)) as Memory;
      expect((await gateway.search(searchFor(user, 'birds sing at dawn'), call))[0]).toEqual({
        memory: bird,
        score: 1,
      });
      expect((await found('the cat sleeps')).map(({ content }) => content).sort()).toEqual([
        'a dog barks loudly',
        'birds sing at dawn',
      ]);
      await gateway.delete(refTo(dog.id), call);
      expect(await found('a dog barks loudly')).toEqual([bird]);
    });

    it('[Decision 1] lists are right after every write', async () => {
      const made: Memory[] = [];
      for (const content of ['one', 'two', 'three', 'four', 'five']) made.unshift(await add(content));
      expect(await listed()).toEqual(made);
      const [five, four, three, two, one] = made as [Memory, Memory, Memory, Memory, Memory];
      await gateway.delete(refTo(four.id), call);
      const changed = (await gateway.update(refTo(two.id), { confidence: 0.5 }, call)) as Memory;
      expect(await listed()).toEqual([five, three, changed, one]);
      const page = await gateway.list(listOf(user, { limit: 2 }), call);
      expect(page).toEqual([five, three]);
      expect(await gateway.list(listOf(user, { limit: 2, after: three }), call)).toEqual([changed, one]);
      expect(await gateway.list(listOf(user, { since: three.created_at }), call)).toEqual([five, three]);
      expect(await gateway.list(listOf(user, { until: changed.created_at }), call)).toEqual([changed, one]);
    });

    it('what others see once everything is visible is what was answered', async () => {
      const kept = await add('kept', ['a']);
      const gone = await add('gone');
      await gateway.delete(refTo(gone.id), call);
      const changed = (await gateway.update(refTo(kept.id), { content: 'changed', tags: [] }, call)) as Memory;
      await server.settle();
      const other = await openGateway(server, { options: { layout, namespace: layout } });
      expect(await other.get(refTo(kept.id), call)).toEqual(changed);
      expect(await other.list(listOf(user), call)).toEqual([changed]);
      expect(await other.search(searchFor(user, 'changed'), call)).toEqual([{ memory: changed, score: 1 }]);
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
