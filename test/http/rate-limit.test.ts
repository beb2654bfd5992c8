import { beforeEach, describe, expect, it } from 'vitest';
import { OmpError } from '#contract';
import { ALL_GRANTS } from '../../src/core/grants.ts';
import { type Authenticator, OPEN, type Principal } from '../../src/core/principal.ts';
import { startLimited } from '../rate-limit/limited-server.ts';
import { openLimits } from '../rate-limit/limits.ts';
import type { Reply } from '../support/client.ts';
import { expectError } from '../support/expect-error.ts';

/** Middle of a window, and nothing used before. */
const NOW = 1_000_000 * 60_000 + 30_000;
const LIMIT = 3;

/** Every credential is somebody. */
const EVERYBODY: Authenticator = {
  async authenticate(credential): Promise<Principal> {
    if (credential === undefined) throw new OmpError('unauthorized', 'a key is needed');
    return { id: `key:${credential}`, app: credential, users: null, grants: ALL_GRANTS };
  },
};

const limited = async (authenticator = OPEN) => {
  const { requests } = await openLimits({ store: 'memory' }, { requests_per_minute: LIMIT, now: () => NOW });
  return startLimited({ authenticator, rate: { requests, failures: undefined }, trusted_proxies: ['127.0.0.1'] });
};
const from = (address: string) => ({ 'x-forwarded-for': address });

/** The headers as the drafts and the older convention spell them, parsed. */
function told({ headers }: Reply) {
  const [, quota] = /^"default";q=(\d+);w=60$/.exec(headers.get('ratelimit-policy') ?? '') ?? [];
  const [, left, wait] = /^"default";r=(\d+);t=(\d+)$/.exec(headers.get('ratelimit') ?? '') ?? [];
  const older = ['limit', 'remaining', 'reset'].map((name) => headers.get(`x-ratelimit-${name}`));
  expect(older).toEqual([quota, left, wait]);
  return { quota: Number(quota), left: Number(left), wait: Number(wait) };
}

describe('[Decision 17] [SPEC Limits limits.rate_limit_per_minute] the limit of requests', () => {
  let client: Awaited<ReturnType<typeof startLimited>>['client'];
  beforeEach(async () => {
    ({ client } = await limited());
  });

  it('is told on every answer, whatever it says', async () => {
    expect(told(await client.ask('/memories', { user_id: 'u' }))).toEqual({ quota: 3, left: 2, wait: 31 });
    expect(told(await client.ask('/memories/mem_unknown'))).toEqual({ quota: 3, left: 1, wait: 31 });
    expect(told(await client.tell('POST', '/memories', {}))).toEqual({ quota: 3, left: 0, wait: 31 });
  });

  it('[SPEC Errors rate_limited] answers what is over it 429, with the time to wait and without a provider', async () => {
    for (let i = 0; i < LIMIT; i++) expect((await client.ask('/memories', { user_id: 'u' })).status).toBe(200);
    const reply = await client.ask('/memories', { user_id: 'u' });
    expect(expectError(reply, 'rate_limited')).not.toHaveProperty('provider');
    expect(told(reply)).toEqual({ quota: 3, left: 0, wait: 31 });
    expect(reply.headers.get('retry-after')).toBe('31');
  });

  it('changes nothing for what is refused', async () => {
    for (let i = 0; i < LIMIT; i++) await client.ask('/memories', { user_id: 'u' });
    expectError(await client.tell('POST', '/memories', { content: 'x', user_id: 'u' }), 'rate_limited');
    const reply = await client.ask('/memories', { user_id: 'u' }, from('192.0.2.1'));
    expect(reply.body).toMatchObject({ items: [] });
  });

  it('[SPEC GET /capabilities] is declared, and holds for public paths too', async () => {
    const reply = await client.ask('/capabilities');
    expect(reply.body).toMatchObject({ limits: { rate_limit_per_minute: LIMIT } });
    expect(told(reply).left).toBe(2);
    expect(told(await client.ask('/openapi.json')).left).toBe(1);
    expect(told(await client.ask('/memories', { user_id: 'u' })).left).toBe(0);
    expectError(await client.ask('/capabilities'), 'rate_limited');
  });

  it('[SPEC GET /healthz] leaves probes alone', async () => {
    for (let i = 0; i < 2 * LIMIT; i++) {
      const reply = await client.ask('/healthz');
      expect(reply.status).toBe(200);
      expect(reply.headers.get('ratelimit')).toBeNull();
    }
    expect(told(await client.ask('/memories', { user_id: 'u' })).left).toBe(2);
  });

  it('is that of each client address where nobody has a key', async () => {
    for (let i = 0; i < LIMIT; i++) await client.ask('/memories', { user_id: 'u' }, from('192.0.2.1'));
    expectError(await client.ask('/memories', { user_id: 'u' }, from('192.0.2.1')), 'rate_limited');
    expect(told(await client.ask('/memories', { user_id: 'u' }, from('192.0.2.2'))).left).toBe(2);
  });

  it('is that of each key, wherever it is used from', async () => {
    const { client } = await limited(EVERYBODY);
    const ask = (key: string, address: string) =>
      client.ask('/memories', { user_id: 'u' }, { ...from(address), 'x-api-key': key });
    for (let i = 0; i < LIMIT; i++) expect(told(await ask('one', `192.0.2.${i}`)).left).toBe(LIMIT - 1 - i);
    expectError(await ask('one', '192.0.2.99'), 'rate_limited');
    expect(told(await ask('other', '192.0.2.0')).left).toBe(2);
  });
});

describe('[Decision 17] without a limit', () => {
  it('[SPEC Capabilities limits.rate_limit_per_minute] no header speaks of one, and null is declared', async () => {
    const { client } = await startLimited({ authenticator: OPEN });
    for (const path of ['/memories?user_id=u', '/capabilities']) {
      const reply = await client.ask(path);
      expect(reply.status).toBe(200);
      expect([...reply.headers.keys()].filter((name) => name.includes('rate'))).toEqual([]);
    }
    expect((await client.capabilities()).limits).toMatchObject({ rate_limit_per_minute: null });
  });
});
