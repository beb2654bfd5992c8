import { randomUUID } from 'node:crypto';
import { QdrantClient } from '@qdrant/js-client-rest';
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from 'vitest';
import { QDRANT } from '../../providers/collections/mapped/presets.ts';
import qdrant from '../../providers/collections/qdrant.ts';
import { openQdrant, type Qdrant, tell } from '../qdrant/server.ts';
import { expectError } from '../support/expect-error.ts';
import { hashingEmbedder } from '../support/hashing-embedder.ts';
import { contextOf } from '../support/requests.ts';
import { openSubject, recordingLog } from '../support/subject.ts';
import { type FixtureOf, fixturesOf, GIVEN, loadQdrant } from './fixture.ts';

/** Which preset serves what each library filled. */
const PRESET_OF: Readonly<Record<string, keyof typeof QDRANT>> = {
  'qdrant-langchain-javascript': 'langchain-js',
  'qdrant-langchain-python': 'langchain',
  'qdrant-llamaindex-javascript': 'llamaindex',
  'qdrant-llamaindex-python': 'llamaindex',
  'qdrant-mastra-javascript': 'mastra',
  'qdrant-mem0-javascript': 'mem0-ts',
  'qdrant-mem0-python': 'mem0',
  'qdrant-n8n-javascript': 'n8n',
};
const FIXTURES = fixturesOf('qdrant').map((fixture) => {
  const preset = PRESET_OF[fixture.name] ?? 'custom';
  return { ...fixture, preset, writable: !('read_only' in QDRANT[preset]) };
});

const embedder = hashingEmbedder(8);
let server: Qdrant;
let client: QdrantClient;
beforeAll(async () => {
  server = await openQdrant();
  client = new QdrantClient({ url: server.url, checkCompatibility: false });
});
afterAll(() => server.close());

type Served = (typeof FIXTURES)[number];

/** A collection as the library left it. */
async function loaded(fixture: FixtureOf<'qdrant'>): Promise<{ url: string; collection: string }> {
  const collection = `${fixture.library}-${randomUUID()}`;
  await loadQdrant(client, fixture, collection);
  return { url: server.url, collection };
}
async function served(fixture: Served, options: object = {}) {
  const place = await loaded(fixture);
  const given = { ...place, preset: fixture.preset, ...options };
  const subject = await openSubject({ provider: 'qdrant', options: given, mode: 'vector', embedder });
  onTestFinished(subject.close);
  const point = async (id: string) => (await client.retrieve(place.collection, { ids: [id], with_vector: true }))[0];
  return { ...subject, place, point };
}
const contextWith = (log = recordingLog()) =>
  contextOf({ embedder, ranking: { mode: 'vector', keyword_weight: 0 }, log });
const textsOf = (user: string) => [...GIVEN.values()].filter(({ user_id }) => user_id === user).map(({ text }) => text);

it('every preset is seen in a collection that its library filled', () => {
  expect(new Set(FIXTURES.map(({ preset }) => preset))).toEqual(
    new Set(Object.keys(QDRANT).filter((name) => name !== 'custom')),
  );
});

describe.each(FIXTURES)('$name', (fixture) => {
  const { ids, searches, preset, writable } = fixture;
  const keyOf = new Map(Object.entries(ids).map(([key, id]) => [id, key]));

  it('[Decision 64] [SPEC GET /memories] [SPEC GET /memories/{id}] has the memories of each user, and nobody the rest', async () => {
    const { client: caller, capabilities } = await served(fixture);
    for (const user_id of ['ana', 'ben']) {
      const first = await caller.list({ user_id, limit: 2 });
      const { items } = await caller.list({ user_id });
      expect(items.map(({ content }) => content).sort()).toEqual(textsOf(user_id).sort());
      expect(first.items).toEqual(items.slice(0, 2));
      for (const item of items) expect(await caller.get(item.id)).toEqual(item);
      const times = items.map(({ created_at, id }) => `${created_at} ${id}`);
      expect(times).toEqual([...times].sort().reverse());
      expect(items.some(({ created_at }) => created_at > '2026')).toBe(capabilities.features.temporal);
    }
    for (const user_id of ['*', 'an', 'nobody']) expect((await caller.list({ user_id })).items).toEqual([]);
    expectError(await caller.ask(caller.byId(ids.nobody as string)), 'not_found');
    expectError(await caller.ask(caller.byId('no-id')), 'not_found');
  });

  it('[Decision 64] [SPEC GET /memories/search] finds what the library finds, in its order', async () => {
    const { client: caller } = await served(fixture);
    for (const { user_id, text, found } of searches) {
      const hits = await caller.search({ user_id, q: text, limit: 100 });
      expect(hits).toHaveLength(textsOf(user_id).length);
      const positive = hits.filter(({ score }) => score > 0).map(({ memory }) => keyOf.get(memory.id));
      expect(positive.slice(0, found.length)).toEqual(found.slice(0, positive.length));
    }
    expect(await caller.search({ user_id: '*', q: 'tea' })).toEqual([]);
  });

  it('[Decision 64] doctor knows the library, with the preset, without one and with another one', async () => {
    const place = await loaded(fixture);
    const { library } = QDRANT[preset];
    const messages = async (options: object) =>
      (await qdrant.diagnose?.({ ...place, ...options }, contextWith() as never))?.map(
        ({ level, message }) => `${level} ${message}`,
      );
    const right = await messages({ preset });
    expect(right?.filter((each) => each.startsWith('problem'))).toEqual([]);
    expect(right).toContainEqual(
      expect.stringMatching(`^ok OMP_QDRANT_PRESET=${preset} fits .* the fields of ${library}`),
    );
    expect(right).toContainEqual(`ok ${GIVEN.size} points, vectors of 8 dimensions, compared by cosine`);
    const named = `OMP_QDRANT_PRESET=${preset}`;
    expect(await messages({})).toContainEqual(
      expect.stringMatching(`^problem .*not made by the gateway.*${library}.*${named}`),
    );
    const wrong = preset === 'langchain' ? 'mem0' : 'langchain';
    expect(await messages({ preset: wrong })).toContainEqual(
      expect.stringMatching(`^problem none of 8 .*they have.*${named}`),
    );
    const log = recordingLog();
    await (await qdrant.open({ ...place, preset: wrong }, contextWith(log))).close();
    expect(log.lines).toMatchObject([{ level: 'warn', message: expect.stringContaining(named) }]);
  });

  it.skipIf(writable)('cannot be made writable, as the message says', async () => {
    const place = await loaded(fixture);
    const opened = qdrant.open({ ...place, preset, writable: true }, contextWith());
    await expect(opened).rejects.toThrow(`OMP_QDRANT_WRITABLE cannot be used with OMP_QDRANT_PRESET=${preset}`);
  });

  it('[Decision 64] is read-only unless it is said to be writable', async () => {
    const { client: caller, place } = await served(fixture);
    const before = await client.scroll(place.collection, { limit: 100, with_vector: true });
    for (const reply of [
      await caller.tell('POST', '/memories', { user_id: 'ana', content: 'x' }),
      await caller.tell('PATCH', caller.byId(ids.tea as string), { content: 'x' }),
      await caller.tell('DELETE', caller.byId(ids.tea as string)),
      await caller.tell('DELETE', '/users/ana/memories'),
    ])
      expect(expectError(reply, 'unsupported_capability').message).toBeTruthy();
    expect(await client.scroll(place.collection, { limit: 100, with_vector: true })).toEqual(before);
    expect((await tell('GET', `${server.url}/collections/${place.collection}`)).body.result.payload_schema).toEqual(
      Object.fromEntries(Object.keys(fixture.indexes).map((name) => [name, expect.anything()])),
    );
  });

  it.skipIf(!writable)('[Decision 64] a change keeps all metadata that the gateway does not know', async () => {
    const { client: caller, point } = await served(fixture, { writable: true });
    for (const key of ['peanuts', 'ferry', 'lines']) {
      const before = await point(ids[key] as string);
      const text = GIVEN.get(key)?.text ?? '';
      await caller.update(ids[key] as string, { content: 'changed' });
      const after = await point(ids[key] as string);
      expect(JSON.stringify(after?.payload)).toBe(
        JSON.stringify(before?.payload).replace(JSON.stringify(text), '"changed"'),
      );
      expect(after?.vector).not.toEqual(before?.vector);
    }
    expect(
      (await caller.search({ user_id: 'ana', q: 'changed', limit: 3 })).map(({ memory }) => memory.content),
    ).toEqual(['changed', 'changed', 'changed']);
  });

  it.skipIf(!writable)('[Decision 64] an added memory has the form of the others', async () => {
    const { client: caller, point } = await served(fixture, { writable: true });
    const added = await caller.add({ user_id: 'ana', content: 'drinks oolong tea in the morning' });
    const [stored, tea] = [await point(added.id), await point(ids.tea as string)];
    expect(stored?.vector).toEqual(tea?.vector);
    // What it has, the library has there too.
    expect(tea?.payload).toMatchObject(stored?.payload as object);
    const { message } = expectError(
      await caller.tell('POST', '/memories', { user_id: 'ana', content: 'x', confidence: 1, tags: ['a'] }),
      'unsupported_capability',
    );
    expect(message).toMatch(/^tags, confidence: the collection cannot store this/);
  });

  it.skipIf(!writable)(
    '[Decision 38] erases what belongs to a user, and says that the application may hold more',
    async () => {
      const { client: caller, place } = await served(fixture, { writable: true });
      expect(await caller.receipt('ana')).toMatchObject({
        complete: true,
        stores: [{ mapped: true, removed: { memories: 5 }, left: { memories: 0 } }],
        kept: expect.arrayContaining([expect.objectContaining({ what: 'other_application' })]),
      });
      expect((await client.count(place.collection, { exact: true })).count).toBe(GIVEN.size - 5);
    },
  );
});
