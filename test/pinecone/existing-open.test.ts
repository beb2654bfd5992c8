import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type Pinecone, startPinecone } from '../pinecone-server/start.ts';
import { hashingEmbedder } from '../support/hashing-embedder.ts';
import { type Memories, openMemoriesOf } from '../support/memories.ts';
import { contextOf } from '../support/requests.ts';
import { recordingLog } from '../support/subject.ts';
import { fill } from './existing-subject.ts';

let server: Pinecone;
let old: Pinecone;
let wide: Pinecone;
beforeAll(async () => {
  [server, old, wide] = await Promise.all([
    startPinecone(),
    startPinecone({ apiVersion: '2025-01', lsn: false }),
    startPinecone({ dimension: 1536 }),
  ]);
});
afterAll(() => Promise.all([server, old, wide].map((each) => each.close())));

const open = (to: Pinecone, options: object, log = recordingLog()): Promise<Memories> =>
  openMemoriesOf(
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
  it('custom says which fields it lacks', async () => {
    expect(await refusalOf({ preset: 'custom' })).toContain('OMP_PINECONE_TEXT_FIELD and OMP_PINECONE_USER_FIELD');
    expect(await refusalOf({ preset: 'custom', user_field: 'u' })).toMatch(/needs OMP_PINECONE_TEXT_FIELD:/);
    expect(await refusalOf({ preset: 'custom', text_field: 't' })).toMatch(/needs OMP_PINECONE_USER_FIELD:/);
    const provider = await open(server, { preset: 'custom', text_field: 't', user_field: 'u' });
    await provider.close();
  });

  it('two fields cannot be one key, defaults included', async () => {
    expect(await refusalOf({ user_field: 'text' })).toContain('"text"');
    expect(await refusalOf({ preset: 'mem0', tags_field: 'created_at' })).toContain('"created_at"');
  });

  it.each([
    ['llamaindex', '_node_content'],
    ['mem0', 'only mem0 can write'],
    ['mem0-ts', 'only mem0 can write'],
    ['integrated', 'makes its vectors'],
  ])('%s cannot be made writable, and is told why', async (preset, why) => {
    const message = await refusalOf({ preset, writable: true });
    expect(message).toContain(`OMP_PINECONE_PRESET=${preset}`);
    expect(message).toContain(why);
    expect(await refusalOf({ preset, writable: true, text_field: 't', user_field: 'u' })).toBe(message);
  });

  it.each(['langchain', 'haystack', 'spring-ai'])('%s can be made writable', async (preset) => {
    const provider = await open(server, { preset, writable: true });
    expect(Object.keys(provider)).toEqual(expect.arrayContaining(['add', 'update', 'delete']));
    await provider.close();
  });

  it('a layout of our own does not go with a preset', async () => {
    expect(await refusalOf({ layout: 'sharded' })).toContain('OMP_PINECONE_LAYOUT');
  });
});

describe('the index', () => {
  it('of other dimensions than the embedder is refused with both numbers and the settings', async () => {
    const message = await refusalOf({}, wide);
    expect(message).toMatch(/1536.*64/);
    expect(message).toContain('OMP_EMBEDDING_MODEL');
    expect(message).toContain('OMP_EMBEDDING_DIMENSIONS');
  });

  it('that cannot be asked for one user is refused with the setting', async () => {
    const narrow = await startPinecone({ filterable: ['owner'] });
    expect(await refusalOf({ namespace: 'schema' }, narrow)).toMatch(/"user_id".*OMP_PINECONE_USER_FIELD/);
    const provider = await open(narrow, { namespace: 'schema', user_field: 'owner' });
    await provider.close();
    await narrow.close();
  });

  it('of an old API has no list, which is told in the log and in the verbs', async () => {
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

  it('of an old API does not know "__default__", which is told', async () => {
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
