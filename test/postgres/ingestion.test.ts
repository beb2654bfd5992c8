import { expect, it } from 'vitest';
import { hashingEmbedder } from '../support/hashing-embedder.ts';
import { freshUser } from '../support/subject.ts';
import { gates, ingestionSubject, testEmbedder } from './ingestion-subject.ts';
import { call, memoryOf, searchFor, until } from './store.ts';

const search = { q: 'green tea', limit: 10 };

it('[SPEC States queued] [SPEC States indexing] [SPEC States done] [Decision 30] [Decision 36] a memory goes from queued over indexing to done, found by its words at once and by meaning in the end; its ETag says so', async () => {
  const { gateway, drained } = await ingestionSubject();
  const gate = gates();
  const { client } = await gateway(testEmbedder(gate.fate));
  const user_id = freshUser();
  const added = await client.add({ user_id, content: 'prefers green tea' });
  expect(added).toMatchObject({ status: 'queued', embedding_model: hashingEmbedder().model });

  await until(async () => (await client.get(added.id)).status === 'indexing');
  const [hit] = await client.search({ user_id, ...search });
  expect(hit?.memory).toEqual({ ...added, status: 'indexing' });
  expect(hit?.score).toBe(0.5);
  expect((await client.list({ user_id })).items).toEqual([{ ...added, status: 'indexing' }]);
  expect(await client.search({ user_id, q: 'nothing alike' })).toMatchObject([{ score: 0 }]);

  await gate.open('prefers green tea');
  await drained();
  expect(await client.get(added.id)).toEqual({ ...added, status: 'done' });
  const known = { 'if-none-match': `"${added.updated_at}-queued"` };
  expect((await client.ask(client.byId(added.id), {}, known)).status).toBe(200);
  const changed = await client.tell('PATCH', client.byId(added.id), {}, { 'if-match': known['if-none-match'] });
  expect([changed.status, changed.headers.get('etag')]).toEqual([200, `"${added.updated_at}"`]);
  expect((await client.list({ user_id })).items).toEqual([{ ...added, status: 'done' }]);
  const [done] = await client.search({ user_id, ...search });
  expect(done?.memory.status).toBe('done');
  expect(done?.score).toBeGreaterThan(0.5);
});

it('[Decision 30] [Decision 35] a batch is queued as a whole, and repeated as it was', async () => {
  const { gateway, drained, queue } = await ingestionSubject();
  const gate = gates();
  const { client } = await gateway(testEmbedder(gate.fate));
  const batch = ['one', 'two'].map((content) => ({ user_id: 'u', content }));
  const added = await client.batch(batch, 'k');
  expect(added).toMatchObject(batch.map(({ content }) => ({ memory: { content, status: 'queued' } })));
  expect(await queue()).toHaveLength(2);
  for (const { content } of batch) await gate.open(content);
  await drained();
  expect(await client.batch(batch, 'k')).toEqual(added);
  expect((await client.list({ user_id: 'u' })).items).toMatchObject([
    { content: 'two', status: 'done' },
    { content: 'one', status: 'done' },
  ]);
});

it('[Decision 20] [Decision 30] a repetition is answered byte for byte as the first time, also when all is done', async () => {
  const { gateway, drained } = await ingestionSubject();
  const { client } = await gateway(testEmbedder());
  const add = () =>
    client.tell('POST', '/memories', { user_id: 'u', content: 'once' }, { 'idempotency-key': 'a key of ours' });
  const first = await add();
  expect([first.status, (first.body as { status: string }).status]).toEqual([201, 'queued']);
  await drained();
  expect((await add()).text).toBe(first.text);
  expect((await client.list({ user_id: 'u' })).items).toHaveLength(1);
});

it('[Decision 30] a change of content goes the same way, and a vector of what it was before never lands', async () => {
  const { gateway, drained, queue, store } = await ingestionSubject();
  const gate = gates();
  const embedder = testEmbedder();
  const { client } = await gateway(embedder);
  const { id } = await client.add({ user_id: 'u', content: 'the first' });
  await drained();

  embedder.fate = gate.fate;
  expect(await client.update(id, { content: 'the second' })).toMatchObject({ status: 'queued', content: 'the second' });
  await until(async () => (await client.get(id)).status === 'indexing');
  expect(await client.update(id, { content: 'the third' })).toMatchObject({ status: 'queued', content: 'the third' });
  await gate.open('the second');
  // It is asked for only after what came of the second was written, or was not.
  await until(async () => gate.waiting.has('the third'));
  expect(await store.sql(`select embedding is null as missing from ${store.names.memories}`)).toEqual([
    { missing: true },
  ]);
  // What says nothing about the content leaves all that.
  expect(await client.update(id, { tags: ['t'] })).toMatchObject({ status: 'indexing', tags: ['t'] });
  expect(await queue()).toMatchObject([{ status: 'indexing' }]);
  await gate.open('the third');
  await drained();
  expect(await client.get(id)).toMatchObject({ status: 'done', content: 'the third', tags: ['t'] });
  expect((await client.search({ user_id: 'u', q: 'the third' }))[0]?.score).toBe(1);
});

it('what is deleted while it is being indexed stays deleted, and leaves nothing behind', async () => {
  const { gateway, queue } = await ingestionSubject();
  const gate = gates();
  const embedder = testEmbedder(gate.fate);
  const { client } = await gateway(embedder);
  const { id } = await client.add({ user_id: 'u', content: 'soon gone' });
  await until(async () => gate.waiting.has('soon gone'));
  await client.remove(id);
  expect(await queue()).toEqual([]);
  await gate.open('soon gone');
  await client.add({ user_id: 'u', content: 'comes after' });
  await gate.open('comes after');
  await until(async () => (await queue()).length === 0);
  expect((await client.list({ user_id: 'u' })).items).toMatchObject([{ content: 'comes after', status: 'done' }]);
  expect(embedder.asked).toEqual(['soon gone', 'comes after']);
});

it.each([
  // More than the vector index is asked for: only its words lead to the one without a vector.
  { mode: 'hybrid', memories: 110, score: 0.5 },
  { mode: 'vector', memories: 8, score: 0 },
] as const)('in mode $mode a large user finds all, with or without vectors', async ({ mode, memories, score }) => {
  const { store, drained } = await ingestionSubject();
  const embedder = testEmbedder();
  const provider = await store.open({ mode, embedder, options: { large_user_rows: 4, ingestion: 'async' } });
  const find = async () => (await provider.search?.(searchFor('u', 'unheard zebra'), call)) ?? [];
  for (let i = 0; i < memories; i++) await provider.add({ input: memoryOf('u', `known thing number ${i}`) }, call);
  await drained();
  await find();
  await until(async () => (await store.sql(`select from ${store.names.largeUsers} where ready`)).length === 1);

  const gate = gates();
  embedder.fate = gate.fate;
  const { id } = await provider.add({ input: memoryOf('u', 'unheard zebra') }, call);
  // Without its vector it counts nothing for its meaning.
  expect((await find()).find(({ memory }) => memory.id === id)).toMatchObject({ score });
  await gate.open('unheard zebra');
  await drained();
  expect((await find())[0]).toMatchObject({ memory: { id, status: 'done' }, score: 1 });
});

it('[Decision 30] a sync gateway answers done beside it, and takes over what was queued for a content it changes', async () => {
  const { gateway, queue } = await ingestionSubject();
  const gate = gates();
  const { client } = await gateway(testEmbedder(gate.fate));
  const { id } = await client.add({ user_id: 'u', content: 'queued by one' });
  await until(async () => gate.waiting.has('queued by one'));
  const other = await gateway(testEmbedder(), { ingestion: 'sync' });
  expect(await other.client.add({ user_id: 'u', content: 'at once' })).toMatchObject({ status: 'done' });
  expect(await other.client.update(id, { content: 'changed by the other' })).toMatchObject({ status: 'done' });
  expect(await queue()).toEqual([]);
  await gate.open('queued by one');
  expect((await client.search({ user_id: 'u', q: 'changed by the other' }))[0]?.score).toBe(1);
});
