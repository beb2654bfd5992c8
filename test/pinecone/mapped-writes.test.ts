import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { post } from '../pinecone-server/plain.ts';
import { type Pinecone, startPinecone } from '../pinecone-server/start.ts';
import { expectError } from '../support/expect-error.ts';
import { hashingEmbedder } from '../support/hashing-embedder.ts';
import { call } from '../support/requests.ts';
import { freshUser, type Subject } from '../support/subject.ts';
import { change, fill, openMappedSubject, silentText } from './mapped-subject.ts';

describe('writes', () => {
  const namespace = 'notes';
  const NOTES = {
    preset: 'custom',
    namespace,
    text_field: 'note',
    user_field: 'owner.id',
    created_field: 'written',
    updated_field: 'changed',
    tags_field: 'labels',
    writable: true,
  };
  const UUID = /^[\da-f]{8}(-[\da-f]{4}){3}-[\da-f]{12}$/;
  const embedder = hashingEmbedder();
  const valuesOf = async (text: string) => [...((await embedder.embed([text], 'document', call))[0] ?? [])];

  let server: Pinecone;
  let notes: Subject;
  let docs: Subject;
  beforeAll(async () => {
    server = await startPinecone();
    notes = await openMappedSubject(server, NOTES);
    docs = await openMappedSubject(server, { preset: 'langchain', namespace, writable: true });
  });
  afterAll(async () => {
    await notes.close();
    await docs.close();
    await server.close();
  });
  const stored = async (id: string) => (await server.records(namespace))[id];

  describe('adding', () => {
    it('[SPEC POST /memories] writes what the owner has keys for, in its form', async () => {
      const user_id = freshUser();
      const memory = await notes.client.add({ user_id, content: 'green tea', tags: ['home', 'tea'] });
      expect(memory).toMatchObject({
        id: expect.stringMatching(UUID),
        user_id,
        content: 'green tea',
        tags: ['home', 'tea'],
      });
      expect(memory.updated_at).toBe(memory.created_at);
      expect(Math.abs(Date.parse(memory.created_at) - Date.now())).toBeLessThan(60_000);
      expect(await stored(memory.id)).toEqual({
        values: await valuesOf('green tea'),
        metadata: {
          note: 'green tea',
          'owner.id': user_id,
          written: memory.created_at,
          changed: memory.created_at,
          labels: ['home', 'tea'],
        },
      });
      expect(await notes.client.get(memory.id)).toEqual(memory);
    });

    it('[SPEC POST /memories] leaves out what the index has no key for', async () => {
      const user_id = freshUser();
      const memory = await docs.client.add({
        user_id,
        content: 'green tea',
        tags: [],
        supersedes: [],
        confidence: null,
      });
      expect((await stored(memory.id))?.metadata).toEqual({ text: 'green tea', user_id });
      expect(memory.created_at).toBe('1970-01-01T00:00:00.000Z');
      const { items } = await docs.client.list({ user_id });
      expect(items).toEqual([memory]);
    });

    it.each<[object, RegExp, addOnly?: true]>([
      [{ confidence: 0.5 }, /^confidence: /],
      [{ source: { app: 'x' } }, /^source: /, true],
      [{ valid_from: '2025-01-01' }, /^valid_from: /, true],
      [{ valid_to: '2025-01-01', supersedes: ['a'] }, /^valid_to, supersedes: /],
      [{ 'x-color': 'red', 'x-size': 1 }, /^x-color, x-size: /],
      [{ tags: ['a'] }, /^tags: /],
      [{ scope: 'a/b' }, /^scope: /],
    ])(
      '[SPEC Errors unsupported_capability] %j cannot be stored and is rejected by name',
      async (fields, message, addOnly) => {
        const user_id = freshUser();
        const { tell, list, byId } = docs.client;
        const added = await tell('POST', '/memories', { user_id, content: 'tea', ...fields });
        const error = expectError(added, 'unsupported_capability');
        expect(error).toMatchObject({ provider: 'pinecone', message: expect.stringMatching(message) });
        expect((await list({ user_id })).items).toEqual([]);
        if (addOnly) return;
        const memory = await docs.client.add({ user_id, content: 'tea' });
        const patched = await tell('PATCH', byId(memory.id), { content: 'coffee', ...fields });
        expect(expectError(patched, 'unsupported_capability').message).toMatch(message);
        expect((await list({ user_id })).items).toEqual([memory]);
      },
    );

    it('[Decision 25] [SPEC Memory scope] tags are never scopes', async () => {
      const user_id = freshUser();
      const tags = ['omp:scope:admin/x', 'omp:under:admin', 'omp:zzz', 'omp:tag:a', 'home'];
      const memory = await notes.client.add({ user_id, content: 'green tea', tags });
      expect(memory).toMatchObject({ scope: null, tags });
      expect((await stored(memory.id))?.metadata?.labels).toEqual(tags);
      expect((await notes.client.list({ user_id, tag: 'omp:zzz' })).items).toEqual([memory]);
      const body = { user_id, content: 'tea', scope: 'food' };
      expectError(await notes.client.tell('POST', '/memories', body), 'unsupported_capability');
      expectError(await notes.client.ask('/memories', { user_id, scope: 'admin/*' }), 'unsupported_capability');
    });

    it('[SPEC Errors invalid_request] a text without signal is rejected', async () => {
      const user_id = freshUser();
      const silent = await silentText();
      const error = expectError(
        await notes.client.tell('POST', '/memories', { user_id, content: silent }),
        'invalid_request',
      );
      expect(error.message).toMatch(/^content: /);
      const { id } = await notes.client.add({ user_id, content: 'green tea' });
      expectError(await notes.client.tell('PATCH', notes.client.byId(id), { content: silent }), 'invalid_request');
      expect((await stored(id))?.metadata?.note).toBe('green tea');
    });

    it('[SPEC Limits features.max_content_length] and the bytes of all metadata are bounded', async () => {
      const user_id = freshUser();
      const fits = await notes.client.add({ user_id, content: '🍵'.repeat(9_000) });
      expect((await notes.client.get(fits.id)).content).toBe('🍵'.repeat(9_000));
      const { tell, byId } = notes.client;
      expectError(await tell('POST', '/memories', { user_id, content: 'x'.repeat(9_001) }), 'invalid_request');
      const tags = Array.from({ length: 64 }, (_, at) => `${at}`.padEnd(128, 'é'));
      expectError(await tell('PATCH', byId(fits.id), { tags }), 'payload_too_large');
      await fill(server, namespace, [
        { id: 'large', text: 'large', metadata: { note: 'large', 'owner.id': user_id, padding: 'x'.repeat(30_000) } },
      ]);
      const error = expectError(
        await tell('PATCH', byId('large'), { content: 'x'.repeat(9_000) }),
        'payload_too_large',
      );
      expect(error.message).toContain('38000');
      expect((await stored('large'))?.metadata?.note).toBe('large');
    });
  });

  describe('changing a record of the owner', () => {
    const record = async (more: object = {}) => {
      const user_id = freshUser();
      const id = `note-${user_id}`;
      const metadata = { note: 'black coffee', 'owner.id': user_id, page: 3, 'loc.from': 7, kept: ['a'], ...more };
      await fill(server, namespace, [{ id, text: 'black coffee', metadata }]);
      return { id, user_id, metadata };
    };

    it('[SPEC PATCH /memories/{id} content] sets the text and the time, embeds anew, and leaves every other key', async () => {
      const { id, user_id, metadata } = await record({ written: '2025-03-01T08:30:15.123456-08:00' });
      const updated = await notes.client.update(id, { content: 'green tea' });
      expect(updated).toMatchObject({ content: 'green tea', created_at: '2025-03-01T16:30:15.123Z', user_id });
      expect(Math.abs(Date.parse(updated.updated_at ?? '') - Date.now())).toBeLessThan(60_000);
      expect(await stored(id)).toEqual({
        values: await valuesOf('green tea'),
        metadata: { ...metadata, note: 'green tea', changed: updated.updated_at },
      });
      expect(await notes.client.get(id)).toEqual(updated);
      const [hit] = await notes.client.search({ q: 'green tea', user_id });
      expect(hit).toMatchObject({ memory: updated, score: expect.closeTo(1, 3) });
    });

    it('[SPEC PATCH /memories/{id} tags] without new content the vector is not sent; emptied tags stay empty', async () => {
      const { id, metadata } = await record({ labels: ['home', 'work'] });
      await server.resetCalls();
      const tagged = await notes.client.update(id, { tags: ['tea'] });
      expect(tagged.tags).toEqual(['tea']);
      const update = (await server.calls()).find(({ operation }) => operation === 'update');
      expect(update?.body).toEqual({ id, namespace, setMetadata: { labels: ['tea'], changed: tagged.updated_at } });
      const emptied = await notes.client.update(id, { tags: [] });
      expect(emptied.tags).toEqual([]);
      expect((await stored(id))?.metadata).toEqual({ ...metadata, labels: [''], changed: emptied.updated_at });
      const fresh = await openMappedSubject(server, NOTES);
      expect((await fresh.client.get(id)).tags).toEqual([]);
      await fresh.close();
    });

    it.each([
      [{ changed: 1_740_846_615 }, 1_000],
      [{ changed: 1_740_846_615_000 }, 1],
      [{ written: 1_740_846_615.5 }, 1_000],
    ])('[SPEC Memory updated_at] beside %j it is a number of the same kind', async (times, unit) => {
      const { id } = await record(times);
      const { updated_at = '' } = await notes.client.update(id, { content: 'green tea' });
      const { changed, written } = (await stored(id))?.metadata ?? {};
      expect((changed as number) * unit).toBeCloseTo(Date.parse(updated_at as string), 1);
      expect(written).toBe('written' in times ? times.written : undefined);
    });

    it('[Decision 7] a patch that changes nothing writes nothing', async () => {
      const { id } = await record({ labels: ['home'], changed: '2025-03-01' });
      await server.resetCalls();
      const same = await notes.client.update(id, {
        content: 'black coffee',
        tags: ['home'],
        valid_to: null,
        supersedes: [],
      });
      expect(same.updated_at).toBe('2025-03-01T00:00:00.000Z');
      expect((await server.calls()).map(({ operation }) => operation)).not.toContain('update');
    });

    it('concurrent patches of one memory lose nothing of each other', async () => {
      const { id } = await record({ labels: ['home'] });
      const patches = Array.from({ length: 20 }, (_, at) =>
        at % 2 ? { content: `green tea ${at}` } : { tags: [`${at}`] },
      );
      const answers = await Promise.all(patches.map((patch) => notes.client.update(id, patch)));
      const last = await notes.client.get(id);
      expect(last).toMatchObject({ content: 'green tea 19', tags: ['18'] });
      expect((await stored(id))?.metadata).toMatchObject({ note: 'green tea 19', labels: ['18'] });
      expect(new Set(answers.map(({ updated_at }) => updated_at)).size).toBe(20);
    });
  });
});

describe('reading own writes', () => {
  const namespace = 'docs';
  const OPTIONS = {
    preset: 'langchain',
    namespace,
    created_field: 'created',
    updated_field: 'changed',
    tags_field: 'labels',
    writable: true,
  };

  let server: Pinecone;
  let subject: Subject;
  beforeAll(async () => {
    server = await startPinecone();
    subject = await openMappedSubject(server, OPTIONS);
  });
  afterEach(() => server.lag({}));
  afterAll(async () => {
    await subject.close();
    await server.close();
  });
  const held = () => server.lag({ held: true });

  /** What the user's list and search show. */
  async function shown(user_id: string, by: Subject = subject) {
    const { items } = await by.client.list({ user_id });
    const hits = await by.client.search({ user_id, q: 'green tea' });
    return { list: items.map(({ content }) => content), search: hits.map(({ memory }) => memory.content) };
  }

  describe('while Pinecone shows nothing of what was written', () => {
    it('get, list and search show what was added, in order', async () => {
      const user_id = freshUser();
      await held();
      await subject.client.add({ user_id, content: 'black coffee' });
      const tea = await subject.client.add({ user_id, content: 'green tea', tags: ['home'] });
      expect(await subject.client.get(tea.id)).toEqual(tea);
      const both = ['green tea', 'black coffee'];
      expect(await shown(user_id)).toEqual({ list: both, search: both });
      const [best] = await subject.client.search({ user_id, q: 'green tea' });
      expect(best).toMatchObject({ memory: tea, score: expect.closeTo(1, 3) });
      expect((await subject.client.list({ user_id, tag: 'home' })).items).toEqual([tea]);
      expect((await subject.client.list({ user_id, tag: 'work' })).items).toEqual([]);
      expect(await shown(freshUser())).toEqual({ list: [], search: [] });
      await server.settle();
      expect(await shown(user_id)).toEqual({ list: both, search: both });
    });

    it('a patch finds what was added, and the patch before it', async () => {
      const user_id = freshUser();
      await held();
      const { id } = await subject.client.add({ user_id, content: 'black coffee' });
      await subject.client.update(id, { content: 'green tea' });
      await subject.client.update(id, { tags: ['home'] });
      // Back to what Pinecone still shows: a change all the same.
      await subject.client.update(id, { content: 'black coffee' });
      expect(await subject.client.get(id)).toMatchObject({ content: 'black coffee', tags: ['home'] });
      await subject.client.update(id, { content: 'green tea' });
      await server.settle();
      const other = await openMappedSubject(server, OPTIONS);
      expect(await other.client.get(id)).toMatchObject({ content: 'green tea', tags: ['home'] });
      expect(await shown(user_id, other)).toEqual({ list: ['green tea'], search: ['green tea'] });
      await other.close();
    });

    it('what was deleted does not come back', async () => {
      const user_id = freshUser();
      await fill(server, namespace, [
        { id: `${user_id}/a`, text: 'green tea', metadata: { text: 'green tea', user_id } },
        { id: `${user_id}/b`, text: 'black coffee', metadata: { text: 'black coffee', user_id } },
      ]);
      await held();
      const id = `${user_id}/a`;
      await subject.client.remove(id);
      const { ask, tell, byId } = subject.client;
      expectError(await ask(byId(id)), 'not_found');
      expectError(await tell('PATCH', byId(id), { content: 'x' }), 'not_found');
      expectError(await tell('DELETE', byId(id)), 'not_found');
      expect(await shown(user_id)).toEqual({ list: ['black coffee'], search: ['black coffee'] });
      await server.settle();
      expect(await shown(user_id)).toEqual({ list: ['black coffee'], search: ['black coffee'] });
      expect(Object.keys(await server.records(namespace))).not.toContain(id);
    });

    it('what was patched ranks by its new content', async () => {
      const user_id = freshUser();
      await fill(server, namespace, [
        { id: `${user_id}/a`, text: 'green tea', metadata: { text: 'green tea', user_id } },
        { id: `${user_id}/b`, text: 'a red van', metadata: { text: 'a red van', user_id } },
        { id: `${user_id}/c`, text: 'black coffee', metadata: { text: 'black coffee', user_id } },
      ]);
      await held();
      await subject.client.update(`${user_id}/a`, { content: 'gardening' });
      await subject.client.update(`${user_id}/b`, { content: 'green tea' });
      await subject.client.update(`${user_id}/c`, { tags: ['home'] });
      const hits = await subject.client.search({ user_id, q: 'green tea', limit: 1 });
      expect(hits.map(({ memory }) => memory.content)).toEqual(['green tea']);
      const all = await subject.client.search({ user_id, q: 'black coffee' });
      expect(all[0]).toMatchObject({ memory: { tags: ['home'] }, score: expect.closeTo(1, 3) });
      expect(all).toHaveLength(3);
    });
  });

  describe('writes that meet those of the owner', () => {
    const add = async () => {
      const user_id = freshUser();
      const id = `${user_id}/a`;
      await fill(server, namespace, [{ id, text: 'green tea', metadata: { text: 'green tea', user_id, page: 1 } }]);
      return id;
    };

    it('a patch keeps what the owner changed in other keys', async () => {
      const id = await add();
      await subject.client.update(id, { tags: ['home'] });
      await change(server, namespace, id, { page: 2, seen: true });
      await subject.client.update(id, { content: 'black coffee' });
      expect((await server.records(namespace))[id]?.metadata).toMatchObject({
        text: 'black coffee',
        labels: ['home'],
        page: 2,
        seen: true,
      });
    });

    it('a patch does not bring back what the owner deleted', async () => {
      const id = await add();
      await server.lag({ fetchMs: 3_600_000 });
      await post(server, '/vectors/delete', { ids: [id], namespace });
      await subject.client.update(id, { content: 'black coffee' });
      expect(Object.keys(await server.records(namespace))).not.toContain(id);
    });

    it('with nothing remembered, what Pinecone shows counts', async () => {
      const forgetful = await openMappedSubject(server, { ...OPTIONS, settle_ms: 0 });
      const id = await add();
      await forgetful.client.update(id, { content: 'black coffee' });
      await change(server, namespace, id, { text: 'gardening' });
      expect((await forgetful.client.get(id)).content).toBe('gardening');
      await post(server, '/vectors/delete', { ids: [id], namespace });
      expectError(await forgetful.client.ask(forgetful.client.byId(id)), 'not_found');
      await forgetful.close();
    });

    it('a write that failed is not shown', async () => {
      const id = await add();
      const user_id = freshUser();
      for (const operation of ['update', 'delete', 'upsert'] as const) {
        await server.fail({ operation, kind: '503', times: 0 });
      }
      const { tell, byId } = subject.client;
      expectError(await tell('PATCH', byId(id), { content: 'black coffee' }), 'provider_error');
      expectError(await tell('DELETE', byId(id)), 'provider_error');
      expectError(await tell('POST', '/memories', { user_id, content: 'black coffee' }), 'provider_error');
      await server.clearFaults();
      expect((await subject.client.get(id)).content).toBe('green tea');
      expect(await shown(user_id)).toEqual({ list: [], search: [] });
    });
  });
});
