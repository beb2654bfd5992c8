import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type Pinecone, startPinecone } from '../pinecone-server/start.ts';
import { openSubject } from '../support/subject.ts';
import { type Bench, openBench, totalOf } from './bench.ts';
import { bearer, clientWith } from './callers.ts';
import { BINDINGS, GRANTS } from './cases.ts';
import { rightsSuite } from './rights.suite.ts';
import type { Key } from './rule.ts';
import { tallied } from './suite.ts';

/** Each grant with one binding, in turn: the rule itself is tried in full on memory with emulated scopes. */
const SOME = GRANTS.map((grants, index) => ({ grants, bindings: [BINDINGS[index % BINDINGS.length] ?? null] }));

/** Who may see nothing of ben's, granted nothing, everything, and something. */
const STRANGERS: readonly Key[] = [[], ['*:*'], ['*:coding/*'], ['read:*', 'write:coding']].map((grants) => ({
  grants,
  users: ['ana', 'cleo'],
}));

/**
 * The access matrix, reduced, on a Pinecone that shows the last two writes late: what a key may see and do is the same where
 * the backend knows neither scopes nor its own latest writes.
 */
describe('access matrix, pinecone with emulated scopes', () => {
  let pinecone: Pinecone;
  let opened: Bench | undefined;
  beforeAll(async () => {
    pinecone = await startPinecone({ lagWrites: 2 });
    opened = await openBench(
      (more) =>
        openSubject({
          provider: 'pinecone',
          // Short, since some requests wait for it to the end.
          options: { api_key: 'test', index_host: pinecone.url, consistency_wait_ms: 30 },
          mode: 'vector',
          ...more,
        }),
      { audit: false, keys: false },
    );
  });
  afterAll(async () => {
    if (opened) console.log(`access matrix, pinecone: ${totalOf(opened)} cases, ${tallied(opened)}`);
    await opened?.subject.close();
    await pinecone?.close();
  });
  const bench = (): Bench => {
    if (opened === undefined) throw new Error('pinecone did not open');
    return opened;
  };

  rightsSuite(bench, SOME);

  it('[Decision 14] [SPEC Errors not_found] a record out of reach cannot be told from one that was never made, with a consistency token or without', async () => {
    const { subject, door } = bench();
    const master = clientWith(subject, bearer(door.admit('master')));
    // Made a moment ago: the gateway may have to wait for such a record before it knows that there is none.
    const added = await master.tell('POST', '/memories', { user_id: 'ben', content: 'coffee' });
    const { id } = added.body as { id: string };
    const token = added.headers.get('x-consistency-token') ?? '';
    expect(token).not.toBe('');
    await pinecone.settle();
    // The gateway knows from now on that all of it is visible.
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
      const { ask, tell, byId } = clientWith(subject, bearer(door.admit('stranger', key)));
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
            // How often it looked while it waited depends on luck.
            asked: new Set((await pinecone.calls()).map(({ operation }) => operation)),
          };
        };
        expect(await observe(id), JSON.stringify({ key, headers })).toEqual(await observe(never));
      }
    }
    expect(await master.get(id)).toEqual(added.body);
    // Nor can one that was just deleted.
    await master.remove(id);
    const stranger = clientWith(subject, bearer(door.admit('stranger', { grants: ['*:*'], users: ['ana'] })));
    const [gone, unknown] = await Promise.all(
      [id, never].map((one) => stranger.ask(stranger.byId(one), {}, { 'x-consistency-token': token })),
    );
    expect([...(gone?.headers.keys() ?? [])]).toEqual([...(unknown?.headers.keys() ?? [])]);
    expect([gone?.status, unknown?.status]).toEqual([404, 404]);
  });
});
