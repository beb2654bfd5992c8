import { expect, it } from 'vitest';
import { createQueue, type Runners } from '../../providers/postgres/tables/ingestion-queue.ts';
import { withVectorsIn } from '../../providers/postgres/tables/names.ts';
import { DOWN, gates, ingestionSubject, testEmbedder } from './ingestion-subject.ts';
import { call, memoryOf, refTo, type Store, until } from './store.ts';

/** On the test's own connection. */
const waysTo = (store: Store): Runners => ({
  run: (text, values) => store.sql(text, values),
  runWith: (_settings, text, values) => store.sql(text, values),
});

const contents = Array.from({ length: 300 }, (_, i) => `text ${i}`);

it('gateways share a queue, and no text is embedded twice', async () => {
  const { store, drained } = await ingestionSubject();
  const embedders = [testEmbedder(), testEmbedder(), testEmbedder()];
  const providers = await Promise.all(
    embedders.map((embedder) => store.open({ embedder, options: { ingestion: 'async' } })),
  );
  await Promise.all(contents.map((content, i) => providers[i % 3]?.add(memoryOf('u', content), call)));
  await drained();
  const asked = embedders.flatMap((embedder) => embedder.asked);
  expect(asked.toSorted()).toEqual(contents.toSorted());
  expect(await store.sql(`select 1 from ${store.names.memories} where embedding is null`)).toEqual([]);
});

it('a gateway that closes gives back what it has, and a sync one takes it on', async () => {
  const { store, drained, queue } = await ingestionSubject();
  const gate = gates();
  const first = await store.open({ embedder: testEmbedder(gate.fate), options: { ingestion: 'async' } });
  const { id } = await first.add(memoryOf('u', 'left behind'), call);
  await until(async () => gate.waiting.has('left behind'));
  expect(await queue()).toMatchObject([{ status: 'indexing' }]);
  await first.close();
  expect(await queue()).toMatchObject([{ status: 'queued', attempts: 0 }]);
  const second = await store.open({ embedder: testEmbedder() });
  await drained();
  expect(await second.get(refTo(id), call)).toMatchObject({ status: 'done' });
});

it('what a gateway took that tells nothing any more is taken by another when its lease ends', async () => {
  const { store, drained, queue } = await ingestionSubject();
  const gone = await store.open({ embedder: testEmbedder(DOWN), options: { ingestion: 'async' } });
  const { id } = await gone.add(memoryOf('u', 'taken and lost'), call);
  await gone.close();
  await store.sql(
    `update ${store.names.ingestion} set status = 'indexing', claim = gen_random_uuid(), due_at = now() + interval '1 second'`,
  );
  const provider = await store.open({ embedder: testEmbedder() });
  await drained();
  expect(await queue()).toEqual([]);
  expect(await provider.get(refTo(id), call)).toMatchObject({ status: 'done' });
});

it('a claim holds for as long as its gateway lives, and what it writes later than that lands nowhere', async () => {
  const { store, queue: rows } = await ingestionSubject();
  const provider = await store.open({ embedder: testEmbedder(DOWN), options: { ingestion: 'async' } });
  const { id, content } = await provider.add(memoryOf('u', 'slow'), call);
  await provider.close();
  const { ingestion, memories } = store.names;
  const queue = createQueue(store.names, waysTo(store), 2);
  const dueAt = async () => (await store.sql<{ due_at: Date }>(`select due_at from ${ingestion}`))[0]?.due_at;
  const claim = await queue.claim();
  const taken = await dueAt();
  expect(claim.rows).toEqual([{ id, content, attempts: 0 }]);
  await until(async () => (await dueAt())?.getTime() !== taken?.getTime());
  expect((await queue.claim()).taken).toBe(0);

  // Somebody else has it now: a content that came meanwhile.
  await store.sql(`update ${memories} set content = 'other'; update ${ingestion} set status = 'queued', claim = null`);
  const [row] = claim.rows;
  const vector = (await testEmbedder().embed(['slow'], 'document', call))[0];
  if (!row || !vector) throw new Error('nothing was claimed');
  expect(await claim.settle([{ row, vector }], [{ id, reason: 'refused', pause: null }])).toEqual([]);
  await claim.end();
  expect(await rows()).toMatchObject([{ status: 'queued', attempts: 0, error: null }]);
  expect(await store.sql(`select 1 from ${memories} where embedding is not null`)).toEqual([]);
});

it('long contents are taken a few at a time', async () => {
  const { store } = await ingestionSubject();
  const provider = await store.open({ embedder: testEmbedder(DOWN), options: { ingestion: 'async' } });
  for (let i = 0; i < 5; i++) await provider.add(memoryOf('u', `${i}`.repeat(3_000_000)), call);
  await provider.close();
  const queue = createQueue(store.names, waysTo(store), 60);
  const claims = [await queue.claim(), await queue.claim(), await queue.claim()];
  for (const claim of claims) await claim.end();
  expect(claims.map(({ taken }) => taken)).toEqual([3, 2, 0]);
});

it('a column of vectors that is replaced underneath fails the batch and nothing else', async () => {
  const { store } = await ingestionSubject();
  const provider = await store.open({ embedder: testEmbedder(DOWN), options: { ingestion: 'async' } });
  const { id } = await provider.add(memoryOf('u', 'kept'), call);
  await provider.close();
  const gone = createQueue(withVectorsIn('gone', store.names), waysTo(store), 60);
  await expect(gone.claim()).rejects.toThrow(/gone/);
  const claim = await createQueue(store.names, waysTo(store), 60).claim();
  await claim.end();
  expect(claim.rows).toMatchObject([{ id }]);
});
