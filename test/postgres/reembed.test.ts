import { describe, expect, it } from 'vitest';
import { listOf } from '../support/requests.ts';
import { DOWN, REFUSED, testEmbedder } from './ingestion-subject.ts';
import {
  addMemories,
  answersOf,
  contentOf,
  ENGINE,
  ENGINES,
  embeddedSubject,
  embedderOf,
  expectedAnswers,
  memoriesUpTo,
  serverSubject,
  subjectFor,
} from './reembed-subject.ts';
import { call, memoryOf, refTo, until } from './store.ts';

const COUNT = 40;
const OLD = { model: 'old', dimensions: 64 };

const started = async (engine: (typeof ENGINES)[number] = ENGINE) => {
  const subject = await subjectFor(engine);
  const provider = await subject.open(embedderOf('old'));
  await addMemories(provider, 0, COUNT);
  const kept = await provider.list?.(listOf('ana'), call);
  await provider.close();
  return { subject, kept: kept ?? [] };
};

describe.each(ENGINES)('re-embed, %s', (engine) => {
  it('stops after the current batch, serves as before, and continues without embedding anything twice', async () => {
    const { subject } = await started(engine);
    const to = embedderOf('new', 32);
    const stopping = new AbortController();
    const stopped = await subject.reembed(to, {
      signal: stopping.signal,
      progress: ({ done }) => done >= 14 && stopping.abort(),
    });
    expect(stopped).toMatchObject({ done: 14, total: COUNT, embedded: 14, switched: false });

    await expect(subject.open(to)).rejects.toThrow(/"new" \(32 dimensions\).*not finished/);
    const before = await subject.open(embedderOf('old'));
    expect(await answersOf(before)).toEqual(await expectedAnswers(embedderOf('old'), memoriesUpTo(COUNT)));
    await addMemories(before, COUNT, COUNT + 2);
    await before.close();

    const total = COUNT + 2;
    expect(await subject.reembed(to, { dry_run: true })).toMatchObject({ done: 14, total });
    expect(await subject.reembed(to)).toMatchObject({ done: total, total, embedded: total - 14, switched: true });
    expect(to.seen).toEqual(memoriesUpTo(total).map(({ content }) => content));
    expect(await answersOf(await subject.open(to))).toEqual(await expectedAnswers(to, memoriesUpTo(total)));
  });
});

describe('re-embed', () => {
  it.each([
    { model: 'new', dimensions: 64 },
    { model: 'new', dimensions: 200 },
    { model: 'old', dimensions: 48 },
  ])('by $model ($dimensions) leaves what a store has that began with it', async ({ model, dimensions }) => {
    const { subject, kept } = await started();
    const to = embedderOf(model, dimensions);
    const states: unknown[] = [];
    const outcome = await subject.reembed(to, { progress: (state) => states.push(state) });
    const done = { done: COUNT, total: COUNT };
    expect(outcome).toEqual({
      ...done,
      from: OLD,
      to: { model, dimensions },
      embedded: COUNT,
      characters: null,
      switched: true,
    });
    expect(states.slice(0, 2)).toEqual([
      { done: 7, total: COUNT },
      { done: 14, total: COUNT },
    ]);
    expect(states.at(-1)).toEqual(done);

    await expect(subject.open(embedderOf('old'))).rejects.toThrow(/"omp-gateway reembed".*OMP_EMBEDDING_MODEL/);
    const provider = await subject.open(to);
    expect(await answersOf(provider)).toEqual(await expectedAnswers(to, memoriesUpTo(COUNT)));
    // Nothing else has changed, the time of the last change included.
    expect(await provider.list?.(listOf('ana'), call)).toEqual(
      kept.map((memory) => ({ ...memory, embedding_model: model })),
    );
    await addMemories(provider, COUNT, COUNT + 3);
    expect(await answersOf(provider)).toEqual(await expectedAnswers(to, memoriesUpTo(COUNT + 3)));
  });

  it('gives memories of OMP_SEARCH_MODE=keyword their vectors', async () => {
    const subject = await subjectFor(ENGINE);
    const keyword = await subject.open(null);
    await addMemories(keyword, 0, COUNT);
    await keyword.close();
    const to = embedderOf('new', 32);
    await expect(subject.open(to)).rejects.toThrow('omp-gateway reembed');
    expect(await subject.reembed(to)).toMatchObject({ from: null, embedded: COUNT, switched: true });
    expect(await answersOf(await subject.open(to))).toEqual(await expectedAnswers(to, memoriesUpTo(COUNT)));
  });

  it('gives a vector to those alone that have none, where the embedder stays', async () => {
    const { subject } = await started();
    const keyword = await subject.open(null);
    await addMemories(keyword, COUNT, COUNT + 9);
    await keyword.close();
    await expect(subject.open(embedderOf('old'))).rejects.toThrow('omp-gateway reembed');
    const same = embedderOf('old');
    const total = COUNT + 9;
    expect(await subject.reembed(same, { dry_run: true })).toMatchObject({ done: COUNT, total, switched: false });
    expect(same.seen).toEqual([]);
    expect(await subject.reembed(same)).toMatchObject({ embedded: 9, done: total, total, switched: true });
    expect(same.seen).toEqual(Array.from({ length: 9 }, (_, i) => contentOf(COUNT + i)));
    expect(await answersOf(await subject.open(same))).toEqual(await expectedAnswers(same, memoriesUpTo(total)));
  });

  it('only counts in a dry run, and does nothing where the embedder stays', async () => {
    const { subject } = await started();
    const to = embedderOf('new', 32);
    expect(await subject.reembed(to, { dry_run: true })).toEqual({
      from: OLD,
      to: { model: 'new', dimensions: 32 },
      done: 0,
      total: COUNT,
      embedded: 0,
      characters: memoriesUpTo(COUNT).reduce((sum, { content }) => sum + content.length, 0),
      switched: false,
    });
    expect(to.seen).toEqual([]);
    // Had it begun, the old embedder could only come back with --restart. It has nothing to do.
    const old = embedderOf('old');
    expect(await subject.reembed(old)).toMatchObject({ from: OLD, to: OLD, embedded: 0, done: COUNT, switched: true });
    expect(old.seen).toEqual([]);
    expect(await answersOf(await subject.open(old))).toEqual(await expectedAnswers(old, memoriesUpTo(COUNT)));
  });

  it('does not begin for another embedder before the first is finished or discarded', async () => {
    const { subject } = await started();
    const stopping = new AbortController();
    const request = { signal: stopping.signal, progress: () => stopping.abort() };
    await subject.reembed(embedderOf('first', 32), request);
    const second = embedderOf('second', 32);
    for (const dry_run of [true, false]) {
      await expect(subject.reembed(second, { dry_run })).rejects.toThrow(
        /"first" \(32 dimensions\).*"second" \(32 dimensions\).*--restart/,
      );
    }
    expect(second.seen).toEqual([]);
    expect(await subject.reembed(second, { dry_run: true, restart: true })).toMatchObject({ done: 0, total: COUNT });
    expect(await subject.reembed(second, { restart: true })).toMatchObject({ embedded: COUNT, switched: true });
    expect(await answersOf(await subject.open(second))).toEqual(await expectedAnswers(second, memoriesUpTo(COUNT)));
  });

  it('is discarded by going back to the previous embedder', async () => {
    const { subject } = await started();
    const stopping = new AbortController();
    await subject.reembed(embedderOf('new', 32), { signal: stopping.signal, progress: () => stopping.abort() });
    const old = embedderOf('old');
    await expect(subject.reembed(old)).rejects.toThrow('--restart');
    expect(await subject.reembed(old, { restart: true })).toMatchObject({ embedded: 0, switched: true });
    expect(old.seen).toEqual([]);
    await expect(subject.open(embedderOf('new', 32))).rejects.not.toThrow('not finished');
    expect(await answersOf(await subject.open(old))).toEqual(await expectedAnswers(old, memoriesUpTo(COUNT)));
  });

  it('of nothing at all is done at once, several times over', async () => {
    const subject = await subjectFor(ENGINE);
    for (const model of ['one', 'two', 'three']) {
      expect(await subject.reembed(embedderOf(model))).toMatchObject({ total: 0, embedded: 0, switched: true });
    }
    const to = embedderOf('three');
    const provider = await subject.open(to);
    await addMemories(provider, 0, 5);
    expect(await answersOf(provider)).toEqual(await expectedAnswers(to, memoriesUpTo(5)));
  });
});

describe('re-embed is rejected', () => {
  it('without an embedder', async () => {
    const subject = await embeddedSubject();
    await expect(subject.reembed(undefined)).rejects.toThrow(/OMP_SEARCH_MODE/);
  });

  it('in the data folder of a running gateway', async () => {
    const subject = await embeddedSubject();
    await subject.open(embedderOf('old'));
    await expect(subject.reembed(embedderOf('new'))).rejects.toThrow(/in use by another omp-gateway/);
  });
});

const ASYNC = { ingestion: 'async' };
const [EMBEDDED] = ENGINES;

describe.each(ENGINE === 'server' ? (['server'] as const) : [EMBEDDED])(
  're-embed and ingestion on the %s engine',
  (engine) => {
    it.each([
      ['by another embedder', embedderOf('another', 32)],
      ['by the same one', testEmbedder()],
    ])('%s embeds what is queued and what has failed, and empties the queue', async (_, next) => {
      const subject = await subjectFor(engine);
      const embedder = testEmbedder((text) => (text === 'bad' ? REFUSED() : undefined));
      const first = await subject.open(embedder, ASYNC);
      const done = await first.add({ input: memoryOf('u', 'done before') }, call);
      const failed = await first.add({ input: memoryOf('u', 'bad') }, call);
      await until(async () => (await first.get(refTo(failed.id), call))?.status === 'failed');
      embedder.fate = DOWN;
      const queued = await first.add({ input: memoryOf('u', 'still queued') }, call);
      await first.close();

      // A queue that is not empty, nor a failure in it, keeps nobody from starting.
      const again = await subject.open(testEmbedder(DOWN), ASYNC);
      expect(await again.get(refTo(failed.id), call)).toMatchObject({ status: 'failed' });
      await again.close();

      expect(await subject.reembed(next)).toMatchObject({ total: 3, done: 3, switched: true });
      const after = await subject.open(next, ASYNC);
      for (const { id } of [done, failed, queued]) {
        expect(await after.get(refTo(id), call)).toMatchObject({ status: 'done', embedding_model: next.model });
      }
      expect(await after.backlog?.(call)).toEqual({ queued: 0, indexing: 0, failed: 0 });
      await after.close();
    });
  },
);

describe.runIf(ENGINE === 'server')('on a server', () => {
  it('a gateway that still runs with the old embedder answers get and list, with the state', async () => {
    const subject = await serverSubject();
    const old = await subject.open(testEmbedder(), ASYNC);
    const { id } = await old.add({ input: memoryOf('u', 'kept') }, call);
    await subject.reembed(embedderOf('another', 32));
    expect(await old.get(refTo(id), call)).toMatchObject({ status: 'done' });
    expect(await old.list?.({ user_id: 'u', tags: [], within: null, max_bytes: 1e9, limit: 1 }, call)).toMatchObject([
      { id },
    ]);
    await expect(old.add({ input: memoryOf('u', 'not taken') }, call)).rejects.toThrow(/restart the gateway/);
  });
});
