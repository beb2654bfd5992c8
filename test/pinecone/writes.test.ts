import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it, onTestFinished, vi } from 'vitest';
import { type Memory, OmpError } from '#contract';
import { type Pinecone, startPinecone } from '../pinecone-server/start.ts';
import { hashingEmbedder } from '../support/hashing-embedder.ts';
import { openPineconeSubject } from '../support/pinecone-server.ts';
import { call, listOf, memoryOf, refTo, searchFor } from '../support/requests.ts';
import { freshUser } from '../support/subject.ts';
import { openUserIndex } from './gateway-index.ts';
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
  const update = (memory: Memory, content: string) =>
    gateway.update({ ref: refTo(memory.id), patch: { content } }, call);

  describe('each verb takes as many requests as docs/backends/pinecone.md says', () => {
    it('add, get, update, delete, search, ping', async () => {
      let memory = {} as Memory;
      expect(
        await requests(async () => {
          memory = await gateway.add({ input: memoryOf(user, 'the cat sleeps') }, call);
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
          expect(await gateway.update({ ref: refTo(id), patch: { content: 'x' } }, call)).toBeUndefined();
          expect(await gateway.delete(refTo(id), call)).toBe(false);
        });
        expect(asked).toEqual([]);
      }
    });
  });

  describe('[Decision 7] a patch', () => {
    it('sends what changes and nothing else', async () => {
      const memory = await gateway.add(
        { input: memoryOf(user, 'the cat sleeps', { tags: ['a'], confidence: 0.5 }) },
        call,
      );
      await server.resetCalls();
      await gateway.update({ ref: refTo(memory.id), patch: { content: memory.content, tags: ['b'] } }, call);
      const sent = (await server.calls()).find(({ operation }) => operation === 'update')?.body as {
        setMetadata: object;
        values?: unknown;
      };
      expect(sent.setMetadata).toEqual({ tags: ['b'], updated_at: expect.any(String) });
      expect(sent.values).toBeUndefined();
    });

    it('of a text without signal to one with it, and back, is found as it should be', async () => {
      // The vector that stands for a silent text in the index is the one of "loud".
      const vectorOf = (text: string) =>
        Float32Array.from({ length: 64 }, (_, at) => Number(text === 'loud' && at === 0));
      const embedder = { ...hashingEmbedder(), embed: async (texts: readonly string[]) => texts.map(vectorOf) };
      const [writer, reader] = [await openGateway(server, { embedder }), await openGateway(server, { embedder })];
      const scores = async () => (await reader.search(searchFor(user, 'loud'), call)).map(({ score }) => score);
      const { id } = await writer.add({ input: memoryOf(user, 'loud') }, call);
      expect(await scores()).toEqual([1]);
      await writer.update({ ref: refTo(id), patch: { content: 'silent' } }, call);
      expect(await scores()).toEqual([0]);
      await writer.update({ ref: refTo(id), patch: { content: 'loud' } }, call);
      expect(await scores()).toEqual([1]);
      await writer.close();
      await reader.close();
    });
  });

  it('[Decision 35] a batch for several namespaces says which of its memories were stored', async () => {
    const index = openUserIndex(server, 64, { layout: 'per-user' });
    onTestFinished(index.close);
    const refused = new OmpError('provider_error', 'refused');
    const { service } = index.own;
    let sent = 0;
    const upsert: typeof service.upsert = async (...request) => {
      sent += 1;
      if (sent === 2) throw refused;
      return service.upsert(...request);
    };
    const items = ['ana', 'bob', 'ana', 'bob'].map((name) => ({
      input: memoryOf(name, 'tea'),
      vector: new Float32Array(64).fill(1),
    }));
    const stored = expect.objectContaining({ user_id: 'ana', status: 'done' });
    const outcomes = await index.methods({ service: { ...service, upsert } }).batch({ items }, call);
    expect(outcomes).toEqual([stored, refused, stored, refused]);
  });

  it('the largest vector and the largest metadata stay below the 2 MB of an upsert', async () => {
    const wide = await startPinecone({ dimension: 20_000 });
    const large = await openGateway(wide, { embedder: hashingEmbedder(20_000) });
    const more = { extensions: { 'x-more': 'm'.repeat(10_000) } };
    const memory = await large.add({ input: memoryOf(user, '語'.repeat(9_000), more) }, call);
    expect(await large.search(searchFor(user, memory.content), call)).toEqual([{ memory, score: 1 }]);
    await large.close();
    await wide.close();
  });

  it('[SPEC Memory created_at] ever later within one gateway, also when the clock is set back', async () => {
    const first = await gateway.add({ input: memoryOf(user, 'one') }, call);
    vi.useFakeTimers({ toFake: ['Date'], now: Date.now() - 3_600_000 });
    const second = await gateway.add({ input: memoryOf(user, 'two') }, call);
    const changed = (await gateway.update({ ref: refTo(first.id), patch: { content: 'three' } }, call)) as Memory;
    expect(second.created_at > first.created_at).toBe(true);
    expect(changed.updated_at > first.updated_at).toBe(true);
    expect(await gateway.list(listOf(user), call)).toEqual([second, changed]);
  });
});

it('[SPEC GET /memories/search scope] scopes are filtered by Pinecone itself as far as they are whole segments', async () => {
  const { client, pinecone, close } = await openPineconeSubject({}, {}, { mode: 'vector' });
  onTestFinished(close);
  const user_id = freshUser();
  for (const scope of ['in/x', 'in/x/y', 'hay', 'inner/x', 'in', null]) {
    await client.add({ user_id, scope, content: 'note' });
  }
  const scopesIn = async (scope: string) =>
    (await client.search({ q: 'note', user_id, scope })).map(({ memory }) => memory.scope).sort();
  await pinecone.resetCalls();
  expect(await scopesIn('in/')).toEqual(['in/x', 'in/x/y']);
  const calls = await pinecone.calls();
  expect(calls.map(({ operation }) => operation)).toEqual(['query']);
  expect(JSON.stringify(calls[0]?.body)).toContain('"omp:under:in"');
  // The rest of a prefix is looked at here.
  expect(await scopesIn('in/x/')).toEqual(['in/x/y']);
  expect(await scopesIn('in')).toEqual(['in', 'in/x', 'in/x/y', 'inner/x']);
});

describe.each(['single', 'sharded', 'per-user'] as const)(
  '[Decision 2] [Decision 43] layout %s: while Pinecone shows nothing new',
  (layout) => {
    it('every read by id, and a walk over all memories, has what this gateway wrote, imported and deleted, once each', async () => {
      const subject = await openPineconeSubject({}, { layout });
      onTestFinished(subject.close);
      const { client, pinecone } = subject;
      const exported = async (query: string) => {
        const ids: string[] = [];
        for (let cursor: string | null = ''; cursor !== null; ) {
          const { body } = await client.ask(`/export?limit=2${query}${cursor && `&cursor=${cursor}`}`);
          const page = body as { memories: { id: string }[]; next_cursor: string | null };
          ids.push(...page.memories.map(({ id }) => id));
          cursor = page.next_cursor;
        }
        return ids;
      };
      const [ana, ben] = [freshUser(), freshUser()];
      const stored: string[] = [];
      const add = async (user_id: string) => stored.push((await client.add({ user_id, content: 'tea' })).id);
      const imported = async (id: string, created_at: string) => {
        const memories = [{ id, user_id: ana, content: 'coffee', created_at }];
        const { status, text } = await client.tell('POST', '/import', { memories, on_conflict: 'replace' });
        expect([status, text]).toEqual([200, expect.stringContaining('"stored"')]);
      };
      for (const user_id of [ana, ben, ana, ana]) await add(user_id);
      await pinecone.lag({ held: true });
      for (const user_id of [ben, ana, ana, freshUser()]) await add(user_id);
      await client.remove(stored.shift() ?? '');
      for (const id of [`a/${ana}`, `b/${ana}`, `c/${ana}`]) await imported(id, '2025-03-01T00:00:00.000Z');
      // It moves to another record.
      await imported(`b/${ana}`, '2025-04-01T00:00:00.000Z');
      await client.remove(`c/${ana}`);
      stored.push(`a/${ana}`, `b/${ana}`);
      const check = async () => {
        expect((await exported('')).sort()).toEqual(stored.toSorted());
        const own = await Promise.all(stored.map((id) => client.get(id)));
        const ofAna = own.filter(({ user_id }) => user_id === ana).map(({ id }) => id);
        expect((await exported(`&user_id=${ana}`)).sort()).toEqual(ofAna.sort());
        expect((await client.list({ user_id: ana, limit: 100 })).items.map(({ id }) => id).sort()).toEqual(ofAna);
        expect((await client.ask(client.byId(`c/${ana}`))).status).toBe(404);
      };
      await check();
      await pinecone.settle();
      await check();
    });
  },
);
