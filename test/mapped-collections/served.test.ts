import { randomUUID } from 'node:crypto';
import { QdrantClient } from '@qdrant/js-client-rest';
import { ChromaClient, type Metadata } from 'chromadb';
import { afterAll, beforeAll, describe, expect, it, onTestFinished, vi } from 'vitest';
import { backgroundCall, isMethod, METHODS } from '#contract';
import { toUnit } from '#ranking';
import chroma from '../../providers/collections/chroma.ts';
import { CHROMA, QDRANT } from '../../providers/collections/mapped/presets.ts';
import { vectorIn } from '../../providers/collections/mapped/qdrant.ts';
import qdrant from '../../providers/collections/qdrant.ts';
import { createMappedView, type ForeignCollection } from '../../src/collections/mapped-view.ts';
import { NO_CHROMA, openChroma } from '../chroma/start.ts';
import { openQdrant, tell } from '../qdrant/server.ts';
import { expectError } from '../support/expect-error.ts';
import { hashingEmbedder } from '../support/hashing-embedder.ts';
import { knownCallers } from '../support/known-callers.ts';
import { contextOf } from '../support/requests.ts';
import { openSubject, recordingLog } from '../support/subject.ts';
import { type FixtureOf, fixturesOf, GIVEN, loadChroma, loadQdrant } from './fixture.ts';

/** Which preset serves what each library filled. */
const PRESET_OF: Readonly<Record<string, string>> = {
  'qdrant-langchain-javascript': 'langchain-js',
  'qdrant-langchain-python': 'langchain',
  'qdrant-llamaindex-javascript': 'llamaindex',
  'qdrant-llamaindex-python': 'llamaindex',
  'qdrant-mastra-javascript': 'mastra',
  'qdrant-mem0-javascript': 'mem0-ts',
  'qdrant-mem0-python': 'mem0',
  'qdrant-n8n-javascript': 'n8n',
  'chroma-langchain-javascript': 'langchain',
  'chroma-langchain-python': 'langchain',
  'chroma-llamaindex-javascript': 'llamaindex',
  'chroma-llamaindex-python': 'llamaindex',
  'chroma-mastra-javascript': 'mastra',
  'chroma-mem0-python': 'mem0',
  'chroma-n8n-javascript': 'langchain',
};

/** A point as the client of the database shows it. The fields of Chroma are its metadata, with the document as `#document`. */
interface Shown {
  readonly id: string;
  readonly fields: Readonly<Record<string, unknown>>;
  readonly vector: unknown;
}
/** A database in which collections are served. */
interface Database {
  readonly url: string;
  load(fixture: Served, collection: string): Promise<void>;
  /** A collection with Cosine. */
  put(collection: string, points: readonly Omit<Shown, 'vector'>[], vector: number[]): Promise<void>;
  all(collection: string): Promise<Shown[]>;
  /** What else a collection is, such as its indexes. */
  settings(collection: string): Promise<unknown>;
  close(): Promise<unknown>;
}

async function openedQdrant(): Promise<Database> {
  const { url, close } = await openQdrant();
  const client = new QdrantClient({ url, checkCompatibility: false });
  return {
    ...{ url, close },
    load: (fixture, name) => loadQdrant(client, fixture as FixtureOf<'qdrant'>, name),
    async put(name, points, vector) {
      await client.createCollection(name, { vectors: { size: vector.length, distance: 'Cosine' } });
      const stored = points.map(({ id, fields }) => ({
        ...{ id: /^\d+$/.test(id) ? Number(id) : id, payload: fields, vector },
      }));
      await client.upsert(name, { points: stored, wait: true });
    },
    async all(name) {
      const { points } = await client.scroll(name, { limit: 100, with_vector: true });
      return points.map(({ id, payload, vector }) => ({ id: String(id), fields: payload ?? {}, vector }));
    },
    async settings(name) {
      const { config, payload_schema } = (await tell('GET', `${url}/collections/${name}`)).body.result;
      return { config, indexes: Object.keys(payload_schema).sort() };
    },
  };
}

async function openedChroma(): Promise<Database> {
  const { url, close } = await openChroma();
  const client = new ChromaClient({ host: '127.0.0.1', port: Number(new URL(url).port) });
  return {
    ...{ url, close },
    load: (fixture, name) => loadChroma(client, fixture as FixtureOf<'chroma'>, name),
    async put(name, points, vector) {
      const configuration = { hnsw: { space: 'cosine' as const } };
      const collection = await client.createCollection({ name, embeddingFunction: null, configuration });
      for (const { id, fields } of points) {
        const { '#document': document, ...metadata } = fields;
        await collection.add({
          ...{ ids: [id], embeddings: [vector], metadatas: [metadata as Metadata] },
          ...(typeof document === 'string' && { documents: [document] }),
        });
      }
    },
    async all(name) {
      const collection = await client.getCollection({ name });
      const found = await collection.get({ include: ['documents', 'metadatas', 'embeddings'] });
      return found.rows().map(({ id, document, metadata, embedding }) => ({
        ...{ id, fields: { ...metadata, ...(document != null && { '#document': document }) }, vector: embedding },
      }));
    },
    async settings(name) {
      const { configuration, metadata } = await client.getCollection({ name });
      return { configuration, metadata, collections: (await client.listCollections()).map((each) => each.name).sort() };
    },
  };
}

const DATABASES = {
  qdrant: { module: qdrant, presets: QDRANT, absent: '', open: openedQdrant },
  chroma: { module: chroma, presets: CHROMA, absent: NO_CHROMA, open: openedChroma },
} as const;
type Name = keyof typeof DATABASES;

const FIXTURES = [...fixturesOf('qdrant'), ...fixturesOf('chroma')].map((fixture) => {
  const preset = PRESET_OF[fixture.name] ?? 'custom';
  const { library, read_only } = { read_only: undefined, ...Object(DATABASES[fixture.database].presets)[preset] };
  return { ...fixture, preset, known: String(library), writable: read_only === undefined };
});
type Served = (typeof FIXTURES)[number];

const embedder = hashingEmbedder(8);
const opened = new Map<Name, Database>();
beforeAll(async () => {
  for (const [name, { absent, open }] of Object.entries(DATABASES))
    if (absent === '') opened.set(name as Name, await open());
});
afterAll(() => Promise.all([...opened.values()].map(({ close }) => close())));

/** Opens a gateway on a collection. */
async function gatewayOn(name: Name, collection: string, options: object) {
  const database = opened.get(name) as Database;
  const callers = knownCallers();
  const given = { url: database.url, collection, ...options };
  const subject = await openSubject({
    ...{ provider: name, options: given, mode: 'vector', embedder, authenticator: callers.authenticator },
  });
  onTestFinished(subject.close);
  const all = () => database.all(collection);
  const point = async (id: string) => (await all()).find((each) => each.id === id);
  return {
    ...{ ...subject, database, collection, all, point },
    of: (user: string) => subject.as(callers.admit({ users: [user] })),
  };
}
/** A collection as the library left it. */
async function loaded(fixture: Served): Promise<{ url: string; collection: string }> {
  const database = opened.get(fixture.database) as Database;
  const collection = `${fixture.library}-${randomUUID()}`;
  await database.load(fixture, collection);
  return { url: database.url, collection };
}
async function served(fixture: Served, options: object = {}) {
  const { collection } = await loaded(fixture);
  return gatewayOn(fixture.database, collection, { preset: fixture.preset, ...options });
}
const contextWith = (log = recordingLog()) =>
  contextOf({ embedder, ranking: { mode: 'vector', keyword_weight: 0 }, log });
const textsOf = (user: string) => [...GIVEN.values()].filter(({ user_id }) => user_id === user).map(({ text }) => text);

it.each(Object.keys(DATABASES) as Name[])(
  'every preset of %s is seen in a collection that its library filled',
  (name) => {
    expect(new Set(FIXTURES.flatMap(({ database, preset }) => (database === name ? [preset] : [])))).toEqual(
      new Set(Object.keys(DATABASES[name].presets).filter((preset) => preset !== 'custom')),
    );
  },
);

const names = (Object.keys(DATABASES) as Name[]).filter((name) => DATABASES[name].absent === '');

describe.each(FIXTURES.filter(({ database }) => names.includes(database)))('$name', (fixture) => {
  const { ids, searches, preset, writable, known, database } = fixture;
  const { module } = DATABASES[database];
  const SETTING = `OMP_${database.toUpperCase()}`;
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
    const messages = async (options: object) =>
      (await module.diagnose?.({ ...place, ...options }, contextWith() as never))?.map(
        ({ level, message }) => `${level} ${message}`,
      );
    const right = await messages({ preset });
    expect(right?.filter((each) => each.startsWith('problem'))).toEqual([]);
    const named = `${SETTING}_PRESET=${preset}`;
    expect(right).toContainEqual(expect.stringMatching(`^ok ${named} fits .* the fields of ${known}`));
    expect(right).toContainEqual(
      expect.stringMatching(`^ok ${GIVEN.size} points, vectors of 8 dimensions, compared by`),
    );
    const without = await messages({});
    expect(without).toContainEqual(expect.stringMatching(`^problem .*not made by the gateway.*${known}.*${named}`));
    expect(without?.join()).not.toContain('the next start creates');
    await expect(module.open(place, contextWith())).rejects.toThrow(named);
    const wrong = preset === 'mastra' ? 'mem0' : 'mastra';
    expect(await messages({ preset: wrong })).toContainEqual(
      expect.stringMatching(`^problem none of 8 .*they have.*${named}`),
    );
    const log = recordingLog();
    await (await module.open({ ...place, preset: wrong }, contextWith(log))).close();
    expect(log.lines[0]).toMatchObject({ level: 'warn', message: expect.stringContaining(named) });
  });

  it.skipIf(writable)('cannot be made writable, as the message says', async () => {
    const place = await loaded(fixture);
    const made = module.open({ ...place, preset, writable: true }, contextWith());
    await expect(made).rejects.toThrow(`${SETTING}_WRITABLE cannot be used with ${SETTING}_PRESET=${preset}`);
  });

  it('[Decision 64] is read-only unless it is said to be writable', async () => {
    const { client: caller, database: base, collection, all, raw } = await served(fixture);
    const [before, settings] = [await all(), await base.settings(collection)];
    const tea = caller.byId(ids.tea as string);
    for (const reply of [
      await caller.tell('POST', '/memories', { user_id: 'ana', content: 'x' }),
      await caller.tell('POST', '/memories/batch', { memories: [{ user_id: 'ana', content: 'x' }] }),
      await caller.tell('PATCH', tea, { content: 'x' }),
      await caller.tell('DELETE', tea),
      await caller.tell('POST', `${tea}/restore`, { version: 1 }),
      await caller.tell('DELETE', '/users/ana/memories'),
    ])
      expect(expectError(reply, 'unsupported_capability').message).toBeTruthy();
    // Commands and retention have nothing else to change it with.
    const writes = Object.entries(METHODS).flatMap(([name, method]) =>
      isMethod(method) && !method.reads ? [name] : [],
    );
    expect(writes.filter((name) => name in raw)).toEqual([]);
    expect([await all(), await base.settings(collection)]).toEqual([before, settings]);
  });

  it.skipIf(!writable)('[Decision 64] a change keeps all metadata that the gateway does not know', async () => {
    const { client: caller, point } = await served(fixture, { writable: true });
    for (const key of ['peanuts', 'ferry', 'lines']) {
      const before = await point(ids[key] as string);
      const text = GIVEN.get(key)?.text ?? '';
      await caller.update(ids[key] as string, { content: 'changed' });
      const after = await point(ids[key] as string);
      const expected = JSON.stringify(before?.fields).replace(JSON.stringify(text), '"changed"');
      expect(after?.fields).toEqual(JSON.parse(expected));
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
    // Where lengths count, the gateway stores one of 1.
    const unit = (point: Shown | undefined) => [...toUnit(Float32Array.from(point?.vector as number[]))];
    expect(unit(stored)).toEqual(unit(tea).map((component) => expect.closeTo(component, 5)));
    // What it has, the library has there too.
    expect(tea?.fields).toMatchObject({ ...stored?.fields });
    const { message } = expectError(
      await caller.tell('POST', '/memories', { user_id: 'ana', content: 'x', confidence: 1, tags: ['a'] }),
      'unsupported_capability',
    );
    expect(message).toMatch(/^tags, confidence: the collection cannot store this/);
  });

  it.skipIf(!writable)(
    '[Decision 38] erases what belongs to a user, and says that the application may hold more',
    async () => {
      const { client: caller, all } = await served(fixture, { writable: true });
      expect(await caller.receipt('ana')).toMatchObject({
        complete: true,
        stores: [{ mapped: true, removed: { memories: 5 }, left: { memories: 0 } }],
        kept: expect.arrayContaining([expect.objectContaining({ what: 'other_application' })]),
      });
      expect(await all()).toHaveLength(GIVEN.size - 5);
    },
  );
});

/** Points of every kind that is no memory of ana, beside one that is. */
const HOSTILE: Readonly<Record<Name, readonly Omit<Shown, 'vector'>[]>> = {
  qdrant: [
    { text: 'of ana', owner: { id: 'ana', deep: { list: [1, null, { a: 'b' }] } }, empty: null },
    { text: 'of ben', owner: { id: 'ben' } },
    { text: 'of nobody', owner: {} },
    { text: 'of a list', owner: { id: ['ana'] } },
    { text: 'of two', owner: { id: ['ana', 'ben'] } },
    { text: 'of lists', owner: [{ id: 'ana' }] },
    { text: 'of a number', owner: { id: 1 } },
    { text: 'of a dotted name', 'owner.id': 'ana' },
    { text: 'of a star', owner: { id: '*' } },
    { owner: { id: 'ana' } },
    { text: ' ', owner: { id: 'ana' } },
    { text: ['a list'], owner: { id: 'ana' } },
    { text: 'x'.repeat(2_000_000), owner: { id: 'dan' } },
    { text: 'of an odd time', owner: { id: 'eve' }, at: 1e300 },
  ].map((fields, at) => ({ id: String(at + 7), fields })),
  chroma: [
    { text: 'of ana', 'owner.id': 'ana', list: [1, 2], more: true },
    { text: 'of ben', 'owner.id': 'ben' },
    { text: 'of nobody' },
    { text: 'of a list', 'owner.id': ['ana'] },
    { text: 'of two', 'owner.id': ['ana', 'ben'] },
    { text: 'of a number', 'owner.id': 1 },
    { text: 'of a star', 'owner.id': '*' },
    { 'owner.id': 'ana' },
    { text: ' ', 'owner.id': 'ana' },
    { text: ['a list'], 'owner.id': 'ana' },
    { text: 'x'.repeat(2_000_000), 'owner.id': 'dan' },
    { text: 'of an odd time', 'owner.id': 'eve', at: 1e300 },
  ].map((fields, at) => ({ id: String(at + 7), fields })),
};
const CUSTOM = { preset: 'custom', text_field: 'text', user_field: 'owner.id', created_field: 'at', writable: true };

describe.each(names)('a collection of %s with points of every kind', (name) => {
  const open = async (options: object = {}) => {
    const collection = `hostile-${randomUUID()}`;
    const vector = [...((await embedder.embed(['of ana'], 'query', backgroundCall('test')))[0] as Float32Array)];
    await (opened.get(name) as Database).put(collection, HOSTILE[name], vector);
    return gatewayOn(name, collection, { ...CUSTOM, ...options });
  };

  it('[Decision 64] a caller of one user reads, changes and removes nothing else', async () => {
    const { of, all } = await open();
    const ana = of('ana');
    const before = await all();
    const [{ id: own }, ...others] = HOSTILE[name] as [Shown, ...Shown[]];
    expect((await ana.list({ user_id: 'ana' })).items.map(({ id }) => id)).toEqual([own]);
    expect((await ana.search({ user_id: 'ana', q: 'of ana', limit: 50 })).map(({ memory }) => memory.id)).toEqual([
      own,
    ]);
    for (const user_id of ['*', 'ben', '1']) expectError(await ana.ask('/memories', { user_id }), 'scope_denied');
    for (const id of [...others.map((point) => point.id), `0${own}`, '-7', '7.0', '07', ' 7', '7e0']) {
      for (const reply of [
        await ana.ask(ana.byId(id)),
        await ana.tell('PATCH', ana.byId(id), { content: 'x' }),
        await ana.tell('DELETE', ana.byId(id)),
      ])
        expectError(reply, 'not_found');
    }
    // No patch has an owner: it changes nothing.
    expect((await ana.update(own, { user_id: 'ben' })).user_id).toBe('ana');
    expect(await all()).toEqual(before);
  });

  it('[Decision 64] a change and an erase of one user leave all others as they are', async () => {
    const { client: caller, all } = await open();
    const [own, ...others] = await all();
    await caller.update(own?.id as string, { content: 'changed' });
    const [changed, ...rest] = await all();
    expect(changed?.fields).toEqual({ ...own?.fields, text: 'changed' });
    expect(rest).toEqual(others);
    // A user like others, and no pattern.
    expect(await caller.erase('*')).toBe(1);
    expect(await caller.erase('ana')).toBe(1);
    const left = others.filter(({ fields }) => fields.text !== 'of a star');
    expect(await all()).toEqual(left);
    for (const user_id of ['ben', 'dan', 'eve']) expect((await caller.list({ user_id })).items).toHaveLength(1);
    expect(await caller.list({ user_id: '1' })).toMatchObject({ items: [] });
  });
});

it('[Decision 64] what is no object is never replaced by one: neither text, list nor number', async () => {
  const { client: caller, all, collection, database } = await gatewayWithTimes();
  const before = await all();
  for (const { id } of before) {
    const { message } = expectError(
      await caller.tell('PATCH', caller.byId(id), { content: 'x' }),
      'unsupported_capability',
    );
    expect(message).toMatch(/^times.changed: /);
  }
  expect(await database.all(collection)).toEqual(before);
});

it('[Decision 64] a point that another application gave to another user meanwhile is not changed', async () => {
  const change = vi.fn(async () => true);
  const fields = { text: 'tea', user: 'ben' };
  const raw = { traits: { ids: 'text', filters: [] }, fetch: async () => [{ id: '1', fields }], change };
  const nowhere = { scope: undefined, created: undefined, updated: undefined, tags: undefined, node: undefined };
  const mapping = { text: 'text', user: 'user', ...nowhere, nested: false, noun: 'collection' };
  const place = { provider: 'test', mapping, measure: 'cosine', comparable: true } as const;
  const { replace } = createMappedView(raw as unknown as ForeignCollection, place);
  const after = (user_id: string) => ({
    ...{ id: '1', fields: { user_id, content: 'x', scope: '', tags: [], updated: 0 }, vector: new Float32Array(8) },
  });
  expect(await replace?.(after('ana'), 0, backgroundCall('test'))).toBe(false);
  expect(change).not.toHaveBeenCalled();
  expect(await replace?.(after('ben'), 0, backgroundCall('test'))).toBe(true);
});

it.each([true, false])(
  '[Decision 64] points with several vectors each are refused, with a preset: %s',
  async (mapped) => {
    const params = { size: 8, distance: 'Cosine', multivector_config: { comparator: 'max_sim' } } as const;
    expect(vectorIn(params, mapped).mistake).toBe('each point has several vectors');
    expect(vectorIn({ dense: params }, true).mistake).toBe('each point has several vectors');
  },
);

async function gatewayWithTimes() {
  const collection = `times-${randomUUID()}`;
  const points = ['2026', ['2026'], 7].map((times, at) => ({
    ...{ id: String(at + 1), fields: { text: 'tea', owner: { id: 'ana' }, times } },
  }));
  await (opened.get('qdrant') as Database).put(collection, points, [1, 0, 0, 0, 0, 0, 0, 0]);
  return gatewayOn('qdrant', collection, { ...CUSTOM, updated_field: 'times.changed' });
}
