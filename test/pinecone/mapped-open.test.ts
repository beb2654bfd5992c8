import { afterAll, beforeAll, describe, expect, it, onTestFinished } from 'vitest';
import type { ListQuery, SearchQuery } from '#contract';
import { connect, type Service } from '../../providers/pinecone/client/client.ts';
import { PRESET_NAMES } from '../../providers/pinecone/mapped/presets.ts';
import { Options } from '../../providers/pinecone/pinecone-options.ts';
import { exported } from '../mapped/exported.ts';
import { type Pinecone, startPinecone } from '../pinecone-server/start.ts';
import { expectError } from '../support/expect-error.ts';
import { hashingEmbedder } from '../support/hashing-embedder.ts';
import { call, contextOf, listOf, refTo, searchFor } from '../support/requests.ts';
import { type FullStore, openStoreOf, type Store } from '../support/stores.ts';
import { freshUser, recordingLog, type Subject } from '../support/subject.ts';
import { nodeMetadata, SHAPES } from './mapped-records.ts';
import { documentedOptions, fill, openMappedStore, openMappedSubject } from './mapped-subject.ts';

let server: Pinecone;
beforeAll(async () => {
  server = await startPinecone();
});
afterAll(() => server.close());

describe('opening', () => {
  let old: Pinecone;
  beforeAll(async () => {
    old = await startPinecone({ apiVersion: '2025-01', lsn: false });
  });
  afterAll(() => old.close());

  const open = (to: Pinecone, options: object, log = recordingLog()): Promise<Store> =>
    openStoreOf(
      'pinecone',
      { api_key: 'key', index_host: to.url, preset: 'langchain', namespace: 'n', ...options },
      contextOf({ embedder: hashingEmbedder(), ranking: { mode: 'vector', keyword_weight: 0 }, log }),
    );
  const refusalOf = async (options: object, to = server): Promise<string> => {
    const opened = open(to, options);
    await expect(opened).rejects.toBeInstanceOf(Error);
    return opened.then(String, ({ message }: Error) => message);
  };

  describe('settings', () => {
    it.each<[options: object, reason: RegExp]>([
      [{ preset: 'custom' }, /OMP_PINECONE_TEXT_FIELD and OMP_PINECONE_USER_FIELD/],
      [{ preset: 'custom', user_field: 'u' }, /needs OMP_PINECONE_TEXT_FIELD:/],
      [{ preset: 'custom', text_field: 't' }, /needs OMP_PINECONE_USER_FIELD:/],
      // Two fields cannot be one key, defaults included.
      [{ user_field: 'text' }, /"text"/],
      [{ preset: 'mem0', tags_field: 'created_at' }, /"created_at"/],
      [{ layout: 'sharded' }, /OMP_PINECONE_LAYOUT/],
    ])('%j is refused', async (options, reason) => {
      expect(await refusalOf(options)).toMatch(reason);
    });

    const READ_ONLY: Readonly<Record<string, string>> = {
      llamaindex: '_node_content',
      mem0: 'only mem0 can write',
      'mem0-ts': 'only mem0 can write',
      integrated: 'makes its vectors',
    };
    it.each(PRESET_NAMES)('%s can be made writable, or is told why not', async (preset) => {
      for (const more of [{}, { text_field: 't', user_field: 'u' }]) {
        const options = { preset, writable: true, ...more };
        if (preset in READ_ONLY) {
          const message = await refusalOf(options);
          expect(message).toContain(`OMP_PINECONE_PRESET=${preset}`);
          expect(message).toContain(READ_ONLY[preset]);
        } else if (preset !== 'custom' || 'text_field' in more) {
          const provider = await open(server, options);
          expect(Object.keys(provider)).toEqual(expect.arrayContaining(['add', 'update', 'delete']));
          await provider.close();
        }
      }
    });
  });

  describe('the index', () => {
    it('that cannot be asked for one user is refused with the setting', async () => {
      const narrow = await startPinecone({ filterable: ['owner'] });
      expect(await refusalOf({ namespace: 'schema' }, narrow)).toMatch(/"user_id".*OMP_PINECONE_USER_FIELD/);
      const provider = await open(narrow, { namespace: 'schema', user_field: 'owner' });
      await provider.close();
      await narrow.close();
    });

    it('of an old API has no list; a warning says so', async () => {
      await fill(old, 'n', [{ id: 'a', text: 'tea', metadata: { text: 'tea', user_id: 'ana' } }]);
      const log = recordingLog();
      const provider = await open(old, { preset: 'mem0', text_field: 'text' }, log);
      expect(provider.list).toBeUndefined();
      expect(provider.search).toBeDefined();
      expect(provider.capabilities.temporal).toBe(false);
      expect(log.lines).toMatchObject([{ level: 'warn', message: expect.stringContaining('cannot list') }]);
      await provider.close();
      const current = recordingLog();
      await (await open(server, {}, current)).close();
      expect(current.lines).toEqual([]);
    });

    it.each([
      ['no records', true, []],
      ['a record with a time', true, [{}, { created_at: '2025-03-01' }]],
      ['only records without a readable time', false, [{}, { created_at: 'yesterday' }]],
      ['a time in a record that is no memory', false, [{}, { created_at: '2025-03-01', data: '' }]],
    ] as const)('[SPEC Capabilities features] with %s: temporal is %s', async (label, temporal, metadata) => {
      const namespace = label.replaceAll(' ', '-');
      const records = metadata.map((more, at) => ({
        id: `${at}`,
        text: 'tea',
        metadata: { data: 'tea', user_id: 'ana', ...more },
      }));
      await fill(server, namespace, records);
      const log = recordingLog();
      const provider = await open(server, { preset: 'mem0', namespace }, log);
      expect(provider.capabilities.temporal).toBe(temporal);
      const warning = { level: 'warn', message: expect.stringContaining('OMP_PINECONE_CREATED_FIELD') };
      expect(log.lines).toMatchObject(temporal ? [] : [warning]);
      await provider.close();
    });

    it('of an old API rejects "__default__"', async () => {
      const message = await refusalOf({ namespace: '__default__' }, old);
      expect(message).toMatch(/"__default__".*2025-04/);
      const provider = await open(server, { namespace: '__default__' });
      await provider.close();
    });

    it('that fails at the start is not mistaken for one without a list', async () => {
      await server.fail({ operation: 'fetch_by_metadata', kind: '500', times: 0 });
      expect(await refusalOf({})).toContain('status 500');
      await server.clearFaults();
      await server.fail({ operation: 'query', kind: '401', times: 0 });
      expect(await refusalOf({})).toContain('PINECONE_API_KEY');
      await server.clearFaults();
    });
  });
});

describe('presets', () => {
  it.each(SHAPES.map((shape) => [shape.preset, shape] as const))(
    '[SPEC GET /memories/{id}] [SPEC GET /memories] [SPEC GET /memories/search] [SPEC Capabilities features] [Decision 43] %s, as documented',
    async (preset, shape) => {
      const { id, created_at, updated_at, tags = [] } = shape;
      const namespace = `${preset}-shape`;
      const ana = freshUser();
      const content = 'ana likes green tea';
      await fill(server, namespace, [
        { id, text: content, metadata: shape.metadata(ana, content) },
        { id: `${id}-2`, text: 'ana drives a van', metadata: shape.metadata(ana, 'ana drives a van') },
        { id: `${id}-3`, text: content, metadata: shape.metadata(freshUser(), content) },
        { id: 'nobody', text: content, metadata: shape.metadata('', content) },
      ]);
      const options = { ...documentedOptions(preset), index_host: server.url, namespace };
      const { client, capabilities, close } = await openMappedSubject(server, options);
      onTestFinished(close);

      // With no key that is not mapped.
      const memory = await client.get(id);
      expect(Object.fromEntries(Object.entries(memory).filter(([, value]) => value !== null))).toEqual({
        ...{ id, content, user_id: ana, created_at, updated_at, tags, supersedes: [] },
        'x-omp-origin': { via: 'unknown' },
      });
      const hits = await client.search({ q: content, user_id: ana });
      expect(hits.map((hit) => hit.memory.id)).toEqual([id, `${id}-2`]);
      expect(hits[0]).toMatchObject({ memory, score: expect.closeTo(1, 3) });
      const { items } = await client.list({ user_id: ana });
      expect(items.map((item) => item.id)).toEqual([`${id}-2`, id]);
      expect(await exported(client, { user_id: ana })).toEqual(expect.arrayContaining([...items]));
      expect((await exported(client)).map((each) => each.id)).toEqual([id, `${id}-2`, `${id}-3`].sort());

      const writable = preset === 'custom';
      const written = writable ? ['add', 'update', 'delete'] : [];
      expect(capabilities.verbs.toSorted()).toEqual([...written, 'search', 'get', 'list', 'context'].sort());
      expect(capabilities.features).toMatchObject({
        ...{ vector_search: true, keyword_search: false, export: true, scopes: 'none', batch: writable },
        temporal: created_at !== '1970-01-01T00:00:00.000Z',
        max_content_length: writable ? 9_000 : null,
        tags: tags.length > 0,
      });
      expect(capabilities.limits?.max_search_results).toBe(100);
    },
  );

  it('[SPEC Errors unsupported_capability] a read-only index names the setting that makes it writable', async () => {
    const { client, close } = await openMappedSubject(server, { preset: 'langchain', namespace: 'read-only' });
    const reply = await client.tell('POST', '/memories', { user_id: 'ana', content: 'x' });
    expect(expectError(reply, 'unsupported_capability').message).toContain('OMP_PINECONE_WRITABLE=true');
    await close();
  });

  it('nodes of LlamaIndex keep their text as such, in a text resource, or long ago beside the node', async () => {
    const namespace = 'nodes';
    const user = freshUser();
    const nodes = {
      text: nodeMetadata(user, { text: 'as text' }),
      resource: nodeMetadata(user, { text_resource: { text: 'in a resource', mimetype: 'text/plain' } }),
      legacy: { user_id: user, text: 'beside' },
      both: { ...nodeMetadata(user, { text: '' }), text: 'beside an empty one' },
      broken: { user_id: user, _node_content: '{"text": "cut off', text: 'beside a broken one' },
      nothing: nodeMetadata(user, {}),
      null: { user_id: user, _node_content: 'null' },
      number: nodeMetadata(user, { text: 7 }),
    };
    const records = Object.entries(nodes).map(([id, metadata]) => ({ id, text: id, metadata }));
    await fill(server, namespace, records);
    const subject = await openMappedSubject(server, { preset: 'llamaindex', namespace });
    const { items } = await subject.client.list({ user_id: user });
    expect(Object.fromEntries(items.map(({ id, content }) => [id, content]))).toEqual({
      text: 'as text',
      resource: 'in a resource',
      legacy: 'beside',
      both: 'beside an empty one',
      broken: 'beside a broken one',
    });
    await subject.close();
    const named = await openMappedSubject(server, { preset: 'llamaindex', namespace, text_field: 'file_name' });
    expect((await named.client.get('text')).content).toBe('notes.md');
    await named.close();
  });
});

describe('other users', () => {
  const namespace = 'shared';
  const text = 'ana likes green tea';
  const OPTIONS = { preset: 'custom', text_field: 'text', user_field: 'who', tags_field: 'labels', namespace };

  /** No caller may see these. */
  const HIDDEN = {
    ownerless: { text },
    blank: { text, who: ' ' },
    empty: { text, who: '' },
    number: { text, who: 42 },
    boolean: { text, who: true },
    several: { text, who: ['ana', 'bo'] },
    single: { text, who: ['ana'] },
    textless: { who: 'ana' },
    silent: { text: '', who: 'ana' },
    spaces: { text: ' \n\t', who: 'ana' },
    counted: { text: 7, who: 'ana' },
    listed: { text: [text], who: 'ana' },
    nothing: undefined,
  };
  const SEEN = {
    ana: { text, who: 'ana', labels: ['x'] },
    bo: { text, who: 'bo', labels: ['x'] },
    Ana: { text, who: 'Ana' },
    constructor: { text, who: 'constructor' },
  };

  let subject: Subject;
  beforeAll(async () => {
    const records = Object.entries({ ...HIDDEN, ...SEEN }).map(([id, metadata]) => ({ id, text, metadata }));
    await fill(server, namespace, records);
    subject = await openMappedSubject(server, { ...OPTIONS, writable: true });
  });
  afterAll(() => subject.close());

  describe('records of a mapped index', () => {
    it.each(Object.keys(HIDDEN))('[SPEC GET /memories/{id} unknown] %s: no verb reaches it', async (id) => {
      const { ask, tell, byId } = subject.client;
      expectError(await ask(byId(id)), 'not_found');
      expectError(await tell('PATCH', byId(id), { content: 'mine' }), 'not_found');
      expectError(await tell('DELETE', byId(id)), 'not_found');
      expect(Object.keys(await server.records(namespace))).toContain(id);
    });

    it.each(['ana', 'bo', 'Ana', 'constructor', '42', 'true', 'carl'])(
      '[SPEC Service users] list and search of %s show their own records alone',
      async (user_id) => {
        const own = user_id in SEEN ? [user_id] : [];
        const { items } = await subject.client.list({ user_id });
        expect(items.map(({ id }) => id)).toEqual(own);
        const hits = await subject.client.search({ user_id, q: text, limit: 100 });
        expect(hits.map(({ memory }) => memory.id)).toEqual(own);
      },
    );

    it('[SPEC GET /memories tag] nor does a tag bring in those of others', async () => {
      const { items } = await subject.client.list({ user_id: 'ana', tag: 'x' });
      expect(items.map(({ id }) => id)).toEqual(['ana']);
    });

    it('[Decision 14] a record of another user is absent for a caller bound to one', async () => {
      const bound = subject.as({ 'x-user-id': 'bo' });
      expectError(await bound.ask(bound.byId('ana')), 'not_found');
      expect((await bound.get('bo')).user_id).toBe('bo');
      const { get, update, delete: remove } = subject.provider as FullStore;
      const foreign = refTo('ana', { users: ['bo'] });
      expect(await get(foreign, call)).toBeUndefined();
      expect(await update({ ref: foreign, patch: { content: 'mine' } }, call)).toBeUndefined();
      expect(await remove(foreign, call)).toBe(false);
      expect((await server.records(namespace)).ana?.metadata).toEqual(SEEN.ana);
    });
  });

  describe('an index that answers with more than it was asked for', () => {
    const open = async (): Promise<FullStore> => {
      const options = Options.parse({ api_key: 'key', index_host: server.url, ...OPTIONS });
      const service = connect(options);
      const filterless = { who: { $exists: true } };
      const careless: Service = {
        ...service,
        query: (name, request, made) => service.query(name, { ...request, filter: filterless }, made),
        fetchByMetadata: (name, page, made) => service.fetchByMetadata(name, { ...page, filter: filterless }, made),
      };
      return openMappedStore(careless, options);
    };
    const idsOf = async (query: Partial<ListQuery & SearchQuery>) => {
      const provider = await open();
      const listed = await provider.list(listOf('ana', query), call);
      const found = await provider.search(searchFor('ana', text, query), call);
      await provider.close();
      return { list: listed.map(({ id }) => id), search: found.map(({ memory }) => memory.id) };
    };

    it('is not believed: neither the user nor the tags', async () => {
      expect(await idsOf({})).toEqual({ list: ['ana'], search: ['ana'] });
      expect(await idsOf({ tags: ['y'] })).toEqual({ list: [], search: [] });
    });
  });
});
