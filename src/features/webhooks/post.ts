import { type LookupAddress, lookup } from 'node:dns';
import { type RequestOptions, request as requestHttp } from 'node:http';
import { request as requestHttps } from 'node:https';
import { BlockList, isIP, type LookupFunction } from 'node:net';
import { type DeliveryOutcome, invalidRequest } from '#contract';
import { version } from '../../package.ts';

const NOT_GLOBAL = new BlockList();
for (const range of [
  ...['0.0.0.0/8', '10.0.0.0/8', '100.64.0.0/10', '127.0.0.0/8', '169.254.0.0/16', '172.16.0.0/12', '192.0.0.0/24'],
  ...['192.0.2.0/24', '192.88.99.0/24', '192.168.0.0/16', '198.18.0.0/15', '198.51.100.0/24', '203.0.113.0/24'],
  ...['224.0.0.0/4', '240.0.0.0/4'],
]) {
  const [network = '', bits] = range.split('/');
  NOT_GLOBAL.addSubnet(network, Number(bits), 'ipv4');
}
// Azure serves its platform (agents, DNS) to each virtual machine at this address of the public range.
NOT_GLOBAL.addAddress('168.63.129.16', 'ipv4');
// Tunnels to IPv4 addresses, protocol assignments and documentation within the global range.
for (const [network, bits] of [['2001::', 23] as const, ['2001:db8::', 32] as const, ['2002::', 16] as const]) {
  NOT_GLOBAL.addSubnet(network, bits, 'ipv6');
}
NOT_GLOBAL.addSubnet('3fff::', 20, 'ipv6');
/** All global addresses of IPv6 are in it. Mapped, translated, local and multicast ones are not. */
const GLOBAL_IPV6 = new BlockList();
GLOBAL_IPV6.addSubnet('2000::', 3, 'ipv6');

/** Whether an IP address belongs to a host on the public internet. */
export function isGlobal(address: string): boolean {
  const family = isIP(address);
  if (family === 4) return !NOT_GLOBAL.check(address, 'ipv4');
  return family === 6 && GLOBAL_IPV6.check(address, 'ipv6') && !NOT_GLOBAL.check(address, 'ipv6');
}

/** All addresses of a name. */
export type Resolve = (
  name: string,
  done: (error: NodeJS.ErrnoException | null, addresses: LookupAddress[]) => void,
) => void;

export interface PostOptions {
  /** Whether receivers may have private addresses and no TLS. */
  readonly allow_private: boolean;
  /** Default: the resolver of the system. */
  readonly resolve?: Resolve;
}

export interface Answer {
  readonly outcome: DeliveryOutcome;
  readonly status: number | null;
  /** Seconds that the receiver asks to wait; undefined: it does not say. */
  readonly retryAfter?: number | undefined;
}

export interface Post {
  /** The address as it is stored. Throws `invalid_request` that says why it is not allowed. */
  requireUrl(url: string): string;
  /**
   * Sends one request. The address is checked after its name was resolved, and is the one that is connected to. Follows no redirects, and reads
   * nothing of the answer but its status. Rejects only if the signal aborts.
   */
  send(url: string, headers: Readonly<Record<string, string>>, body: string, signal: AbortSignal): Promise<Answer>;
}

/** Deadline of a delivery, in milliseconds. */
const TIMEOUT_MS = 15_000;
/** Bytes of an answer that are read before the connection is closed. */
const MAX_ANSWER_BYTES = 16_384;
const MAX_URL = 2_048;

class AddressDenied extends Error {}

const resolveBySystem: Resolve = (name, done) => lookup(name, { all: true }, done);

export function createPost({ allow_private, resolve = resolveBySystem }: PostOptions): Post {
  const isAllowed = (address: string): boolean => allow_private || isGlobal(address);
  const schemes = allow_private ? ['https:', 'http:'] : ['https:'];
  /** A name with one forbidden address is rejected: which of them is connected to would be chance. */
  const lookupAllowed = ((name, options, done) => {
    resolve(name, (error, addresses) => {
      if (error) return done(error, []);
      const [first] = addresses;
      // Node would throw where nothing can catch it.
      if (!first) return done(new Error('the name has no address'), []);
      if (addresses.some(({ address }) => !isAllowed(address))) return done(new AddressDenied(), []);
      if (options.all) done(null, addresses);
      else done(null, first.address, first.family);
    });
  }) as LookupFunction;
  /** What no lookup tells: the scheme, and a host that is an address. */
  const isDenied = ({ protocol, hostname }: URL): boolean => {
    const literal = hostname.replace(/^\[|\]$/g, '');
    return !schemes.includes(protocol) || (isIP(literal) !== 0 && !isAllowed(literal));
  };
  return {
    requireUrl(text) {
      const url = URL.canParse(text) && text.length <= MAX_URL ? new URL(text) : undefined;
      if (!url || !schemes.includes(url.protocol)) {
        throw invalidRequest(
          `url: must be an ${allow_private ? 'http:// or ' : ''}https:// URL of at most ${MAX_URL} characters`,
        );
      }
      if (url.username !== '' || url.password !== '' || url.hash !== '')
        throw invalidRequest('url: must hold no credentials and no fragment');
      if (isDenied(url)) throw invalidRequest('url: must be a public address, unless OMP_WEBHOOK_PRIVATE is on');
      return url.href;
    },
    send(text, headers, body, signal) {
      const url = new URL(text);
      if (isDenied(url)) return Promise.resolve({ outcome: 'address_denied', status: null });
      return new Promise((settle, reject) => {
        let answer: Answer | undefined;
        const fail = (outcome: DeliveryOutcome) => {
          answer ??= { outcome, status: null };
        };
        // One connection for each attempt: a kept one would not be checked again.
        const options: RequestOptions = { method: 'POST', agent: false, lookup: lookupAllowed, signal };
        options.headers = { ...HEADERS, ...headers, 'content-length': Buffer.byteLength(body) };
        const request = (url.protocol === 'http:' ? requestHttp : requestHttps)(url, options, (response) => {
          const status = response.statusCode as number;
          answer = { outcome: outcomeOf(status), status, retryAfter: secondsOf(response.headers['retry-after']) };
          let bytes = 0;
          response.on('data', ({ length }: Buffer) => {
            bytes += length;
            if (bytes > MAX_ANSWER_BYTES) request.destroy();
          });
          response.on('error', () => {});
        });
        const timer = setTimeout(() => {
          fail('timeout');
          request.destroy();
        }, TIMEOUT_MS);
        request.on('error', (error) => {
          if (signal.aborted) reject(signal.reason);
          fail(error instanceof AddressDenied ? 'address_denied' : 'unreachable');
        });
        request.on('close', () => {
          clearTimeout(timer);
          // Also of an answer that never became one.
          fail('unreachable');
          // Not before: each attempt has one connection, however slowly the rest of its answer comes.
          settle(answer as Answer);
        });
        request.end(body);
      });
    },
  };
}

const HEADERS = {
  'content-type': 'application/json',
  accept: '*/*',
  'user-agent': `omp-gateway/${version()}`,
};

function outcomeOf(status: number): DeliveryOutcome {
  if (status >= 200 && status < 300) return 'delivered';
  return status === 410 ? 'gone' : 'rejected';
}

/** Seconds, or a date (RFC 9110, 10.2.3). */
function secondsOf(header: string | undefined): number | undefined {
  if (header === undefined || header.length > 64) return undefined;
  const seconds = /^\d{1,9}$/.test(header) ? Number(header) : (Date.parse(header) - Date.now()) / 1_000;
  return seconds >= 0 ? seconds : undefined;
}
