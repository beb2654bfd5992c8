import { request } from 'node:http';
import { beforeEach, describe, expect, it } from 'vitest';
import { OmpError } from '#contract';
import { ALL_GRANTS, type Authenticator, OPEN, type Principal } from '../../src/core/grants.ts';
import type { RateLimiter } from '../../src/core/rate-limiter.ts';
import { addressReader } from '../../src/http/admission.ts';
import { addressMatcher, isAddressOrRange, limitedAddress } from '../../src/rate-limit/addresses.ts';
import { openLimits, startLimited } from '../rate-limit/limits.ts';
import type { Reply } from '../support/client.ts';
import { expectError } from '../support/expect-error.ts';

/** The middle of a window. */
const NOW = 1_000_000 * 60_000 + 30_000;
const LIMIT = 3;

/** Accepts every credential. */
const ANY_KEY: Authenticator = {
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

/** Parses the headers of the IETF draft, and checks that the older ones are equal. */
function limitOf({ headers }: Reply) {
  const [, quota] = /^"default";q=(\d+);w=60$/.exec(headers.get('ratelimit-policy') ?? '') ?? [];
  const [, left, wait] = /^"default";r=(\d+);t=(\d+)$/.exec(headers.get('ratelimit') ?? '') ?? [];
  const older = ['limit', 'remaining', 'reset'].map((name) => headers.get(`x-ratelimit-${name}`));
  expect(older).toEqual([quota, left, wait]);
  return { quota: Number(quota), left: Number(left), wait: Number(wait) };
}

describe('[Decision 17] [SPEC Limits limits.rate_limit_per_minute] the rate limit', () => {
  let client: Awaited<ReturnType<typeof startLimited>>['client'];
  beforeEach(async () => {
    ({ client } = await limited());
  });

  it('is in the headers of every response', async () => {
    expect(limitOf(await client.ask('/memories', { user_id: 'u' }))).toEqual({ quota: 3, left: 2, wait: 31 });
    expect(limitOf(await client.ask('/memories/mem_unknown'))).toEqual({ quota: 3, left: 1, wait: 31 });
    expect(limitOf(await client.tell('POST', '/memories', {}))).toEqual({ quota: 3, left: 0, wait: 31 });
  });

  it('[SPEC Errors rate_limited] answers 429 with the time to wait and without a provider', async () => {
    for (let i = 0; i < LIMIT; i++) expect((await client.ask('/memories', { user_id: 'u' })).status).toBe(200);
    const reply = await client.ask('/memories', { user_id: 'u' });
    expect(expectError(reply, 'rate_limited')).not.toHaveProperty('provider');
    expect(limitOf(reply)).toEqual({ quota: 3, left: 0, wait: 31 });
    expect(reply.headers.get('retry-after')).toBe('31');
    // It is not executed.
    expectError(await client.tell('POST', '/memories', { content: 'x', user_id: 'u' }), 'rate_limited');
    expect((await client.ask('/memories', { user_id: 'u' }, from('192.0.2.1'))).body).toMatchObject({ items: [] });
  });

  it('[SPEC GET /capabilities] is declared, and includes public paths', async () => {
    const reply = await client.ask('/capabilities');
    expect(reply.body).toMatchObject({ limits: { rate_limit_per_minute: LIMIT } });
    expect(limitOf(reply).left).toBe(2);
    expect(limitOf(await client.ask('/openapi.json')).left).toBe(1);
    expect(limitOf(await client.ask('/memories', { user_id: 'u' })).left).toBe(0);
    expectError(await client.ask('/capabilities'), 'rate_limited');
  });

  it('[SPEC GET /healthz] excludes probes', async () => {
    for (let i = 0; i < 2 * LIMIT; i++) {
      const reply = await client.ask('/healthz');
      expect(reply.status).toBe(200);
      expect(reply.headers.get('ratelimit')).toBeNull();
    }
    expect(limitOf(await client.ask('/memories', { user_id: 'u' })).left).toBe(2);
  });

  it('is per client address without keys', async () => {
    for (let i = 0; i < LIMIT; i++) await client.ask('/memories', { user_id: 'u' }, from('192.0.2.1'));
    expectError(await client.ask('/memories', { user_id: 'u' }, from('192.0.2.1')), 'rate_limited');
    expect(limitOf(await client.ask('/memories', { user_id: 'u' }, from('192.0.2.2'))).left).toBe(2);
  });

  it('is per key, whatever the address', async () => {
    const { client } = await limited(ANY_KEY);
    const ask = (key: string, address: string) =>
      client.ask('/memories', { user_id: 'u' }, { ...from(address), 'x-api-key': key });
    for (let i = 0; i < LIMIT; i++) expect(limitOf(await ask('one', `192.0.2.${i}`)).left).toBe(LIMIT - 1 - i);
    expectError(await ask('one', '192.0.2.99'), 'rate_limited');
    expect(limitOf(await ask('other', '192.0.2.0')).left).toBe(2);
  });
});

describe('[Decision 17] without a limit', () => {
  it('[SPEC Capabilities limits.rate_limit_per_minute] there are no headers, and null is declared', async () => {
    const { client } = await startLimited({ authenticator: OPEN });
    for (const path of ['/memories?user_id=u', '/capabilities']) {
      const reply = await client.ask(path);
      expect(reply.status).toBe(200);
      expect([...reply.headers.keys()].filter((name) => name.includes('rate'))).toEqual([]);
    }
    expect((await client.capabilities()).limits).toMatchObject({ rate_limit_per_minute: null });
  });
});

/**
 * The key that a request is counted by. Requests use real connections; every address of 127.0.0.0/8 is local, so a
 * connection can come from several.
 */
async function counted(
  trusted_proxies: readonly string[],
  {
    forwarded,
    peer = '127.0.0.1',
    host,
  }: { forwarded?: string | readonly string[]; peer?: string; host?: string } = {},
): Promise<string | undefined> {
  const keys: string[] = [];
  const note = async (key: string) => {
    keys.push(key);
    return { allowed: true, remaining: 0, reset: 1 };
  };
  const requests: RateLimiter = { limit: 1, take: note };
  const rate = { requests, failures: undefined };
  const { port } = await startLimited({ authenticator: OPEN, rate, trusted_proxies }, host);
  const headers =
    forwarded === undefined ? {} : { 'x-forwarded-for': typeof forwarded === 'string' ? forwarded : [...forwarded] };
  await new Promise<void>((resolve, reject) => {
    request({ host: '127.0.0.1', port, path: '/capabilities', localAddress: peer, agent: false, headers }, (reply) => {
      reply.resume().on('end', resolve);
    })
      .on('error', reject)
      .end();
  });
  expect(keys).toHaveLength(1);
  return keys[0]?.replace(/^address:/, '');
}

describe('[Decision 17] the client address', () => {
  it('is the peer of the connection', async () => {
    expect(await counted([])).toBe('127.0.0.1');
    expect(await counted([], { peer: '127.0.0.7' })).toBe('127.0.0.7');
  });

  it('is the same on a server that also listens for IPv6', async () => {
    expect(await counted([], { host: '::' })).toBe('127.0.0.1');
    expect(await counted(['127.0.0.1'], { host: '::', forwarded: '192.0.2.1' })).toBe('192.0.2.1');
  });

  it('is not taken from untrusted headers', async () => {
    expect(await counted([], { forwarded: '192.0.2.1' })).toBe('127.0.0.1');
    expect(await counted(['10.0.0.0/8', '127.0.0.9'], { forwarded: '192.0.2.1' })).toBe('127.0.0.1');
  });

  it.for([
    ['one proxy', ['127.0.0.1'], '192.0.2.1', '192.0.2.1'],
    ['a range of proxies', ['127.0.0.0/8'], '192.0.2.1', '192.0.2.1'],
    ['a client that says it was forwarded itself', ['127.0.0.1'], '203.0.113.5, 192.0.2.1', '192.0.2.1'],
    ['two proxies', ['127.0.0.1', '10.0.0.0/8'], '203.0.113.5, 192.0.2.1, 10.1.2.3', '192.0.2.1'],
    ['a proxy it does not know in between', ['127.0.0.1', '10.0.0.1'], '192.0.2.1, 10.0.0.2, 10.0.0.1', '10.0.0.2'],
    ['nothing but proxies', ['127.0.0.1', '10.0.0.0/8'], '10.0.0.2, 10.0.0.1', '10.0.0.2'],
    ['several header lines', ['127.0.0.1', '10.0.0.1'], ['203.0.113.5, 192.0.2.1', '10.0.0.1'], '192.0.2.1'],
    ['spaces', ['127.0.0.1'], '  192.0.2.1\t', '192.0.2.1'],
    ['a port', ['127.0.0.1'], '192.0.2.1:4711', '192.0.2.1'],
    ['IPv6', ['127.0.0.1'], '2001:DB8:0:1::9', '2001:db8:0:1::/64'],
    ['IPv6 with a port', ['127.0.0.1'], '[2001:db8:0:1::9]:4711', '2001:db8:0:1::/64'],
    ['IPv4 written as IPv6', ['127.0.0.1'], '::ffff:192.0.2.1', '192.0.2.1'],
    ['an IPv6 proxy', ['127.0.0.1', '2001:db8::/32'], '192.0.2.1, 2001:db8:5::1', '192.0.2.1'],
    ['no header', ['127.0.0.1'], undefined, '127.0.0.1'],
    ['an empty header', ['127.0.0.1'], '', '127.0.0.1'],
    ['garbage', ['127.0.0.1'], 'unknown', '127.0.0.1'],
    ['garbage behind a proxy', ['127.0.0.1', '10.0.0.1'], '192.0.2.1, _hidden, 10.0.0.1', '10.0.0.1'],
    ['garbage that a client wrote', ['127.0.0.1'], '<script>, 999.1.1.1, 192.0.2.1', '192.0.2.1'],
  ] as const)('behind trusted proxies is the first untrusted one: %s', async ([, proxies, forwarded, expected]) => {
    expect(await counted(proxies, forwarded === undefined ? {} : { forwarded })).toBe(expected);
  });

  it('is the same for all requests without a connection', () => {
    const inProcess = { env: {}, req: { header: () => '192.0.2.1' } } as unknown as Parameters<
      ReturnType<typeof addressReader>
    >[0];
    expect(addressReader(['127.0.0.1'])(inProcess)).toBe('unknown');
  });

  it.for([
    ['192.0.2.1', '192.0.2.1'],
    ['::1', '0:0:0:0::/64'],
    ['::', '0:0:0:0::/64'],
    ['2001:db8::', '2001:db8:0:0::/64'],
    ['2001:0db8:0000:0001:0002:0003:0004:0005', '2001:db8:0:1::/64'],
    ['2001:db8:0:1:ffff::', '2001:db8:0:1::/64'],
    ['64:ff9b::192.0.2.1', '64:ff9b:0:0::/64'],
  ] as const)('has one limit per IPv6 /64: %s', ([address, expected]) => {
    expect(limitedAddress(address)).toBe(expected);
  });
});

describe('[Decision 17] trusted proxies', () => {
  it.for(['127.0.0.1', '0.0.0.0/0', '10.0.0.0/8', '10.1.2.3/32', '::1', '::/0', 'fd00::/8', '::ffff:10.0.0.1'])(
    'accept %s',
    (text) => {
      expect(isAddressOrRange(text)).toBe(true);
      expect(() => addressMatcher([text])).not.toThrow();
    },
  );

  it.for([
    ...['', '1.2.3.4 ', 'proxy', 'localhost', '10.0.0', '10.0.0.0/', '10.0.0.0/33', '10.0.0.0/-1', '10.0.0.0/8/8'],
    ...['::/129', '/8', '[::1]'],
  ])('reject "%s"', (text) => {
    expect(isAddressOrRange(text)).toBe(false);
    expect(() => addressMatcher([text])).toThrow('is not an address');
  });

  it.for([
    ['10.0.0.0/8', '10.255.0.1', true],
    ['10.0.0.0/8', '11.0.0.1', false],
    ['10.0.0.1', '10.0.0.1', true],
    ['10.0.0.1', '10.0.0.2', false],
    ['::ffff:10.0.0.1', '10.0.0.1', true],
    ['fd00::/8', 'fdff::1', true],
    ['fd00::/8', 'fe00::1', false],
    ['0.0.0.0/0', '2001:db8::1', false],
  ] as const)('%s and %s', ([range, address, expected]) => {
    expect(addressMatcher([range])(address)).toBe(expected);
  });
});
