import { describe, expect, it } from 'vitest';
import { DOWN, REFUSED, testEmbedder } from './ingestion-subject.ts';
import { ENGINE, ENGINES, embedderOf, serverSubject, subjectFor } from './reembed-subject.ts';
import { call, memoryOf, refTo, until } from './store.ts';

const ASYNC = { ingestion: 'async' };
const [EMBEDDED] = ENGINES;

describe.each(ENGINE === 'server' ? (['server'] as const) : [EMBEDDED])('embedding anew on the %s engine', (engine) => {
  it.each([
    ['by another embedder', embedderOf('another', 32)],
    ['by the same one', testEmbedder()],
  ])('%s embeds what is queued and what has failed, and empties the queue', async (_, next) => {
    const subject = await subjectFor(engine);
    const embedder = testEmbedder((text) => (text === 'bad' ? REFUSED() : undefined));
    const first = await subject.open(embedder, ASYNC);
    const done = await first.add(memoryOf('u', 'done before'), call);
    const failed = await first.add(memoryOf('u', 'bad'), call);
    await until(async () => (await first.get(refTo(failed.id), call))?.status === 'failed');
    embedder.fate = DOWN;
    const queued = await first.add(memoryOf('u', 'still queued'), call);
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
});

describe.runIf(ENGINE === 'server')('on a server', () => {
  it('a gateway that still runs with the old embedder answers get and list, with the state', async () => {
    const subject = await serverSubject();
    const old = await subject.open(testEmbedder(), ASYNC);
    const { id } = await old.add(memoryOf('u', 'kept'), call);
    await subject.reembed(embedderOf('another', 32));
    expect(await old.get(refTo(id), call)).toMatchObject({ status: 'done' });
    expect(await old.list?.({ user_id: 'u', tags: [], within: null, max_bytes: 1e9, limit: 1 }, call)).toMatchObject([
      { id },
    ]);
    await expect(old.add(memoryOf('u', 'not taken'), call)).rejects.toThrow(/restart the gateway/);
  });
});
