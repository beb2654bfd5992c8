import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { ListQuery, SearchQuery } from '#contract';
import type { Service } from '../../providers/pinecone/client/client.ts';
import { connect } from '../../providers/pinecone/client/client.ts';
import { openMapped } from '../../providers/pinecone/mapped/mapped-provider.ts';
import { Options } from '../../providers/pinecone/options.ts';
import { type Pinecone, startPinecone } from '../pinecone-server/start.ts';
import { expectError } from '../support/expect-error.ts';
import { hashingEmbedder } from '../support/hashing-embedder.ts';
import { type AllMemories, memoriesOf } from '../support/memories.ts';
import { call, listOf, refTo, searchFor } from '../support/requests.ts';
import { recordingLog, type Subject } from '../support/subject.ts';
import { fill, openExistingSubject } from './existing-subject.ts';

const namespace = 'shared';
const text = 'ana likes green tea';
const OPTIONS = { preset: 'custom', text_field: 'text', user_field: 'who', tags_field: 'labels', namespace };

/** Nobody may ever see these. */
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

let server: Pinecone;
let subject: Subject;
beforeAll(async () => {
  server = await startPinecone();
  const records = Object.entries({ ...HIDDEN, ...SEEN }).map(([id, metadata]) => ({ id, text, metadata }));
  await fill(server, namespace, records);
  subject = await openExistingSubject(server, { ...OPTIONS, writable: true });
});
afterAll(async () => {
  await subject.close();
  await server.close();
});

describe('records in an index that others fill', () => {
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

  it('[Decision 14] a record of another user is absent for whoever is bound to one', async () => {
    const bound = subject.as({ 'x-user-id': 'bo' });
    expectError(await bound.ask(bound.byId('ana')), 'not_found');
    expect((await bound.get('bo')).user_id).toBe('bo');
    const { get, update, delete: remove } = subject.provider as AllMemories;
    const foreign = refTo('ana', { users: ['bo'] });
    expect(await get(foreign, call)).toBeUndefined();
    expect(await update(foreign, { content: 'mine' }, call)).toBeUndefined();
    expect(await remove(foreign, call)).toBe(false);
    expect((await server.records(namespace)).ana?.metadata).toEqual(SEEN.ana);
  });
});

describe('an index that answers with more than it was asked for', () => {
  const open = async (): Promise<AllMemories> => {
    const options = Options.parse({ api_key: 'key', index_host: server.url, ...OPTIONS });
    const service = connect(options);
    const filterless = { who: { $exists: true } };
    const careless: Service = {
      ...service,
      query: (name, request, made) => service.query(name, { ...request, filter: filterless }, made),
      fetchByMetadata: (name, page, made) => service.fetchByMetadata(name, { ...page, filter: filterless }, made),
    };
    const context = { embedder: hashingEmbedder(), log: recordingLog() };
    return memoriesOf(await openMapped(careless, options, context), context.embedder);
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
