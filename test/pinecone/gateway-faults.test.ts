import { beforeEach, describe, expect, it } from 'vitest';
import type { Call, Embedder, Memory } from '#contract';
import { callOf, gate } from '../embedding/observed-embedder.ts';
import { eventually } from '../support/eventually.ts';
import { hashingEmbedder } from '../support/hashing-embedder.ts';
import { call, listOf, memoryOf, refTo, searchFor } from '../support/requests.ts';
import { freshUser } from '../support/subject.ts';
import { openGateway, useTwoGateways } from './gateways.ts';

describe('concurrency', () => {
  const used = useTwoGateways();
  let { server, here, there } = used;
  let user: string;
  beforeEach(() => {
    ({ server, here, there } = used);
    user = freshUser();
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
    it('a patch that is given up while it waits changes nothing', async () => {
      const { id } = await here.add({ input: memoryOf(user, 'the cat sleeps') }, call);
      const controller = new AbortController();
      const gone = new Error('the client went away');
      const first = here.update({ ref: refTo(id), patch: { confidence: 0.1 } }, call);
      const second = here.update({ ref: refTo(id), patch: { confidence: 0.2 } }, callOf(controller.signal));
      const refused = expect(second).rejects.toBe(gone);
      controller.abort(gone);
      await Promise.all([first, refused]);
      expect(await settled()).toMatchObject([{ confidence: 0.1 }]);
    });

    it('[SPEC PATCH /memories/{id} content] a text embedded while another field changes is kept with its own vector', async () => {
      const { opened, open } = gate();
      const slow: Embedder = {
        ...hashingEmbedder(),
        embed: async (texts, purpose, one) => {
          if (texts[0] === 'slow text') await opened;
          return hashingEmbedder().embed(texts, purpose, one);
        },
      };
      const gateway = await openGateway(server, { embedder: slow });
      const { id } = await gateway.add({ input: memoryOf(user, 'the cat sleeps') }, call);
      const moved = gateway.update({ ref: refTo(id), patch: { content: 'slow text' } }, call);
      const tagged = gateway.update({ ref: refTo(id), patch: { tags: ['a'] } }, call);
      open();
      await Promise.all([moved, tagged]);
      const [memory] = await settled();
      expect(memory).toMatchObject({ content: 'slow text', tags: ['a'] });
      expect(await there.search(searchFor(user, 'slow text'), call)).toEqual([{ memory, score: 1 }]);
      await gateway.close();
    });
  });

  describe('between two gateways', () => {
    it('patches of different fields are all kept, though neither sees the other', async () => {
      const { id } = await here.add({ input: memoryOf(user, 'the cat sleeps', { tags: ['old'] }) }, call);
      await server.settle();
      await server.lag({ held: true });
      await Promise.all([
        here.update({ ref: refTo(id), patch: { tags: ['new'] } }, call),
        there.update({ ref: refTo(id), patch: { confidence: 0.5 } }, call),
        here.update({ ref: refTo(id), patch: { extensions: { 'x-here': [1] } } }, call),
        there.update({ ref: refTo(id), patch: { content: 'a dog barks', extensions: { 'x-there': 0 } } }, call),
      ]);
      expect(await settled()).toMatchObject([
        { content: 'a dog barks', tags: ['new'], confidence: 0.5, extensions: { 'x-here': [1], 'x-there': 0 } },
      ]);
      expect(await there.search(searchFor(user, 'a dog barks'), call)).toMatchObject([{ score: 1 }]);
    });

    it('a patch is decided on what the other gateway made of the memory, not on what this one remembers', async () => {
      const { id } = await here.add({ input: memoryOf(user, 'the cat sleeps', { confidence: 0.1 }) }, call);
      await there.update({ ref: refTo(id), patch: { confidence: 0.9 } }, call);
      expect(await here.update({ ref: refTo(id), patch: { confidence: 0.1 } }, call)).toMatchObject({
        confidence: 0.1,
      });
      expect(await settled()).toMatchObject([{ confidence: 0.1 }]);
    });

    it('of a patch and a delete at the same time, the delete stays', async () => {
      for (let turn = 0; turn < 10; turn++) {
        const { id } = await here.add({ input: memoryOf(user, 'the cat sleeps') }, call);
        const [patched, deleted] = await Promise.all([
          here.update({ ref: refTo(id), patch: { content: `a dog barks ${turn}` } }, call),
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
      const late = ask(callOf(deadline.signal));
      late.catch(() => {});
      await expect.poll(() => server.calls()).toContainEqual(expect.objectContaining({ operation: what }));
      const tooLate = new Error('too late');
      deadline.abort(tooLate);
      await expect(late).rejects.toBe(tooLate);
    };
    /** Waits until the service has done what it was asked, whether anybody waits for the answer or not. */
    const carriedOut = (what: string) =>
      eventually(async () =>
        expect(await server.calls()).not.toContainEqual(expect.objectContaining({ operation: what, status: 0 })),
      );

    it('[SPEC Errors provider_error] a patch: what was acknowledged last is shown, until the service shows the other', async () => {
      const memory = await here.add({ input: memoryOf(user, 'the cat sleeps') }, call);
      await server.fail({ operation: 'update', kind: 'reset-after' });
      await expect(here.update({ ref: refTo(memory.id), patch: { confidence: 0.5 } }, call)).rejects.toMatchObject({
        code: 'provider_error',
      });
      // It was carried out: what the service shows is newer than what this gateway remembers.
      expect(await here.get(refTo(memory.id), call)).toMatchObject({ content: 'the cat sleeps', confidence: 0.5 });
      expect(await here.list(listOf(user), call)).toMatchObject([{ confidence: 0.5 }]);

      await server.fail({ operation: 'update', kind: 'reset' });
      await expect(here.update({ ref: refTo(memory.id), patch: { confidence: 0.7 } }, call)).rejects.toMatchObject({
        code: 'provider_error',
      });
      expect(await here.get(refTo(memory.id), call)).toMatchObject({ confidence: 0.5 });
      expect(await settled()).toMatchObject([{ confidence: 0.5 }]);
    });

    it('a patch that is carried out after its deadline does not bring a deleted memory back', async () => {
      const { id } = await here.add({ input: memoryOf(user, 'the cat sleeps') }, call);
      await server.fail({ operation: 'update', kind: 'slow' });
      await givenUp('update', (by) => here.update({ ref: refTo(id), patch: { content: 'a dog barks' } }, by));
      expect(await here.delete(refTo(id), call)).toBe(true);
      await server.clearFaults();
      await carriedOut('update');
      expect(await here.get(refTo(id), call)).toBeUndefined();
      expect(await settled()).toEqual([]);
    });
  });
});
