import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import type { Call, Embedder, Memory, MemoryPatch } from '#contract';
import { type Pinecone, startPinecone } from '../pinecone-server/start.ts';
import { hashingEmbedder } from '../support/hashing-embedder.ts';
import { call, callBy, listOf, memoryOf, refTo, searchFor } from '../support/requests.ts';
import { freshUser, laterMoment } from '../support/subject.ts';
import { type Gateway, openGateway } from './gateways.ts';

let server: Pinecone;
let here: Gateway;
let there: Gateway;
let user: string;
beforeAll(async () => {
  server = await startPinecone();
  here = await openGateway(server);
  there = await openGateway(server);
});
beforeEach(async () => {
  await server.lag({});
  await server.settle();
  user = freshUser();
});
afterAll(async () => {
  await here?.close();
  await there?.close();
  await server?.close();
});

/** What a gateway that has written nothing itself sees once everything is visible. */
async function settled(): Promise<Memory[]> {
  await server.settle();
  const other = await openGateway(server);
  const memories = await other.list(listOf(user), call);
  for (const memory of memories) expect(await other.get(refTo(memory.id), call)).toEqual(memory);
  await other.close();
  return memories;
}

describe('within one gateway', () => {
  it.each([
    ['at once', {}],
    ['late', { held: true }],
  ])(
    '[SPEC PATCH /memories/{id}] 50 patches of different fields at the same time lose nothing, shown %s',
    async (_, lag) => {
      const memory = await here.add(memoryOf(user, 'the cat sleeps'), call);
      await server.lag(lag);
      const patches: MemoryPatch[] = [
        { content: 'a dog barks' },
        { tags: ['a', 'b'] },
        { confidence: 0.25 },
        { valid_to: '2030-01-01T00:00:00.000Z' },
        { supersedes: ['mem_x'] },
        ...Array.from({ length: 45 }, (_, index): MemoryPatch => ({ extensions: { [`x-${index}`]: index } })),
      ];
      const answers = await Promise.all(patches.map((patch) => here.update(refTo(memory.id), patch, call)));
      const last = await here.get(refTo(memory.id), call);
      expect(last).toMatchObject({
        content: 'a dog barks',
        tags: ['a', 'b'],
        confidence: 0.25,
        valid_to: '2030-01-01T00:00:00.000Z',
        supersedes: ['mem_x'],
        extensions: Object.fromEntries(Array.from({ length: 45 }, (_, index) => [`x-${index}`, index])),
      });
      const times = answers.map((answer) => answer?.updated_at as string);
      expect(new Set(times).size).toBe(50);
      expect(last?.updated_at).toBe([...times].sort().at(-1));
      expect(await here.search(searchFor(user, 'a dog barks'), call)).toEqual([{ memory: last, score: 1 }]);
      expect(await settled()).toEqual([last]);
    },
  );

  it('of patches and a delete at the same time, those before it change the memory and those after it find none', async () => {
    const { id } = await here.add(memoryOf(user, 'the cat sleeps'), call);
    const patch = (confidence: number) => here.update(refTo(id), { confidence }, call);
    const [first, second, deleted, third, again] = await Promise.all([
      patch(0.1),
      patch(0.2),
      here.delete(refTo(id), call),
      patch(0.3),
      here.delete(refTo(id), call),
    ]);
    expect([first?.confidence, second?.confidence, deleted, third, again]).toEqual([0.1, 0.2, true, undefined, false]);
    expect(await settled()).toEqual([]);
  });

  it('what fails does not keep others from their turn', async () => {
    const { id } = await here.add(memoryOf(user, 'the cat sleeps'), call);
    await server.fail({ operation: 'update', kind: '400' });
    const outcomes = await Promise.allSettled([
      here.update(refTo(id), { confidence: 0.1 }, call),
      here.update(refTo(id), { confidence: 0.2 }, call),
    ]);
    expect(outcomes.map(({ status }) => status)).toEqual(['rejected', 'fulfilled']);
    expect(await settled()).toMatchObject([{ confidence: 0.2 }]);
  });

  it('who gave up while waiting for a turn changes nothing', async () => {
    const { id } = await here.add(memoryOf(user, 'the cat sleeps'), call);
    const controller = new AbortController();
    const gone = new Error('the client went away');
    const first = here.update(refTo(id), { confidence: 0.1 }, call);
    const second = here.update(refTo(id), { confidence: 0.2 }, callBy({}, { signal: controller.signal }));
    const refused = expect(second).rejects.toBe(gone);
    controller.abort(gone);
    await Promise.all([first, refused]);
    expect(await settled()).toMatchObject([{ confidence: 0.1 }]);
  });

  it('memories created at the same moment have times and places of their own', async () => {
    const made = await Promise.all(
      Array.from({ length: 60 }, (_, turn) => here.add(memoryOf(user, `n ${turn}`), call)),
    );
    expect(new Set(made.map(({ created_at }) => created_at)).size).toBe(60);
    const newestFirst = [...made].sort((a, b) => (a.created_at < b.created_at ? 1 : -1));
    expect(await here.list(listOf(user, { limit: 100 }), call)).toEqual(newestFirst);
    expect(await settled()).toEqual(newestFirst.slice(0, 50));
  });

  it('[SPEC PATCH /memories/{id} content] a text embedded while another field changes is kept with its own vector', async () => {
    const gate = deferred();
    const slow: Embedder = {
      ...hashingEmbedder(),
      embed: async (texts, purpose, one) => {
        if (texts[0] === 'slow text') await gate.promise;
        return hashingEmbedder().embed(texts, purpose, one);
      },
    };
    const gateway = await openGateway(server, { embedder: slow });
    const { id } = await gateway.add(memoryOf(user, 'the cat sleeps'), call);
    const moved = gateway.update(refTo(id), { content: 'slow text' }, call);
    const tagged = gateway.update(refTo(id), { tags: ['a'] }, call);
    gate.resolve();
    await Promise.all([moved, tagged]);
    const [memory] = await settled();
    expect(memory).toMatchObject({ content: 'slow text', tags: ['a'] });
    expect(await there.search(searchFor(user, 'slow text'), call)).toEqual([{ memory, score: 1 }]);
    await gateway.close();
  });
});

function deferred() {
  let resolve = () => {};
  const promise = new Promise<void>((done) => {
    resolve = done;
  });
  return { promise, resolve };
}

describe('between two gateways', () => {
  it('patches of different fields are all kept, though neither sees the other', async () => {
    const { id } = await here.add(memoryOf(user, 'the cat sleeps', { tags: ['old'] }), call);
    await server.settle();
    await server.lag({ held: true });
    await Promise.all([
      here.update(refTo(id), { tags: ['new'] }, call),
      there.update(refTo(id), { confidence: 0.5 }, call),
      here.update(refTo(id), { extensions: { 'x-here': [1] } }, call),
      there.update(refTo(id), { content: 'a dog barks', extensions: { 'x-there': 0 } }, call),
    ]);
    expect(await settled()).toMatchObject([
      { content: 'a dog barks', tags: ['new'], confidence: 0.5, extensions: { 'x-here': [1], 'x-there': 0 } },
    ]);
    expect(await there.search(searchFor(user, 'a dog barks'), call)).toMatchObject([{ score: 1 }]);
  });

  it('of patches of one field the last one stays', async () => {
    const { id } = await here.add(memoryOf(user, 'the cat sleeps'), call);
    await server.settle();
    await server.lag({ held: true });
    await here.update(refTo(id), { content: 'from here' }, call);
    await laterMoment();
    await there.update(refTo(id), { content: 'from there' }, call);
    const [memory] = await settled();
    expect(memory?.content).toBe('from there');
    for (const gateway of [here, there]) expect(await gateway.get(refTo(id), call)).toEqual(memory);
    expect(await here.list(listOf(user), call)).toEqual([memory]);
    expect(await there.search(searchFor(user, 'from there'), call)).toEqual([{ memory, score: 1 }]);
  });

  it('a patch is decided on what the other gateway made of the memory, not on what this one remembers', async () => {
    const { id } = await here.add(memoryOf(user, 'the cat sleeps', { confidence: 0.1 }), call);
    await there.update(refTo(id), { confidence: 0.9 }, call);
    expect(await here.update(refTo(id), { confidence: 0.1 }, call)).toMatchObject({ confidence: 0.1 });
    expect(await settled()).toMatchObject([{ confidence: 0.1 }]);
  });

  it('of a patch and a delete at the same time, the delete stays', async () => {
    for (let turn = 0; turn < 10; turn++) {
      const { id } = await here.add(memoryOf(user, 'the cat sleeps'), call);
      const [patched, deleted] = await Promise.all([
        here.update(refTo(id), { content: `a dog barks ${turn}` }, call),
        there.delete(refTo(id), call),
      ]);
      expect(patched === undefined || patched.id === id).toBe(true);
      expect(deleted).toBe(true);
    }
    expect(await settled()).toEqual([]);
  });
});

describe('a write without an answer', () => {
  /** Asks, and gives up when the service has been asked but does not answer. */
  const givenUp = async (what: string, ask: (by: Call) => Promise<unknown>) => {
    await server.resetCalls();
    const deadline = new AbortController();
    const late = ask(callBy({}, { signal: deadline.signal }));
    late.catch(() => {});
    await expect.poll(() => server.calls()).toContainEqual(expect.objectContaining({ operation: what }));
    const tooLate = new Error('too late');
    deadline.abort(tooLate);
    await expect(late).rejects.toBe(tooLate);
  };
  /** Waits until the service has done what it was asked, whether anybody waits for the answer or not. */
  const carriedOut = async (what: string) => {
    while ((await server.calls()).some(({ operation, status }) => operation === what && status === 0)) {
      await new Promise((resolve) => setTimeout(resolve, 20));
    }
  };

  it('[SPEC Errors provider_error] a patch: what was acknowledged last is shown, until the service shows the other', async () => {
    const memory = await here.add(memoryOf(user, 'the cat sleeps'), call);
    await server.fail({ operation: 'update', kind: 'reset-after' });
    await expect(here.update(refTo(memory.id), { confidence: 0.5 }, call)).rejects.toMatchObject({
      code: 'provider_error',
    });
    // It was carried out: what the service shows is newer than what this gateway remembers.
    expect(await here.get(refTo(memory.id), call)).toMatchObject({ content: 'the cat sleeps', confidence: 0.5 });
    expect(await here.list(listOf(user), call)).toMatchObject([{ confidence: 0.5 }]);

    await server.fail({ operation: 'update', kind: 'reset' });
    await expect(here.update(refTo(memory.id), { confidence: 0.7 }, call)).rejects.toMatchObject({
      code: 'provider_error',
    });
    expect(await here.get(refTo(memory.id), call)).toMatchObject({ confidence: 0.5 });
    expect(await settled()).toMatchObject([{ confidence: 0.5 }]);
  });

  it('a patch that is carried out after its deadline does not bring a deleted memory back', async () => {
    const { id } = await here.add(memoryOf(user, 'the cat sleeps'), call);
    await server.fail({ operation: 'update', kind: 'slow' });
    await givenUp('update', (by) => here.update(refTo(id), { content: 'a dog barks' }, by));
    expect(await here.delete(refTo(id), call)).toBe(true);
    await server.clearFaults();
    await carriedOut('update');
    expect(await here.get(refTo(id), call)).toBeUndefined();
    expect(await settled()).toEqual([]);
  });

  it('an add that is carried out after its deadline is there once, for nobody knew it before', async () => {
    await server.fail({ operation: 'upsert', kind: 'slow' });
    await givenUp('upsert', (by) => here.add(memoryOf(user, 'the cat sleeps'), by));
    expect(await here.list(listOf(user), call)).toEqual([]);
    await server.clearFaults();
    await carriedOut('upsert');
    expect(await settled()).toMatchObject([{ content: 'the cat sleeps' }]);
  });

  it('a delete: the memory is shown as long as nobody knows better, and can be deleted again', async () => {
    const memory = await here.add(memoryOf(user, 'the cat sleeps'), call);
    await server.fail({ operation: 'delete', kind: 'hang', times: 0 });
    await givenUp('delete', (by) => here.delete(refTo(memory.id), by));
    await server.clearFaults();
    expect(await here.get(refTo(memory.id), call)).toEqual(memory);
    expect(await here.delete(refTo(memory.id), call)).toBe(true);
    expect(await settled()).toEqual([]);
  });

  it.each([
    ['reset', 0],
    ['reset-after', 1],
  ] as const)('an add (%s): it may be there, and is not tried again', async (kind, times) => {
    await server.resetCalls();
    await server.fail({ operation: 'upsert', kind });
    await expect(here.add(memoryOf(user, 'the cat sleeps'), call)).rejects.toMatchObject({ code: 'provider_error' });
    expect((await server.calls()).map(({ operation }) => operation)).toEqual(['upsert']);
    expect(await settled()).toHaveLength(times);
  });
});
