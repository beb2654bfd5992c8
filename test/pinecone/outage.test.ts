import type { ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterEach, describe, expect, it, onTestFinished } from 'vitest';
import { spawnServer } from '../pinecone-server/spawn.ts';
import { type Pinecone, startPinecone } from '../pinecone-server/start.ts';
import type { Client, Reply } from '../support/client.ts';
import { connectRaw, jsonRequest, request } from '../support/raw-http.ts';
import { freshUser } from '../support/subject.ts';
import type { WireMemory } from '../support/wire.ts';
import { API_KEY, expectFailure, expectQuietLog, type Served, serveOnPinecone } from './served.ts';

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

describe('when Pinecone goes away', () => {
  it('[SPEC Errors provider_error] every request is answered, and when it is back everything works again', async () => {
    const first = await spawnServer(['--dimension=64']);
    const { port } = new URL(first.url);
    const served = await serveOnPinecone(first);
    onTestFinished(served.close);

    let stopping = false;
    const replies: Reply[] = [];
    const failures = () => replies.filter(({ status }) => status === 502).length;
    const successes = () => replies.filter(({ status }) => status < 300).length;
    const until = async (done: () => boolean) => {
      while (!done()) await sleep(5);
    };
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

describe('when clients go away', () => {
  let pinecone: Pinecone | undefined;
  let served: Served | undefined;
  afterEach(async () => {
    await served?.close();
    await pinecone?.close();
  });

  it.for([
    { label: 'that takes its time', fault: { kind: 'slow', ms: 15, times: 0 } },
    { label: 'that never answers', fault: { kind: 'hang', times: 0 } },
  ] as const)(
    '[Decision 16] a hundred at random moments, from a Pinecone $label, leave nothing behind',
    async ({ fault }) => {
      pinecone = await startPinecone({ apiKey: API_KEY, lagWrites: 1 });
      // Longer than the test may take: nothing but the clients' going ends what hangs.
      served = await serveOnPinecone(pinecone, { timeout_ms: 600_000 });
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

      await pinecone.fail(fault);
      await pinecone.resetCalls();
      const before = sockets();
      /** Undefined for a client that left before it had its answer. */
      const visit = async (number: number): Promise<Reply | undefined> => {
        const connection = connectRaw(port);
        await once(connection.socket, 'connect');
        connection.write(requests[number % requests.length] as Buffer);
        const answered = connection.next().catch(() => undefined);
        const reply = await Promise.race([answered, sleep(Math.random() * 150, undefined)]);
        connection.destroy();
        return reply;
      };
      const outcomes = await Promise.all(Array.from({ length: 100 }, (_, number) => visit(number)));
      await pinecone.clearFaults();
      expect((await pinecone.calls()).length).toBeGreaterThan(0);
      const gone = outcomes.filter((outcome) => outcome === undefined).length;
      expect(gone).toBeGreaterThan(0);
      // Whoever stayed was served.
      for (const reply of outcomes) if (reply) expect(reply.status, reply.text).toBeLessThan(300);

      // Every request that came in is over and has its line.
      while (lines.length < quiet + 100) await sleep(5);
      // Whatever was asked of Pinecone for somebody who left is over, though Pinecone never answered.
      if (fault.kind === 'hang') while (sockets() > before + 20) await sleep(5);
      // A patch waits for the one before it: this one is answered only if none of those given up still holds its turn.
      expect((await client.update(id, { confidence: 0.25 })).confidence).toBe(0.25);
      expect(await client.get(id)).toMatchObject({ content: 'a note', confidence: 0.25 });
      expect((await client.ask('/healthz')).status).toBe(200);

      // Nothing else was to be said; of those who left, that they did.
      const noted = lines.slice(quiet);
      expect(noted.filter(({ level, message }) => level !== 'info' || message !== 'request')).toEqual([]);
      const statuses = noted.map(({ fields }) => (fields as { status: number }).status);
      expect(statuses.filter((status) => status !== 499 && status >= 300)).toEqual([]);
      expect(statuses.filter((status) => status === 499).length).toBeGreaterThan(0);
    },
  );
});
