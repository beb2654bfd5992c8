import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { FAULT_KINDS, type Fault } from '../pinecone-server/faults.ts';
import { type Pinecone, startPinecone } from '../pinecone-server/start.ts';
import type { Client, Reply } from '../support/client.ts';
import { freshUser } from '../support/subject.ts';
import type { WireMemory, WirePage } from '../support/wire.ts';
import { API_KEY, expectFailure, expectQuietLog, type Served, serveOnPinecone } from './served.ts';

const SECRET = 'where-the-treasure-is-buried';
const content = `a note of ${SECRET}`;

interface VerbCase {
  send(client: Client, memory: WireMemory): Promise<Reply>;
  readonly success: number;
}

const VERBS: Readonly<Record<string, VerbCase>> = {
  add: {
    send: ({ tell }, { user_id }) => tell('POST', '/memories', { user_id, content }),
    success: 201,
  },
  get: { send: ({ ask, byId }, { id }) => ask(byId(id)), success: 200 },
  update: {
    send: ({ tell, byId }, { id }) => tell('PATCH', byId(id), { content: `another ${content}` }),
    success: 200,
  },
  list: { send: ({ ask }, { user_id }) => ask('/memories', { user_id }), success: 200 },
  search: {
    send: ({ ask }, { user_id }) => ask('/memories/search', { user_id, q: content }),
    success: 200,
  },
  context: {
    send: ({ tell }, { user_id }) => tell('POST', '/context', { user_id, query: content }),
    success: 200,
  },
  // Last: the others need the memory.
  delete: {
    send: ({ tell, byId }, { id }) => tell('DELETE', byId(id)),
    success: 204,
  },
};
/** What Pinecone never answers ends at a deadline: `client-retry.test.ts`. */
const KINDS = FAULT_KINDS.filter((kind) => kind !== 'hang' && kind !== 'slow');

describe('the gateway on a Pinecone that fails', () => {
  let pinecone: Pinecone;
  let served: Served;
  beforeAll(async () => {
    pinecone = await startPinecone({ apiKey: API_KEY, lsn: false });
    // Remembers nothing, so that every verb asks all that it may have to ask.
    served = await serveOnPinecone(pinecone, { settle_ms: 0 });
  });
  afterAll(async () => {
    await served?.close();
    await pinecone?.close();
  });

  afterEach(() => pinecone.clearFaults());

  /** A user of its own for each verb, with one memory. */
  const memories = async (): Promise<Record<string, WireMemory>> => {
    const added = Object.keys(VERBS).map(async (name) => {
      const memory = await served.client.add({ user_id: freshUser(), content });
      return [name, memory] as const;
    });
    return Object.fromEntries(await Promise.all(added));
  };
  const sendAll = async (verbs: readonly string[], of: Record<string, WireMemory>) =>
    Object.fromEntries(
      await Promise.all(
        verbs.map(async (name) => [name, await VERBS[name]?.send(served.client, of[name] as WireMemory)] as const),
      ),
    ) as Record<string, Reply>;
  const statuses = (replies: Record<string, Reply>) =>
    Object.fromEntries(Object.entries(replies).map(([name, { status }]) => [name, status]));
  const successes = (verbs: readonly string[]) => Object.fromEntries(verbs.map((name) => [name, VERBS[name]?.success]));

  /** The verbs fail while the fault is there, as they should, and succeed when it is gone. */
  const suffer = async (fault: Fault, verbs: readonly string[], check: (name: string, reply: Reply) => void) => {
    const of = await memories();
    await pinecone.fail({ ...fault, times: 0 });
    const replies = await sendAll(verbs, of);
    await pinecone.clearFaults();
    for (const [name, reply] of Object.entries(replies)) check(name, reply);
    // The one thing that, once done without an answer, cannot be done again.
    const isGone = fault.operation === 'delete' && fault.kind === 'reset-after';
    const due = { ...successes(verbs), ...(isGone && { delete: 404 }) };
    expect(statuses(await sendAll(verbs, of)), 'afterwards').toEqual(due);
    return { of, replies };
  };

  it.for(KINDS.filter((kind) => kind !== '429'))(
    '[SPEC Errors provider_error] [SPEC Errors envelope] [SPEC Errors provider] answers 502 and nothing inner while every request meets: %s',
    async (kind) => {
      const { replies } = await suffer({ kind }, Object.keys(VERBS), (name, reply) => {
        expectFailure(reply, 'provider_error');
        expect(reply.headers.get('retry-after'), name).toBeNull();
      });
      const told = Object.values(replies).map(({ body }) => (body as { error: { message: string } }).error.message);
      // Whatever was asked for, a client is told the same.
      expect([...new Set(told)]).toHaveLength(1);
    },
  );

  it.for<[retryAfter: string | undefined, passedOn: string | null]>([
    [undefined, null],
    ['7', '7'],
    ['soon', null],
  ])(
    '[SPEC Errors rate_limited] passes on how long to wait, where that is told: %s',
    async ([retryAfter, passedOn]) => {
      const fault: Fault = { kind: '429', ...(retryAfter && { retryAfter }) };
      await suffer(fault, Object.keys(VERBS), (name, reply) => {
        expectFailure(reply, 'rate_limited');
        expect(reply.headers.get('retry-after'), name).toBe(passedOn);
      });
    },
  );

  it('[SPEC DELETE /memories/{id}] has deleted what it said it could not delete, or not: never a part, and not back again', async () => {
    for (const kind of ['reset', 'reset-after'] as const) {
      const { id, user_id } = await served.client.add({ user_id: freshUser(), content });
      await pinecone.fail({ kind, operation: 'delete', times: 0 });
      expectFailure(await served.client.tell('DELETE', served.client.byId(id)), 'provider_error');
      await pinecone.clearFaults();
      const { status } = await served.client.ask(served.client.byId(id));
      expect(status).toBe(kind === 'reset' ? 200 : 404);
      const { body } = await served.client.ask('/memories', { user_id });
      expect((body as WirePage).items.map((memory) => memory.id)).toEqual(status === 200 ? [id] : []);
    }
  });

  it('writes neither the key, nor the address, nor contents and users into its log', async () => {
    const host = pinecone.url.replace('http://', '');
    const { lines } = served;
    expect(lines.filter(({ level }) => level === 'error').length).toBeGreaterThan(20);
    expectQuietLog(lines, host, SECRET, 'user-');
  });
});
