import { randomUUID } from 'node:crypto';
import { isDeepStrictEqual } from 'node:util';
import { connect } from '@lancedb/lancedb';
import { afterAll, beforeAll, describe, expect, it, onTestFinished, vi } from 'vitest';
import { backgroundCall, isMethod, METHODS } from '#contract';
import type { Presets } from '#provider';
import { toUnit } from '#ranking';
import chroma from '../../providers/collections/chroma.ts';
import lancedb from '../../providers/collections/lancedb.ts';
import { layoutOf } from '../../providers/collections/mapped/milvus.ts';
import { CHROMA, LANCEDB, MILVUS, QDRANT } from '../../providers/collections/mapped/presets.ts';
import { vectorIn } from '../../providers/collections/mapped/qdrant.ts';
import milvus from '../../providers/collections/milvus.ts';
import qdrant from '../../providers/collections/qdrant.ts';
import { createMappedView, type ForeignCollection } from '../../src/collections/mapped-view.ts';
import { NO_CHROMA } from '../chroma/start.ts';
import { NO_MILVUS } from '../milvus/server.ts';
import { expectError } from '../support/expect-error.ts';
import { hashingEmbedder } from '../support/hashing-embedder.ts';
import { knownCallers } from '../support/known-callers.ts';
import { contextOf } from '../support/requests.ts';
import { openSubject, recordingLog } from '../support/subject.ts';
import { type Database, openedChroma, openedLancedb, openedMilvus, openedQdrant, type Shown } from './databases.ts';
import { fixturesOf, GIVEN, presetOf } from './fixture.ts';

const DATABASES = {
  milvus: { module: milvus, presets: MILVUS, absent: NO_MILVUS, open: openedMilvus },
  lancedb: { module: lancedb, presets: LANCEDB, absent: '', open: openedLancedb },
  qdrant: { module: qdrant, presets: QDRANT, absent: '', open: openedQdrant },
  chroma: { module: chroma, presets: CHROMA, absent: NO_CHROMA, open: openedChroma },
} as const;
type Name = keyof typeof DATABASES;

const EVERY = [...fixturesOf('qdrant'), ...fixturesOf('chroma'), ...fixturesOf('milvus'), ...fixturesOf('lancedb')];
/** LangChain.js gives no ids to the rows of LanceDB. */
const isUnserved = ({ database, points: [first] }: (typeof EVERY)[number]) => database === 'lancedb' && !first?.id;
const FIXTURES = EVERY.filter((fixture) => !isUnserved(fixture)).map((fixture) => {
  const preset = presetOf(fixture, DATABASES[fixture.database].presets);
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
  const given = { ...database.place(collection), ...options };
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
async function loaded(fixture: Served): Promise<string> {
  const database = opened.get(fixture.database) as Database;
  const collection = `${fixture.library}_${randomUUID().replaceAll('-', '_')}`;
  await database.load(fixture, collection);
  return collection;
}
const placeOf = async (fixture: Served) => (opened.get(fixture.database) as Database).place(await loaded(fixture));
async function served(fixture: Served, options: object = {}) {
  return gatewayOn(fixture.database, await loaded(fixture), { preset: fixture.preset, ...options });
}
/** Options that do not fit a collection with this preset. Where all columns are known, there may be no start. */
const OTHER = (preset: string) => ({ preset: preset === 'mastra' ? 'mem0' : 'mastra' });
const WRONG: Readonly<Record<Name, (preset: string) => object>> = {
  ...{ qdrant: OTHER, chroma: OTHER },
  milvus: (preset) => ({ preset: preset === 'langchain-js' ? 'langchain' : 'langchain-js' }),
  lancedb: () => ({ preset: 'custom', text_field: 'metadata', user_field: 'metadata_user' }),
};
const contextWith = (log = recordingLog()) =>
  contextOf({ embedder, ranking: { mode: 'vector', keyword_weight: 0 }, log });

it.each(Object.keys(DATABASES) as Name[])(
  'every preset of %s is seen in a collection that its library filled',
  (name) => {
    expect(new Set(FIXTURES.flatMap(({ database, preset }) => (database === name ? [preset] : [])))).toEqual(
      new Set(Object.keys(DATABASES[name].presets).filter((preset) => preset !== 'custom')),
    );
  },
);

/** A row has every column, and none holds null where another one has nothing. */
const filledOf = (fields: unknown): object =>
  JSON.parse(JSON.stringify(fields, (_, value) => (value === null ? undefined : value)));

const names = (Object.keys(DATABASES) as Name[]).filter((name) => DATABASES[name].absent === '');

describe.each(FIXTURES.filter(({ database }) => names.includes(database)))('$name', (fixture) => {
  const { ids, searches, preset, writable, known, database } = fixture;
  const { module } = DATABASES[database];
  const SETTING = `OMP_${database.toUpperCase()}`;
  // What the library took.
  const taken = [...GIVEN.values()].filter(({ key }) => key in ids);
  const keyOf = new Map(taken.map(({ key, text }) => [text, key]));
  const textsOf = (user: string) => taken.filter(({ user_id }) => user_id === user).map(({ text }) => text);

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
      const positive = hits.filter(({ score }) => score > 0).map(({ memory }) => keyOf.get(memory.content));
      expect(positive.slice(0, found.length)).toEqual(found.slice(0, positive.length));
    }
    expect(await caller.search({ user_id: '*', q: 'tea' })).toEqual([]);
  });

  it('[Decision 64] doctor knows the library, with the preset, without one and with another one', async () => {
    const place = await placeOf(fixture);
    const messages = async (options: object) =>
      (await module.diagnose?.({ ...place, ...options }, contextWith() as never))?.map(
        ({ level, message }) => `${level} ${message}`,
      );
    const right = await messages({ preset });
    expect(right?.filter((each) => each.startsWith('problem'))).toEqual([]);
    const named = `${SETTING}_PRESET=${preset}`;
    expect(right).toContainEqual(expect.stringMatching(`^ok ${named} fits .* the fields of ${known}`));
    expect(right).toContainEqual(
      expect.stringMatching(`^ok ${taken.length} points, vectors of 8 dimensions, compared by`),
    );
    const without = await messages({});
    expect(without).toContainEqual(expect.stringMatching(`^problem .*not made by the gateway.*${known}.*${named}`));
    expect(without?.join()).not.toContain('the next start creates');
    await expect(module.open(place, contextWith())).rejects.toThrow(named);
    const wrong = WRONG[database](preset);
    const doubt = `^problem (none of ${taken.length} .*they have|.* cannot (show|filter)).*${named}`;
    expect(await messages(wrong)).toContainEqual(expect.stringMatching(doubt));
    const log = recordingLog();
    const said = await module.open({ ...place, ...wrong }, contextWith(log)).then(async (store) => {
      await store.close();
      expect(log.lines[0]).toMatchObject({ level: 'warn' });
      return log.lines[0]?.message;
    }, String);
    expect(said).toContain(named);
  });

  it('[Decision 64] with the preset of another library that reads it otherwise, doctor names the right one, and none makes it writable', async () => {
    const place = await placeOf(fixture);
    const { presets } = DATABASES[database];
    const read = (name: string) => ({ ...(presets as Presets)[name], library: '', versions: '', signs: [] });
    for (const other of Object.keys(presets).filter((each) => each !== 'custom')) {
      if (isDeepStrictEqual(read(other), read(preset))) continue;
      const said = await module.diagnose?.({ ...place, preset: other }, contextWith() as never);
      expect(said?.filter(({ level }) => level !== 'ok').map(({ message }) => message)).toContainEqual(
        expect.stringContaining(`${known} fills it: ${SETTING}_PRESET=${preset}`),
      );
      if (!writable)
        await expect(module.open({ ...place, preset: other, writable: true }, contextWith())).rejects.toThrow(SETTING);
    }
  });

  it.skipIf(writable)('cannot be made writable, as the message says', async () => {
    const place = await placeOf(fixture);
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
    const tea_again = { user_id: 'ana', content: 'drinks oolong tea in the morning' };
    if (fixture.name === 'milvus-langchain-python') {
      // Its columns are those of the first document, and none may be missing.
      const { message } = expectError(await caller.tell('POST', '/memories', tea_again), 'unsupported_capability');
      return expect(message).toBe('every point needs a "topic", which no memory has');
    }
    const added = await caller.add(tea_again);
    const [stored, tea] = [await point(added.id), await point(ids.tea as string)];
    // Where lengths count, the gateway stores one of 1.
    const unit = (point: Shown | undefined) => [...toUnit(Float32Array.from(point?.vector as number[]))];
    expect(unit(stored)).toEqual(unit(tea).map((component) => expect.closeTo(component, 5)));
    // What it has, the library has there too.
    expect(filledOf(tea?.fields)).toMatchObject(filledOf(stored?.fields));
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
        stores: [{ mapped: true, removed: { memories: textsOf('ana').length }, left: { memories: 0 } }],
        kept: expect.arrayContaining([expect.objectContaining({ what: 'other_application' })]),
      });
      expect(await all()).toHaveLength(taken.length - textsOf('ana').length);
    },
  );
});

/** Points of every kind that is no memory of ana, beside one that is. */
const NESTED: readonly object[] = [
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
];
const HOSTILE: Readonly<Record<Name, readonly object[]>> = {
  qdrant: NESTED,
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
  ],
  // What stands beside its columns has at most 64 KiB.
  milvus: NESTED.map((fields) =>
    'text' in fields && String(fields.text).length > 60_000 ? { ...fields, text: 'x'.repeat(60_000) } : fields,
  ),
  lancedb: [
    { text: 'of ana', owner: { id: 'ana', more: 'kept' } },
    { text: 'of ben', owner: { id: 'ben', more: null } },
    { text: 'of nobody', owner: { id: null, more: 'x' } },
    { text: 'of nothing', owner: null },
    { text: 'of a star', owner: { id: '*', more: null } },
    { owner: { id: 'ana', more: null } },
    { text: ' ', owner: { id: 'ana', more: null } },
    { text: 'x'.repeat(2_000_000), owner: { id: 'dan', more: null } },
    { text: 'of an odd time', owner: { id: 'eve', more: null }, at: 1e300 },
  ],
};
const hostileOf = (name: Name) =>
  HOSTILE[name].map((fields, at) => ({ id: String(at + 7), fields: fields as Shown['fields'] }));
const CUSTOM = { preset: 'custom', text_field: 'text', user_field: 'owner.id', created_field: 'at', writable: true };

describe.each(names)('a collection of %s with points of every kind', (name) => {
  const open = async (options: object = {}) => {
    const collection = `hostile_${randomUUID().replaceAll('-', '_')}`;
    const vector = [...((await embedder.embed(['of ana'], 'query', backgroundCall('test')))[0] as Float32Array)];
    await (opened.get(name) as Database).put(collection, hostileOf(name), vector);
    return gatewayOn(name, collection, { ...CUSTOM, ...options });
  };

  it('[Decision 64] a caller of one user reads, changes and removes nothing else', async () => {
    const { of, all } = await open();
    const ana = of('ana');
    const before = await all();
    const [{ id: own }, ...others] = hostileOf(name) as [Shown, ...Shown[]];
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

/** Names that no database takes as they are in a filter. */
const SPACED = { text_field: 'the text', user_field: 'the owner.the id', tags_field: 'the tags' };

describe.each(names)('the fields of a collection of %s', (name) => {
  const { module } = DATABASES[name];
  const SETTING = `OMP_${name.toUpperCase()}`;
  const put = async (points: readonly object[]) => {
    const collection = `fields_${randomUUID().replaceAll('-', '_')}`;
    const shown = points.map((fields, at) => ({ id: String(at + 1), fields: fields as Shown['fields'] }));
    await (opened.get(name) as Database).put(collection, shown, [1, 0, 0, 0, 0, 0, 0, 0]);
    return collection;
  };

  it('[Decision 64] may have spaces in their names, and tags that are emptied leave nothing that another application would read', async () => {
    const owner = name === 'chroma' ? { 'the owner.the id': 'ana' } : { 'the owner': { 'the id': 'ana', kept: 'x' } };
    const collection = await put([{ 'the text': 'tea', 'the tags': ['a'], ...owner }]);
    const { of, point } = await gatewayOn(name, collection, { preset: 'custom', writable: true, ...SPACED });
    const ana = of('ana');
    const added = await ana.add({ user_id: 'ana', content: 'coffee', tags: ['b', 'c'] });
    expect((await ana.list({ user_id: 'ana', tag: 'b' })).items).toEqual([added]);
    expect((await point('1'))?.fields).toMatchObject({ 'the tags': ['a'] });
    for (const id of ['1', added.id]) {
      const kept = (await point(id))?.fields;
      expect(await ana.update(id, { tags: [], content: 'changed' })).toMatchObject({ tags: [], content: 'changed' });
      const { 'the tags': tags, ...fields } = (await point(id))?.fields ?? {};
      expect([undefined, null, []]).toContainEqual(tags);
      const { 'the tags': _, ...rest } = kept ?? {};
      expect(fields).toEqual({ ...rest, 'the text': 'changed' });
    }
    expect((await ana.list({ user_id: 'ana', tag: 'b' })).items).toEqual([]);
  });

  it('[Decision 50] that no database could be asked for are refused before it is asked', async () => {
    for (const field of ['a"b', 'a`b', 'a\\b', 'a\nb', ''])
      await expect(module.open({ ...CUSTOM, tags_field: field }, contextWith())).rejects.toThrow();
  });

  it('[Decision 50] of which one lies in another are refused at the start, with both settings', async () => {
    const place = (opened.get(name) as Database).place(await put([{ text: 'tea' }]));
    const open = (options: object) => module.open({ ...place, ...CUSTOM, ...options }, contextWith());
    const both = new RegExp(
      `${SETTING}_USER_FIELD.*${SETTING}_TAGS_FIELD|${SETTING}_TAGS_FIELD.*${SETTING}_USER_FIELD`,
    );
    await expect(open({ tags_field: 'owner.id' })).rejects.toThrow(both);
    // Where names are flat, a dot is a character.
    if (name === 'chroma') return (await open({ tags_field: 'owner' })).close();
    await expect(open({ tags_field: 'owner' })).rejects.toThrow(both);
    await expect(open({ tags_field: 'owner.id.all' })).rejects.toThrow(both);
    // No part of a name.
    expect(await open({ tags_field: 'own' }).then((store) => String(store.close()), String)).not.toMatch(both);
  });
});

it('[Decision 64] rows of LanceDB without an id are refused, as the start and doctor say', async () => {
  const fixture = EVERY.find(isUnserved) as Served;
  const place = await placeOf(fixture);
  const options = { ...place, preset: 'custom', text_field: 'text', user_field: 'user_id' };
  await expect(lancedb.open(options, contextWith())).rejects.toThrow('its rows have no "id"');
  for (const asked of [options, place])
    expect(await lancedb.diagnose?.(asked, contextWith() as never)).toMatchObject([
      { level: 'problem', message: expect.stringMatching('no "id"|not made by the gateway') },
    ]);
});

it('[Decision 64] a field that no column of LanceDB is, is refused at the start with its setting', async () => {
  const [fixture] = FIXTURES.filter(({ database }) => database === 'lancedb') as [Served];
  const options = { ...(await placeOf(fixture)), preset: 'langchain', updated_field: 'metadata.changed' };
  await expect(lancedb.open(options, contextWith())).rejects.toThrow('OMP_LANCEDB_UPDATED_FIELD');
});

it('[Decision 64] rows of LanceDB that share an id, as its libraries may write them, are changed and removed for no other user', async () => {
  const rows = (owners: readonly string[], id: string) =>
    owners.map((owner) => ({ id, fields: { text: `of ${owner}`, owner: { id: owner, more: owner } } }));
  const database = opened.get('lancedb') as Database;
  await database.put('shared', [...rows(['ana', 'ben'], 'both'), ...rows(['eve', 'eve'], 'own')], new Array(8).fill(1));
  const { client: caller, of, all } = await gatewayOn('lancedb', 'shared', CUSTOM);
  const before = await all();
  const ana = of('ana');
  for (const reply of [
    await ana.tell('PATCH', ana.byId('both'), { content: 'x' }),
    await ana.tell('DELETE', ana.byId('both')),
    await caller.tell('DELETE', '/users/ana/memories'),
    await caller.tell('PATCH', caller.byId('own'), { content: 'x' }),
  ])
    expect(expectError(reply, 'unsupported_capability').message).toMatch(/^several points .* have this id/);
  expect(await all()).toEqual(before);
  await caller.erase('eve');
  expect(await all()).toEqual(before.filter(({ id }) => id === 'both'));
});

/** Made of rows, past the gateway. */
async function gatewayOnRows(rows: Record<string, unknown>[], options: object) {
  const collection = `rows_${randomUUID().replaceAll('-', '_')}`;
  const { folder } = (opened.get('lancedb') as Database).place('') as { folder: string };
  const connection = await connect(folder);
  await connection.createTable(
    collection,
    rows.map((row) => ({ text: 'tea', vector: new Array(8).fill(1), ...row })),
  );
  connection.close();
  return gatewayOn('lancedb', collection, { preset: 'langchain', writable: true, ...options });
}

it('[Decision 64] a row of LanceDB without an id is no memory', async () => {
  const rows = ['one', null].map((id) => ({ id, owner: 'ana' }));
  const { client: caller } = await gatewayOnRows(rows, { user_field: 'owner' });
  const found = await caller.search({ user_id: 'ana', q: 'tea' });
  expect(found.map(({ memory }) => memory.id)).toEqual(['one']);
});

it('[Decision 64] keys of an object on LanceDB may have any name, and a change keeps them', async () => {
  const more = Object.fromEntries(['x`y', "x'y", 'x"y', 'x.y', 'x\\y', 'X Y'].map((key) => [key, 'kept']));
  const rows = [{ id: 'one', metadata: { user_id: 'ana', folder: 'a', ...more } }];
  const { client: caller, point } = await gatewayOnRows(rows, { scope_field: 'metadata.folder' });
  await caller.update('one', { scope: 'b' });
  expect((await point('one'))?.fields).toMatchObject({ metadata: { user_id: 'ana', folder: 'b', ...more } });
});

describe.skipIf(NO_MILVUS !== '')('a collection of Milvus', () => {
  const named = (name: string) => FIXTURES.find((fixture) => fixture.name === name) as Served;

  it('[Decision 64] whose server makes the ids cannot be made writable', async () => {
    const place = await placeOf(named('milvus-langchain-javascript'));
    const fields = { preset: 'custom', text_field: 'langchain_text', user_field: 'user_id' };
    await (await milvus.open({ ...place, ...fields }, contextWith())).close();
    await expect(milvus.open({ ...place, ...fields, writable: true }, contextWith())).rejects.toThrow(
      'OMP_MILVUS_WRITABLE',
    );
  });

  it('[Decision 64] keeps a number that the client rounds: such a point is not changed', async () => {
    const collection = 'rounded';
    const place = opened.get('milvus') as Database;
    await place.put(
      collection,
      [{ id: '1', fields: { text: 'tea', owner: { id: 'ana' }, big: 2 ** 60 } }],
      new Array(8).fill(1),
    );
    const { client: caller, all } = await gatewayOn('milvus', collection, CUSTOM);
    const before = await all();
    const reply = await caller.tell('PATCH', caller.byId('1'), { content: 'x' });
    expect(expectError(reply, 'unsupported_capability').message).toMatch(/a number of the point is too large/);
    expect(await all()).toEqual(before);
  });

  it('[Decision 64] keeps such a number in a list that a column of JSON holds', () => {
    const column = { nullable: true, default_value: null };
    const fields = [
      { ...column, name: 'pk', data_type: 'VarChar', is_primary_key: true },
      { ...column, name: 'vector', data_type: 'FloatVector', dim: '8' },
      { ...column, name: 'more', data_type: 'JSON' },
      { ...column, name: 'counts', data_type: 'Array' },
    ];
    const { layout } = layoutOf({ fields, enable_dynamic_field: false } as never, true);
    const change = { id: '1', fields: {} };
    // The client shows the integers of an array as texts.
    const kept = { pk: '1', counts: ['9007199254740993'] };
    expect(layout.rowOf(change, { ...kept, more: [1] })).toEqual({ ...kept, more: [1] });
    expect(() => layout.rowOf(change, { ...kept, more: [2 ** 53] })).toThrow('a number of the point is too large');
  });

  it('[Decision 64] takes no longer text than its column', async () => {
    const { client: caller, point } = await served(named('milvus-langchain-python'), { writable: true });
    const tea = named('milvus-langchain-python').ids.tea as string;
    const before = await point(tea);
    const reply = await caller.tell('PATCH', caller.byId(tea), { content: 'ü'.repeat(32_768) });
    expect(expectError(reply, 'payload_too_large').message).toContain(
      '"text" of the collection has at most 65535 bytes',
    );
    expect(await point(tea)).toEqual(before);
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
