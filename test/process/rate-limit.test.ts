import { randomUUID } from 'node:crypto';
import { beforeEach, describe, expect, onTestFinished, test } from 'vitest';
import { randomName } from '../postgres/store.ts';
import { onServer } from '../rate-limit/postgres-table.ts';
import type { Reply } from '../support/client.ts';
import { NO_SERVER, SERVER_URL } from '../support/postgres-server.ts';
import { freshUser } from '../support/subject.ts';
import { type RunningGateway, startGateway } from './gateway.ts';

const MINUTE = 60_000;

/** How often the gateways found the shared store failing, and how often they found it back. */
function outages(gateways: readonly RunningGateway[]) {
  const lines = (pattern: RegExp) => gateways.flatMap(({ printed }) => [...printed().matchAll(pattern)]).length;
  return { begun: lines(/the rate limit store fails/g), ended: lines(/the rate limit store answers again/g) };
}

/**
 * What happens within one window of the gateways' clock, which is this machine's: begun in the first half of a minute,
 * and once more, with another client, should that minute have ended meanwhile. On a machine so busy that the store is
 * found too slow, each gateway limits on its own and says so: that is no answer to the question, and asked again too.
 */
async function withinOneWindow<Result>(
  gateways: readonly RunningGateway[],
  work: (address: string) => Promise<Result>,
): Promise<Result> {
  for (let client = 1; ; client++) {
    const elapsed = Date.now() % MINUTE;
    if (elapsed > MINUTE / 2) await new Promise((resolve) => setTimeout(resolve, MINUTE - elapsed + 10));
    const window = Math.floor(Date.now() / MINUTE);
    const before = outages(gateways);
    const result = await work(`192.0.2.${client}`);
    const shared = before.begun === before.ended && outages(gateways).begun === before.begun;
    if (shared && Math.floor(Date.now() / MINUTE) === window) return result;
  }
}

const LIMIT = 30;
const REPLICAS = 4;

/** Four gateways on one database; both are gone after the test. */
async function startReplicas(env: Readonly<Record<string, string>> = {}): Promise<RunningGateway[]> {
  const OMP_POSTGRES_SCHEMA = randomName();
  onTestFinished(() => onServer(SERVER_URL, `drop schema ${OMP_POSTGRES_SCHEMA} cascade`));
  return Promise.all(
    Array.from({ length: REPLICAS }, () =>
      startGateway({ env: { DATABASE_URL: SERVER_URL, OMP_POSTGRES_SCHEMA, ...env } }),
    ),
  );
}

/** The requests are sent at once, in turn to each of the gateways. */
const hammer = (
  gateways: readonly RunningGateway[],
  requests: number,
  send: (gateway: RunningGateway) => Promise<Reply>,
) => Promise.all(Array.from({ length: requests }, (_, i) => send(gateways[i % gateways.length] as RunningGateway)));

const count = (replies: readonly Reply[], status: number) => replies.filter((reply) => reply.status === status).length;

describe('four gateways on one database', () => {
  beforeEach(({ skip }) => skip(SERVER_URL === '', NO_SERVER));

  test('[Decision 17] [SPEC Limits limits.rate_limit_per_minute] enforce one limit, within one request per replica', async () => {
    const gateways = await startReplicas({
      OMP_RATE_LIMIT_PER_MINUTE: String(LIMIT),
      OMP_RATE_LIMIT_STORE: 'postgres',
      OMP_TRUSTED_PROXIES: '127.0.0.1',
    });
    for (const { client } of gateways) {
      expect((await client.capabilities()).limits).toMatchObject({ rate_limit_per_minute: LIMIT });
    }
    const user_id = freshUser();
    const replies = await withinOneWindow(gateways, (address) =>
      hammer(gateways, 5 * LIMIT, ({ client }) => client.ask('/memories', { user_id }, { 'x-forwarded-for': address })),
    );
    expect(count(replies, 200) + count(replies, 429)).toBe(replies.length);
    expect(count(replies, 200)).toBeGreaterThanOrEqual(LIMIT);
    expect(count(replies, 200)).toBeLessThanOrEqual(LIMIT + REPLICAS);
    for (const { stop } of gateways) expect(await stop()).toMatchObject({ status: 0, stderr: '' });
  });

  test('[Decision 17] [SPEC Errors unauthorized] count failed authentications together', async () => {
    const gateways = await startReplicas({
      OMP_AUTH: 'required',
      OMP_AUTH_FAILURES_PER_MINUTE: String(LIMIT),
      OMP_RATE_LIMIT_STORE: 'postgres',
      OMP_TRUSTED_PROXIES: '127.0.0.1',
    });
    const replies = await withinOneWindow(gateways, (address) =>
      hammer(gateways, 5 * LIMIT, ({ client }) =>
        client.ask('/memories', {}, { 'x-forwarded-for': address, authorization: `Bearer ${randomUUID()}` }),
      ),
    );
    expect(count(replies, 401) + count(replies, 429)).toBe(replies.length);
    expect(count(replies, 401)).toBeGreaterThanOrEqual(LIMIT);
    expect(count(replies, 401)).toBeLessThanOrEqual(LIMIT + REPLICAS);
  });

  test('make one memory of one Idempotency-Key, whoever gets it first, and answer all alike', async () => {
    const gateways = await startReplicas();
    for (let round = 0; round < 10; round++) {
      const user_id = freshUser();
      const memory = { user_id, content: `round ${round}`, scope: 'a/b', tags: ['t'] };
      const headers = { 'idempotency-key': randomUUID() };
      const replies = await hammer(gateways, 3 * REPLICAS, ({ client }) =>
        client.tell('POST', '/memories', memory, headers),
      );
      const [first] = replies;
      expect(first).toMatchObject({ status: 201, body: memory });
      for (const { status, body } of replies) expect({ status, body }).toEqual({ status: 201, body: first?.body });
      const { items } = await (gateways[0] as RunningGateway).client.list({ user_id });
      expect(items).toEqual([first?.body]);
    }
  });
});
