import { describe, expect, it } from 'vitest';
import { OmpError, providerError } from '#contract';
import { ALL_GRANTS } from '../../src/core/grants.ts';
import { type Authenticator, OPEN, type Principal } from '../../src/core/principal.ts';
import { startLimited } from '../rate-limit/limited-server.ts';
import { openLimits } from '../rate-limit/limits.ts';
import type { Client } from '../support/client.ts';
import { expectError } from '../support/expect-error.ts';

const GOOD: Principal = { id: 'key:good', app: 'good', users: null, grants: ALL_GRANTS };
const LIMIT = 3;

/** One key is good; what was verified is noted. */
function lock() {
  const verified: (string | undefined)[] = [];
  const authenticator: Authenticator = {
    async authenticate(credential) {
      verified.push(credential);
      if (credential === 'broken') throw providerError('postgres', 'the database cannot be reached');
      if (credential !== 'good') throw new OmpError('unauthorized', 'no such key');
      return GOOD;
    },
  };
  return { authenticator, verified };
}

async function locked(failures_per_minute = LIMIT) {
  const { authenticator, verified } = lock();
  const clock = { time: 1_000_000 * 60_000 };
  const now = () => clock.time;
  const { failures } = await openLimits(
    { store: 'memory' },
    { requests_per_minute: undefined, failures_per_minute, now },
  );
  const { client } = await startLimited({
    authenticator,
    rate: { requests: undefined, failures },
    trusted_proxies: ['127.0.0.1'],
  });
  return { client, verified, clock };
}

type Headers = Record<string, string>;
const list = (client: Client, headers: Headers = {}) => client.ask('/memories', { user_id: 'u' }, headers);
const bearer = (key: string): Headers => ({ authorization: `Bearer ${key}` });

describe('[SPEC Authentication 2] [Decision 13] the credential', () => {
  it.for([
    ['Bearer', { authorization: 'Bearer good' }],
    ['Bearer in any case', { authorization: 'bEARER good' }],
    ['Bearer after several spaces', { authorization: 'Bearer   good' }],
    ['X-API-Key', { 'x-api-key': 'good' }],
    ['both, equal', { authorization: 'Bearer good', 'x-api-key': 'good' }],
    ['both, of which Bearer counts', { authorization: 'Bearer good', 'x-api-key': 'of another gateway on the way' }],
    ['X-API-Key behind a proxy with its own scheme', { authorization: 'Basic cHJveHk6cHJveHk=', 'x-api-key': 'good' }],
  ] as const)('is taken from %s', async ([, headers]) => {
    const { client, verified } = await locked();
    expect((await list(client, headers)).status).toBe(200);
    expect(verified).toEqual(['good']);
  });

  it.for([
    ['none', {}],
    ['a wrong key', { authorization: 'Bearer wrong' }],
    ['a wrong X-API-Key', { 'x-api-key': 'wrong' }],
    ['an empty X-API-Key', { 'x-api-key': '' }],
    ['Bearer without a key', { authorization: 'Bearer' }],
    ['Bearer without a key, next to a good one', { authorization: 'Bearer', 'x-api-key': 'good' }],
    ['Bearer with more than a key', { authorization: 'Bearer good good' }],
    ['a wrong Bearer next to a good X-API-Key', { authorization: 'Bearer wrong', 'x-api-key': 'good' }],
    ['another scheme', { authorization: 'Basic good' }],
    ['no scheme', { authorization: 'good' }],
    ['Bearer grown together with the key', { authorization: 'Bearergood' }],
    ['a key in other letters', { 'x-api-key': 'GOOD' }],
  ] as const)('[SPEC Authentication 5] [SPEC Errors unauthorized] is refused with 401: %s', async ([, headers]) => {
    const { client } = await locked();
    const reply = await list(client, headers);
    expect(expectError(reply, 'unauthorized')).not.toHaveProperty('provider');
    expect(reply.headers.get('www-authenticate')).toMatch(/^Bearer\b/);
  });

  it('[SPEC Authentication 3] may be anything where none is needed, and nobody is asked about it', async () => {
    const asked: string[] = [];
    const note = async (key: string) => {
      asked.push(key);
      return { allowed: true, remaining: 0, reset: 1 };
    };
    const rate = { requests: undefined, failures: { limit: 1, take: note } };
    const { client } = await startLimited({ authenticator: OPEN, rate });
    for (const headers of [{}, bearer('whatever'), { 'x-api-key': 'whatever' }, { authorization: 'Bearer' }]) {
      expect((await list(client, headers)).status).toBe(200);
    }
    expect(asked).toEqual([]);
  });
});

describe('[Decision 17] [SPEC Errors rate_limited] failed authentications', () => {
  it('over the limit are told 429 with the time to wait', async () => {
    const { client, clock } = await locked();
    for (let i = 0; i < LIMIT; i++) expectError(await list(client, bearer(`guess ${i}`)), 'unauthorized');
    const reply = await list(client, bearer('guess'));
    expect(expectError(reply, 'rate_limited')).not.toHaveProperty('provider');
    const wait = Number(reply.headers.get('retry-after'));
    expect(wait).toBeGreaterThan(0);
    clock.time += wait * 1_000;
    expectError(await list(client, bearer('guess')), 'unauthorized');
  });

  it('do not lock out who has a good credential, seen before or not', async () => {
    const { client, verified } = await locked();
    for (let i = 0; i <= LIMIT; i++) await list(client, bearer('guess'));
    expect((await list(client, bearer('good'))).status).toBe(200);
    expect(verified.at(-1)).toBe('good');
    expectError(await list(client, bearer('guess')), 'rate_limited');
  });

  it('of requests without a credential are counted apart: they lock out nobody', async () => {
    const { client } = await locked();
    const anonymous = () => client.ask('/robots.txt');
    for (let i = 0; i < LIMIT; i++) expectError(await anonymous(), 'unauthorized');
    expectError(await anonymous(), 'rate_limited');
    expect((await list(client, bearer('good'))).status).toBe(200);
    for (let i = 0; i < LIMIT; i++) expectError(await list(client, bearer('guess')), 'unauthorized');
    expectError(await list(client, bearer('guess')), 'rate_limited');
  });

  it('are those of one address', async () => {
    const { client } = await locked();
    const from = (address: string) => ({ ...bearer('guess'), 'x-forwarded-for': address });
    for (let i = 0; i < LIMIT; i++) expectError(await list(client, from(`2001:db8:1:2::${i}`)), 'unauthorized');
    expectError(await list(client, from('2001:db8:1:2:3::4')), 'rate_limited');
    expectError(await list(client, from('2001:db8:1:3::')), 'unauthorized');
  });

  it('sent at once are not all answered: no more than the limit learn that they were wrong', async () => {
    const { client } = await locked();
    const replies = await Promise.all(Array.from({ length: 20 }, (_, i) => list(client, bearer(`guess ${i}`))));
    expect(replies.filter(({ status }) => status === 401)).toHaveLength(LIMIT);
    expect(replies.filter(({ status }) => status === 429)).toHaveLength(20 - LIMIT);
  });

  it('are no successes, and no troubles of the backend', async () => {
    const { client } = await locked();
    for (let i = 0; i < 2 * LIMIT; i++) {
      expect((await list(client, bearer('good'))).status).toBe(200);
      expectError(await list(client, bearer('broken')), 'provider_error');
    }
  });

  it('may be any number where they are not limited', async () => {
    const { client } = await locked(0);
    for (let i = 0; i < 40; i++) expectError(await list(client, bearer('guess')), 'unauthorized');
  });

  it('[SPEC Authentication 4] leave the public paths open', async () => {
    const { client } = await locked();
    for (let i = 0; i <= LIMIT; i++) await list(client, bearer('guess'));
    for (const path of ['/healthz', '/capabilities', '/openapi.json']) {
      expect((await client.ask(path, {}, bearer('guess'))).status, path).toBe(200);
    }
  });
});
