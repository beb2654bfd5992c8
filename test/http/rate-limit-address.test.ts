import { request } from 'node:http';
import { describe, expect, it } from 'vitest';
import { OPEN } from '../../src/core/principal.ts';
import type { RateLimiter } from '../../src/core/rate-limiter.ts';
import { addressReader } from '../../src/http/admission.ts';
import { addressMatcher, isAddressOrRange, limitedAddress } from '../../src/rate-limit/addresses.ts';
import { startLimited } from '../rate-limit/limited-server.ts';

/**
 * What a request is counted as, found out by a limiter that only notes it. Requests come over real connections; every
 * address of 127.0.0.0/8 is one of this machine, so a connection can come from several.
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
  it('is that of the connection', async () => {
    expect(await counted([])).toBe('127.0.0.1');
    expect(await counted([], { peer: '127.0.0.7' })).toBe('127.0.0.7');
  });

  it('is the same one on a server that also listens for IPv6', async () => {
    expect(await counted([], { host: '::' })).toBe('127.0.0.1');
    expect(await counted(['127.0.0.1'], { host: '::', forwarded: '192.0.2.1' })).toBe('192.0.2.1');
  });

  it('is not what a client says of itself', async () => {
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
  ] as const)(
    'behind trusted proxies is the first that is not one of them: %s',
    async ([, proxies, forwarded, expected]) => {
      expect(await counted(proxies, forwarded === undefined ? {} : { forwarded })).toBe(expected);
    },
  );

  it('is one and the same for requests that have no connection', () => {
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
  ] as const)('counts an owner of many addresses as one: %s', ([address, expected]) => {
    expect(limitedAddress(address)).toBe(expected);
  });
});

describe('[Decision 17] trusted proxies', () => {
  it.for(['127.0.0.1', '0.0.0.0/0', '10.0.0.0/8', '10.1.2.3/32', '::1', '::/0', 'fd00::/8', '::ffff:10.0.0.1'])(
    'may be given as %s',
    (text) => {
      expect(isAddressOrRange(text)).toBe(true);
      expect(() => addressMatcher([text])).not.toThrow();
    },
  );

  it.for([
    '',
    'proxy',
    'localhost',
    '10.0.0',
    '10.0.0.0/',
    '10.0.0.0/33',
    '10.0.0.0/-1',
    '10.0.0.0/8/8',
    '::/129',
    '/8',
    '1.2.3.4 ',
    '[::1]',
  ])('may not be given as "%s"', (text) => {
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
