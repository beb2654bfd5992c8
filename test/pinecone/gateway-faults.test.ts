import type { ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { afterEach, beforeEach, describe, expect, it, onTestFinished } from 'vitest';
import type { Call, Embedder, Memory, MemoryPatch } from '#contract';
import { spawnServer } from '../pinecone-server/spawn.ts';
import { type Pinecone, startPinecone } from '../pinecone-server/start.ts';
import type { Client, Reply } from '../support/client.ts';
import { eventually } from '../support/eventually.ts';
import { hashingEmbedder } from '../support/hashing-embedder.ts';
import { connectRaw, jsonRequest, request } from '../support/raw-http.ts';
import { call, callBy, listOf, memoryOf, refTo, searchFor } from '../support/requests.ts';
import { freshUser, laterMoment } from '../support/subject.ts';
import type { WireMemory } from '../support/wire.ts';
import { openGateway, useTwoGateways } from './gateways.ts';
import { API_KEY, expectFailure, expectQuietLog, type Served, serveOnPinecone } from './served.ts';

describe('outages', () => {
  const CLIENTS = 20;

  /** Everything a client does with one memory of its own. A reply that is no success ends the round. */
  async function* round({ tell, ask, byId }: Client): AsyncGenerator<Reply, void> {
    const user_id = freshUser();
    const added = await tell('POST', '/memories', { user_id, content: 'a note' });
    yield added;
    const { id } = added.body as WireMemory;
    yield await ask(byId(id));
    yield await ask('/memories/search', { user_id, q: 'a note' });
    yield await tell('PATCH', byId(id), { content: 'another note' });
    yield await ask('/memories', { user_id });
    yield await tell('DELETE', byId(id));
    yield await ask('/healthz');
  }

  /** Connections of this process, to whomever. */
  const sockets = (): number => process.getActiveResourcesInfo().filter((name) => name === 'TCPSocketWrap').length;

  const ended = async (child: ChildProcess, signal: NodeJS.Signals): Promise<void> => {
    const exit = once(child, 'exit');
    child.kill(signal);
    await exit;
  };

  describe('when Pinecone restarts', () => {
    it('[SPEC Errors provider_error] every request is answered, and when it is back everything works again', async () => {
      const first = await spawnServer(['--dimension=64']);
      const { port } = new URL(first.url);
      const served = await serveOnPinecone(first);
      onTestFinished(served.close);

      let stopping = false;
      const replies: Reply[] = [];
      const failures = () => replies.filter(({ status }) => status === 502).length;
      const successes = () => replies.filter(({ status }) => status < 300).length;
      const until = (done: () => boolean) => eventually(() => expect(done()).toBe(true));
      const client = async () => {
        while (!stopping) {
          for await (const reply of round(served.client)) {
            replies.push(reply);
            if (reply.status >= 300) break;
          }
        }
      };
      const traffic = Promise.all(Array.from({ length: CLIENTS }, client));
      await until(() => successes() > 200);
      expect(failures()).toBe(0);

      await ended(first.child, 'SIGKILL');
      // First connections that break, then connections that cannot be made.
      await until(() => failures() > 4 * CLIENTS);

      const second = await spawnServer(['--dimension=64', `--port=${port}`]);
      onTestFinished(() => ended(second.child, 'SIGTERM'));
      expect(second.url).toBe(first.url);
      const [before, failed] = [successes(), failures()];
      await until(() => successes() > before + 200);
      stopping = true;
      await traffic;

      // Every client is over it: nobody hangs, and whoever goes on succeeds.
      expect(failures()).toBeLessThanOrEqual(failed + 2 * CLIENTS);
      for await (const { status } of round(served.client)) expect(status).toBeLessThan(300);
      const others = replies.filter(({ status }) => status >= 300);
      const messages = new Set<string>();
      for (const reply of others) {
        // Nothing is kept that was in the first process: memories of that time are gone.
        if (reply.status !== 404) messages.add(expectFailure(reply, 'provider_error'));
      }
      expect([...messages].sort()).toEqual(expect.arrayContaining(['Pinecone cannot be reached']));
      for (const message of messages) expect(message).toMatch(/cannot be reached$|connection to Pinecone was lost$/);
      expectQuietLog(served.lines, `127.0.0.1:${port}`, 'a note', 'user-');
    });
  });

  describe('when clients disconnect', () => {
    let pinecone: Pinecone | undefined;
    let served: Served | undefined;
    afterEach(async () => {
      await served?.close();
      await pinecone?.close();
    });

    it.each(['slow', 'hang'] as const)(
      '[Decision 16] requests that are given up while Pinecone does not answer (%s) leave nothing behind',
      async (kind) => {
        pinecone = await startPinecone({ apiKey: API_KEY, lagWrites: 1 });
        served = await serveOnPinecone(pinecone);
        const { calls } = pinecone;
        const { client, port, lines } = served;
        const user_id = freshUser();
        const { id } = await client.add({ user_id, content: 'a note' });
        const { length: quiet } = lines;
        const requests = [
          jsonRequest('POST', '/memories', JSON.stringify({ user_id, content: 'another note' })),
          request('GET', client.byId(id)),
          jsonRequest('PATCH', client.byId(id), JSON.stringify({ confidence: 0.5 })),
          request('GET', `/memories?user_id=${user_id}`),
          request('GET', `/memories/search?user_id=${user_id}&q=note`),
          jsonRequest('POST', '/context', JSON.stringify({ user_id, query: 'note' })),
        ];

        await pinecone.fail({ kind, times: 0 });
        await pinecone.resetCalls();
        const before = sockets();
        const connections = await Promise.all(
          Array.from({ length: 100 }, async (_, number) => {
            const connection = connectRaw(port);
            await once(connection.socket, 'connect');
            connection.write(requests[number % requests.length] as Buffer);
            return connection;
          }),
        );
        await eventually(async () => expect((await calls()).length).toBeGreaterThan(20));
        const stay = kind === 'slow' ? connections.slice(50) : [];
        const leave = connections.slice(0, 100 - stay.length);
        for (const { destroy } of leave) destroy();
        // Requests that were given up end though Pinecone has not answered.
        await eventually(() => expect(lines.length).toBeGreaterThanOrEqual(quiet + leave.length));
        if (kind === 'hang') await eventually(() => expect(sockets()).toBeLessThanOrEqual(before + 20));
        await pinecone.clearFaults();
        for (const connection of stay) {
          const reply = await connection.next();
          expect(reply.status, reply.text).toBeLessThan(300);
          connection.destroy();
        }

        // This patch is answered only if no patch that was given up still holds the mutex.
        expect((await client.update(id, { confidence: 0.25 })).confidence).toBe(0.25);
        expect(await client.get(id)).toMatchObject({ content: 'a note', confidence: 0.25 });
        const noted = lines.slice(quiet);
        expect(noted.filter(({ level, message }) => level !== 'info' || message !== 'request')).toEqual([]);
        const statuses = noted.map(({ fields }) => (fields as { status: number }).status);
        expect(statuses.filter((status) => status === 499)).toHaveLength(leave.length);
        expect(statuses.filter((status) => status !== 499 && status >= 300)).toEqual([]);
      },
    );
  });
});

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
      expect([first?.confidence, second?.confidence, deleted, third, again]).toEqual([
        0.1,
        0.2,
        true,
        undefined,
        false,
      ]);
      expect(await settled()).toEqual([]);
    });

    it('a patch that is given up while it waits changes nothing', async () => {
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
    const carriedOut = (what: string) =>
      eventually(async () =>
        expect(await server.calls()).not.toContainEqual(expect.objectContaining({ operation: what, status: 0 })),
      );

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

    it('an add that is carried out after its deadline is stored once', async () => {
      await server.fail({ operation: 'upsert', kind: 'slow' });
      await givenUp('upsert', (by) => here.add(memoryOf(user, 'the cat sleeps'), by));
      expect(await here.list(listOf(user), call)).toEqual([]);
      await server.clearFaults();
      await carriedOut('upsert');
      expect(await settled()).toMatchObject([{ content: 'the cat sleeps' }]);
    });

    it('a delete: the memory is shown and can be deleted again', async () => {
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
});
