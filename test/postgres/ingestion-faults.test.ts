import { expect, it, onTestFinished } from 'vitest';
import { OmpError, providerError } from '#contract';
import type { Run } from '../../providers/postgres/client/connections.ts';
import { createQueue } from '../../providers/postgres/tables/ingestion-queue.ts';
import { withVectorsIn } from '../../providers/postgres/tables/names.ts';
import { type EmbeddingOptions, openEmbedder } from '../../src/embedding/open.ts';
import { embeddings, embeddingsServer, failing } from '../embedding/embeddings-server.ts';
import { recordingLog } from '../support/subject.ts';
import { DOWN, gates, ingestionSubject, REFUSED, testEmbedder } from './ingestion-subject.ts';
import { call, memoryOf, refTo, searchFor, type TestDatabase, until } from './store.ts';

/** Of the queue; an old pgvector is warned of too. */
const warnings = (log: ReturnType<typeof recordingLog>) =>
  log.lines.filter(({ level, message }) => level === 'warn' && message.includes('memor'));

it('[Decision 30] an outage of the embedding service loses nothing, blocks nothing, counts as no failure of a text, and is logged once', async () => {
  const { store, queue, drained } = await ingestionSubject();
  const service = await embeddingsServer();
  const log = recordingLog();
  const options: EmbeddingOptions = {
    kind: 'openai',
    model: 'test',
    dimensions: undefined,
    base_url: service.base_url,
    api_key: '',
    timeout_ms: 5_000,
    batch_size: 4,
    cache_size: 0,
  };
  const embedder = await openEmbedder(options, recordingLog());
  onTestFinished(async () => {
    await embedder.close();
    await service.close();
  });
  const provider = await store.open({ embedder, log, options: { ingestion: 'async' } });

  const ids: string[] = [];
  const addWhile = async (answer: typeof service.answer) => {
    service.answer = answer;
    const before = service.received.length;
    for (let i = 0; i < 6; i++)
      ids.push((await provider.add({ input: memoryOf('u', `${ids.length} words`) }, call)).id);
    await until(async () => service.received.length > before);
  };
  await addWhile(failing(500));
  await until(async () => warnings(log).length > 0);
  // Vectors of another length.
  await addWhile(embeddings(9));
  expect((await queue()).map(({ attempts, error }) => [attempts, error])).toEqual(ids.map(() => [0, null]));
  for (const id of ids) expect(await provider.get(refTo(id), call)).toMatchObject({ id });

  service.answer = embeddings(8);
  await drained();
  for (const id of ids) expect(await provider.get(refTo(id), call)).toMatchObject({ status: 'done' });
  await until(async () => log.lines.some(({ message }) => message.includes('in the background again')));
  expect(warnings(log)).toHaveLength(1);
  expect(warnings(log)[0]).toMatchObject({ fields: { reason: expect.stringContaining('embedding service') } });
});

it('[SPEC States failed] a text that the embedder rejects fails at once; the others of its batch are done', async () => {
  const { store, queue, drained } = await ingestionSubject();
  const log = recordingLog();
  const embedder = testEmbedder((text) => (text.startsWith('bad') ? REFUSED() : undefined));
  const provider = await store.open({ embedder, log, options: { ingestion: 'async' } });
  const [one, bad, two] = await Promise.all(
    ['good one', 'bad secret', 'good two'].map((content) => provider.add({ input: memoryOf('u', content) }, call)),
  );
  await drained();
  await until(async () => warnings(log).length > 0);
  const statusOf = async (memory: typeof bad) => (await provider.get(refTo(memory?.id ?? ''), call))?.status;
  expect([await statusOf(one), await statusOf(bad), await statusOf(two)]).toEqual(['done', 'failed', 'done']);
  expect(await queue()).toEqual([
    { memory_id: bad?.id, status: 'failed', attempts: 1, error: 'The embedding service rejected this text.' },
  ]);
  expect(await provider.backlog?.(call)).toEqual({ queued: 0, indexing: 0, failed: 1 });
  expect(warnings(log)).toMatchObject([{ fields: { memory_id: bad?.id } }]);
  expect(JSON.stringify(log.lines)).not.toContain('secret');
  // Its words lead to it all the same, and another content gets another chance.
  const found = await provider.search?.(searchFor('u', 'secret', { limit: 1 }), call);
  expect(found?.[0]).toMatchObject({ memory: { id: bad?.id, status: 'failed' }, score: 0.5 });
  expect(await provider.update?.({ ref: refTo(bad?.id ?? ''), patch: { content: 'now good' } }, call)).toMatchObject({
    status: 'queued',
  });
  await drained();
  expect(await queue()).toEqual([]);
});

it('[Decision 30] a text that alone makes the service fail is tried five times, while others are done', async () => {
  const { store, queue } = await ingestionSubject();
  const log = recordingLog();
  const embedder = testEmbedder((text) => (text === 'poison' ? DOWN() : undefined));
  const provider = await store.open({ embedder, log, options: { ingestion: 'async' } });
  const { id } = await provider.add({ input: memoryOf('u', 'poison') }, call);
  const others = await Promise.all([1, 2, 3].map((i) => provider.add({ input: memoryOf('u', `fine ${i}`) }, call)));
  await until(async () => {
    // So that nobody waits for its turn to come.
    await store.sql(`update ${store.names.ingestion} set due_at = now() where status = 'queued' and due_at > now()`);
    return (await queue()).some(({ status }) => status === 'failed');
  });
  for (const other of others) expect(await provider.get(refTo(other.id), call)).toMatchObject({ status: 'done' });
  expect(await queue()).toEqual([
    { memory_id: id, status: 'failed', attempts: 5, error: 'The embedding service failed.' },
  ]);
  await until(async () => warnings(log).length > 0);
  expect(warnings(log)).toMatchObject([{ fields: { memory_id: id, reason: 'The embedding service failed.' } }]);
});

it('texts that fail only together are embedded one by one', async () => {
  const { store, drained, queue } = await ingestionSubject();
  let together = 0;
  const embedder = testEmbedder(async (text) => {
    if (text === 'memory') return;
    together += 1;
    await new Promise(setImmediate);
    const alone = together === 1;
    await new Promise(setImmediate);
    together -= 1;
    if (!alone) throw providerError('embeddings', 'The embedding service failed.');
  });
  // Queued before anybody looks, so that they are taken together.
  const held = await store.open({ embedder: testEmbedder(DOWN), options: { ingestion: 'async' } });
  for (let i = 0; i < 5; i++) await held.add({ input: memoryOf('u', `text ${i}`) }, call);
  await held.close();
  await store.open({ embedder });
  await drained();
  expect(await queue()).toEqual([]);
});

it('a rate limit counts as no failure of a text', async () => {
  const { store, drained, queue } = await ingestionSubject();
  let left = 7;
  const embedder = testEmbedder(() => {
    if (left-- <= 0) {
      left = 7;
      throw new OmpError('rate_limited', 'The embedding service limits the rate of requests.', { retryAfter: 1 });
    }
  });
  const provider = await store.open({ embedder, options: { ingestion: 'async' } });
  await Promise.all(Array.from({ length: 20 }, (_, i) => provider.add({ input: memoryOf('u', `text ${i}`) }, call)));
  await drained();
  expect(await queue()).toEqual([]);
});

it('a rejected content that has changed meanwhile counts as no failure', async () => {
  const { store, drained, queue } = await ingestionSubject();
  const gate = gates();
  const embedder = testEmbedder(async (text) => {
    if (text !== 'bad') return;
    await gate.fate(text);
    REFUSED();
  });
  const provider = await store.open({ embedder, options: { ingestion: 'async' } });
  const { id } = await provider.add({ input: memoryOf('u', 'bad') }, call);
  await until(async () => gate.waiting.has('bad'));
  await provider.update?.({ ref: refTo(id), patch: { content: 'good' } }, call);
  await gate.open('bad');
  await drained();
  expect(await queue()).toEqual([]);
  expect(await provider.get(refTo(id), call)).toMatchObject({ status: 'done', content: 'good' });
});

/** On the test's own connection. */
const runOn =
  (store: TestDatabase): Run =>
  (_how, text, values) =>
    store.sql(text, values);

const contents = Array.from({ length: 300 }, (_, i) => `text ${i}`);

it('gateways share a queue, and no text is embedded twice', async () => {
  const { store, drained } = await ingestionSubject();
  const embedders = [testEmbedder(), testEmbedder(), testEmbedder()];
  const providers = await Promise.all(
    embedders.map((embedder) => store.open({ embedder, options: { ingestion: 'async' } })),
  );
  await Promise.all(contents.map((content, i) => providers[i % 3]?.add({ input: memoryOf('u', content) }, call)));
  await drained();
  const asked = embedders.flatMap((embedder) => embedder.asked);
  expect(asked.toSorted()).toEqual(contents.toSorted());
  expect(await store.sql(`select 1 from ${store.names.memories} where embedding is null`)).toEqual([]);
});

it('a gateway that closes gives back what it has, and a sync one takes it on', async () => {
  const { store, drained, queue } = await ingestionSubject();
  const gate = gates();
  const first = await store.open({ embedder: testEmbedder(gate.fate), options: { ingestion: 'async' } });
  const { id } = await first.add({ input: memoryOf('u', 'left behind') }, call);
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
  const { id } = await gone.add({ input: memoryOf('u', 'taken and lost') }, call);
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
  const { id, content } = await provider.add({ input: memoryOf('u', 'slow') }, call);
  await provider.close();
  const { ingestion, memories } = store.names;
  const queue = createQueue(store.names, runOn(store), 2);
  const dueAt = async () => (await store.sql<{ due_at: Date }>(`select due_at from ${ingestion}`))[0]?.due_at;
  const claim = await queue.claim();
  const taken = await dueAt();
  expect(claim.rows).toEqual([{ id, content, attempts: 0, app: null }]);
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
  for (let i = 0; i < 5; i++) await provider.add({ input: memoryOf('u', `${i}`.repeat(3_000_000)) }, call);
  await provider.close();
  const queue = createQueue(store.names, runOn(store), 60);
  const claims = [await queue.claim(), await queue.claim(), await queue.claim()];
  for (const claim of claims) await claim.end();
  expect(claims.map(({ taken }) => taken)).toEqual([3, 2, 0]);
});

it('a column of vectors that is replaced underneath fails the batch and nothing else', async () => {
  const { store } = await ingestionSubject();
  const provider = await store.open({ embedder: testEmbedder(DOWN), options: { ingestion: 'async' } });
  const { id } = await provider.add({ input: memoryOf('u', 'kept') }, call);
  await provider.close();
  const gone = createQueue(withVectorsIn('gone', store.names), runOn(store), 60);
  await expect(gone.claim()).rejects.toThrow(/gone/);
  const claim = await createQueue(store.names, runOn(store), 60).claim();
  await claim.end();
  expect(claim.rows).toMatchObject([{ id }]);
});
