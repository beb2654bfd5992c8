import { randomUUID } from 'node:crypto';
import { describe, expect, onTestFinished, test } from 'vitest';
import type { Reply } from '../support/client.ts';
import { freshUser } from '../support/subject.ts';
import { type RunningGateway, startGateway } from './gateway.ts';
import { withinOneWindow } from './one-window.ts';
import { answering, DATABASES, workersOf } from './workers.ts';

const LIMIT = 30;
const WORKERS = '3';

const together = (requests: number, send: () => Promise<Reply>) => Promise.all(Array.from({ length: requests }, send));
const count = (replies: readonly Reply[], status: number) => replies.filter((reply) => reply.status === status).length;

describe('several workers on an embedded database, which count in their primary process,', () => {
  const start = async (env: Readonly<Record<string, string>> = {}): Promise<RunningGateway> =>
    startGateway({
      env: { ...(await DATABASES.embedded?.make()), OMP_WORKERS: WORKERS, OMP_TRUSTED_PROXIES: '127.0.0.1', ...env },
    });

  test('[Decision 17] [SPEC Limits limits.rate_limit_per_minute] enforce one limit', async () => {
    const gateway = await start({ OMP_RATE_LIMIT_PER_MINUTE: String(LIMIT) });
    const user_id = freshUser();
    const replies = await withinOneWindow([gateway], (address) =>
      together(5 * LIMIT, () => gateway.client.ask('/memories', { user_id }, { 'x-forwarded-for': address })),
    );
    expect(answering(gateway)).toEqual([1, 2, 3]);
    expect(count(replies, 200)).toBe(LIMIT);
    expect(count(replies, 429)).toBe(4 * LIMIT);
  });

  test('[Decision 17] [SPEC Errors unauthorized] count failed authentications together', async () => {
    const gateway = await start({ OMP_AUTH: 'required', OMP_AUTH_FAILURES_PER_MINUTE: String(LIMIT) });
    const replies = await withinOneWindow([gateway], (address) =>
      together(5 * LIMIT, () =>
        gateway.client.ask('/memories', {}, { 'x-forwarded-for': address, authorization: `Bearer ${randomUUID()}` }),
      ),
    );
    expect(count(replies, 401)).toBe(LIMIT);
    expect(count(replies, 429)).toBe(4 * LIMIT);
  });

  test('make one memory of one Idempotency-Key, whichever gets it first, and answer all alike', async () => {
    const { client } = await start();
    for (let round = 0; round < 10; round++) {
      const user_id = freshUser();
      const headers = { 'idempotency-key': randomUUID() };
      const replies = await together(12, () =>
        client.tell('POST', '/memories', { user_id, content: `round ${round}` }, headers),
      );
      const first = replies[0]?.body;
      for (const { status, body } of replies) expect({ status, body }).toEqual({ status: 201, body: first });
      expect((await client.list({ user_id })).items).toEqual([first]);
    }
  });

  test('go on, each limiting on its own, while the primary process does not answer', async () => {
    const gateway = await start({ OMP_RATE_LIMIT_PER_MINUTE: '1000000' });
    const user_id = freshUser();
    const list = () => gateway.client.ask('/memories', { user_id });
    // Connections that stay open: new ones are handed out by the primary process.
    await together(30, list);
    const primary = gateway.child.pid as number;
    process.kill(primary, 'SIGSTOP');
    onTestFinished(() => void process.kill(primary, 'SIGCONT'));
    // The database is the primary's too: only what needs none is answered.
    const replies = await together(6, () => gateway.client.ask('/capabilities'));
    expect(count(replies, 200)).toBe(replies.length);
    process.kill(primary, 'SIGCONT');
    await gateway.output(/the store of rate limits fails: every process limits on its own/);
    while (!/the store of rate limits answers again/.test(gateway.printed())) expect((await list()).status).toBe(200);
    expect(workersOf(gateway)).toHaveLength(Number(WORKERS));
  });
});
