import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { openPineconeSubject, type PineconeSubject } from '../support/pinecone-server.ts';
import { type Bench, openBench } from './bench.ts';
import { bearer } from './callers.ts';
import { rightsSuite, SOME } from './matrix.suite.ts';
import type { Key } from './rule.ts';

/** Keys that reach nothing of ben's, granted nothing, everything, and something. */
const STRANGERS: readonly Key[] = [[], ['*:*'], ['*:coding/*'], ['read:*', 'write:coding']].map((grants) => ({
  grants,
  users: ['ana', 'cleo'],
}));

/** The access matrix where the backend knows neither scopes nor its own latest writes: it shows the last two writes late. */
describe('access matrix, pinecone', () => {
  let pinecone: PineconeSubject['pinecone'];
  let opened: Bench | undefined;
  beforeAll(async () => {
    opened = await openBench(async (more) => {
      // Short, since some requests wait that long.
      const subject = await openPineconeSubject(
        { lagWrites: 2 },
        { consistency_wait_ms: 30 },
        { mode: 'vector', ...more },
      );
      pinecone = subject.pinecone;
      return subject;
    });
  });
  afterAll(() => opened?.subject.close());
  const bench = (): Bench => {
    if (opened === undefined) throw new Error('pinecone did not open');
    return opened;
  };

  rightsSuite(bench, SOME);

  it('[Decision 14] [SPEC Errors not_found] a record out of reach cannot be told from one that was never made, with a consistency token or without', async () => {
    const { subject, door } = bench();
    const master = subject.as(bearer(door.admit('master')));
    // A record so new that the gateway may have to wait before it knows whether it exists.
    const added = await master.tell('POST', '/memories', { user_id: 'ben', content: 'coffee' });
    const { id } = added.body as { id: string };
    const token = added.headers.get('x-consistency-token') ?? '';
    expect(token).not.toBe('');
    await pinecone.settle();
    // From now on the gateway knows that all of it is visible.
    await master.ask(master.byId(id), {}, { 'x-consistency-token': token });
    const never =
      id.slice(0, -4) +
      [...id.slice(-4)]
        .reverse()
        .map((one) => (one === '0' ? '1' : '0'))
        .join('');
    expect(never).not.toBe(id);

    const HEADERS: readonly Record<string, string>[] = [{}, { 'x-consistency-token': token }];
    for (const key of STRANGERS) {
      const { ask, tell, byId } = subject.as(bearer(door.admit('stranger', key)));
      for (const headers of HEADERS) {
        const observe = async (one: string) => {
          await pinecone.resetCalls();
          const replies = [
            await ask(byId(one), {}, headers),
            await tell('PATCH', byId(one), { content: 'changed' }, headers),
            await tell('PATCH', byId(one), { scope: 'coding/x' }, headers),
            await tell('DELETE', byId(one), undefined, headers),
          ];
          return {
            replies: replies.map(({ status, body, headers: given }) => ({
              status,
              error: { ...(body as { error: object }).error, request_id: '' },
              headers: [...given].filter(([name]) => name !== 'x-request-id'),
            })),
            // The number of attempts varies.
            asked: new Set((await pinecone.calls()).map(({ operation }) => operation)),
          };
        };
        expect(await observe(id), JSON.stringify({ key, headers })).toEqual(await observe(never));
      }
    }
    expect(await master.get(id)).toEqual(added.body);
    // Nor can one that was just deleted.
    await master.remove(id);
    const stranger = subject.as(bearer(door.admit('stranger', { grants: ['*:*'], users: ['ana'] })));
    const [gone, unknown] = await Promise.all(
      [id, never].map((one) => stranger.ask(stranger.byId(one), {}, { 'x-consistency-token': token })),
    );
    expect([...(gone?.headers.keys() ?? [])]).toEqual([...(unknown?.headers.keys() ?? [])]);
    expect([gone?.status, unknown?.status]).toEqual([404, 404]);
  });
});
