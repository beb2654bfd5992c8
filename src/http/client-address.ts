import type { Context } from 'hono';
import { addressMatcher, limitedAddress, plainAddress } from '../rate-limit/addresses.ts';
import type { Env } from './call.ts';

/** Of a request that came without a connection, or whose connection is gone. */
const NO_ADDRESS = 'unknown';

/**
 * Tells from where a request comes, for counting: an IPv4 address or an IPv6 /64. That is the connection's other end;
 * where that is one of the trusted proxies (addresses and ranges), it is whom `X-Forwarded-For` names, read from the
 * right past other trusted ones. What stands further left was written by anybody and is not looked at; of an entry
 * that is no address, the proxy that passed it on is taken. Throws when a proxy is neither address nor range.
 */
export function addressReader(trustedProxies: readonly string[]): (c: Context<Env>) => string {
  const isTrusted = addressMatcher(trustedProxies);
  return (c) => {
    let address = plainAddress(c.env?.incoming?.socket.remoteAddress ?? '');
    if (address === undefined) return NO_ADDRESS;
    if (isTrusted(address)) {
      for (const entry of (c.req.header('x-forwarded-for') ?? '').split(',').reverse()) {
        const forwarded = plainAddress(withoutPort(entry.trim()));
        if (forwarded === undefined) break;
        address = forwarded;
        if (!isTrusted(address)) break;
      }
    }
    return limitedAddress(address);
  };
}

/** Some proxies add the port: `192.0.2.1:4711`, `[2001:db8::1]:4711`. */
const withoutPort = (entry: string): string =>
  /^(?:\[([^\]]+)\]|([\d.]+))(?::\d+)?$/.exec(entry)?.slice(1).join('') ?? entry;
