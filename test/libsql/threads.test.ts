import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Worker } from 'node:worker_threads';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { type Memory, newRecord, type Provider } from '#provider';
import libsql from '../../providers/collections/libsql.ts';
import { recordingLog } from '../support/gateway.ts';
import { hashingEmbedder } from '../support/hashing-embedder.ts';
import { call, callBy, listOf, memoryOf, refTo, searchFor } from '../support/requests.ts';

/*
 * A statement on a file is done within the call of the client. What grows with the memories of a user must let the event loop go on.
 */

const embedder = { ...hashingEmbedder(8), model: 'one' };
const vector = Float32Array.of(1, 1, 1, 1, 1, 1, 1, 1);
let folder: string;
let store: Required<Provider>;
let neighbour: Memory;

const open = async (): Promise<Required<Provider>> => {
  const context = { ranking: { mode: 'vector', keyword_weight: 0 }, audit: undefined, log: recordingLog() } as const;
  return (await libsql.open({}, { ...context, embedder, data_dir: folder })) as Required<Provider>;
};
const some = (user_id: string, count: number) =>
  Array.from({ length: count }, (_, n) => ({
    memory: newRecord(memoryOf(user_id, `note ${n}`), 'one') satisfies Memory,
    vector: Float32Array.of(1, n, 0, 0, 0, 0, 0, 0),
  }));
const search = (user_id: string, by = call) => store.search({ ...searchFor(user_id, ''), vector }, by);

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'omp-libsql-'));
  store = await open();
  await store.import({ items: some('ana', 600), replace: false }, call);
  neighbour = (await store.add({ input: memoryOf('cleo', 'a neighbour'), vector }, call)) as Memory;
});

afterAll(async () => {
  await store.close();
  await rm(folder, { recursive: true });
});

/** How many gets and small searches of a neighbour are answered while the work runs, of fifty. */
async function answeredDuring(work: () => Promise<unknown>): Promise<number> {
  let isDone = false;
  let answered = 0;
  const result = work().finally(() => {
    isDone = true;
  });
  // They wait for promises alone, and an answer of a thread comes with a later turn of the event loop: so this asks no clock.
  for (let i = 0; i < 50; i++) {
    await (i % 2 === 0 ? store.get(refTo(neighbour.id), call) : search('cleo'));
    if (!isDone) answered += 1;
  }
  await result;
  return answered;
}

it.each<[string, () => Promise<unknown>]>([
  ['a search', () => search('ana')],
  ['a list by a tag', () => store.list(listOf('ana', { tags: ['absent'] }), call)],
  ['the count of an erasure', () => store.holdings({ user_id: 'ana' }, call)],
  ['an import', () => store.import({ items: some('ben', 3), replace: false }, call)],
  ['an add', () => store.add({ input: memoryOf('ben', 'one more'), vector }, call)],
])(
  '[Decision 64] [Decision 29] gets of others are answered during %s of a user with many memories',
  async (_, work) => {
    expect(await answeredDuring(work)).toBe(50);
  },
);

it('[Decision 64] a page of a list, which an index leads to, is read in the process', async () => {
  expect(await answeredDuring(() => store.list(listOf('ana'), call))).toBeLessThan(50);
});

it('[Decision 64] a caller that goes away does not wait for its search, and the next one is answered', async () => {
  const gone = callBy();
  const left = search('ana', gone);
  gone.abort(new Error('gone'));
  await expect(left).rejects.toThrow('gone');
  expect(await search('ana')).toHaveLength(10);
});

/** A thread is ended here while it waits, or before it has begun: amid a statement the native code of the client would end the process. */
describe('a thread that dies', () => {
  let other: Required<Provider>;
  let writer: Worker | undefined;

  beforeEach(async () => {
    process.once('worker', (thread: Worker) => {
      writer = thread;
    });
    other = await open();
  });

  afterEach(() => other.close());

  it.each<[string, () => Promise<unknown>]>([
    ['a search', () => other.search({ ...searchFor('ana', ''), vector }, call)],
    ['an add', () => other.add({ input: memoryOf('ana', 'x'), vector }, call)],
  ])('[Decision 64] fails %s with an error of the envelope, and is started again', async (_, work) => {
    await writer?.terminate();
    process.once('worker', (thread: Worker) => void thread.terminate());
    const message = 'the thread of the libSQL file died';
    await expect(work()).rejects.toMatchObject({ code: 'provider_error', message });
    await work();
  });

  it('[Decision 64] loses nothing that was acknowledged', async () => {
    const first = await other.add({ input: memoryOf('dan', 'first'), vector }, call);
    await writer?.terminate();
    const second = await other.add({ input: memoryOf('dan', 'second'), vector }, call);
    expect((await store.list(listOf('dan'), call)).map(({ id }) => id)).toEqual([second?.id, first?.id]);
  });
});

it('[Decision 64] close waits for a search and a write that run', async () => {
  const other = await open();
  const running = [
    other.search({ ...searchFor('ana', ''), vector }, call),
    other.add({ input: memoryOf('eve', 'late'), vector }, call),
  ];
  // Until the threads have them.
  await new Promise(setImmediate);
  await other.close();
  await Promise.all(running);
  expect(await store.list(listOf('eve'), call)).toHaveLength(1);
});
