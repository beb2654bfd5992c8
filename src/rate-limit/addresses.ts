import { BlockList, isIP, isIPv6 } from 'node:net';

/** Whether the text is an address (`10.0.0.1`, `::1`) or a range of addresses (`10.0.0.0/8`, `fd00::/8`). */
export const isAddressOrRange = (text: string): boolean => parse(text) !== undefined;

/** Matches addresses in the form of `plainAddress`. Throws if an entry is neither an address nor a range. */
export function addressMatcher(entries: readonly string[]): (address: string) => boolean {
  // The usual case; a check of an empty list takes 3 % of a get.
  if (entries.length === 0) return () => false;
  const list = new BlockList();
  for (const entry of entries) {
    const range = parse(entry);
    if (!range) throw new Error(`"${entry}" is not an address or a range of addresses`);
    list.addSubnet(range.address, range.bits, family(range.address));
  }
  return (address) => list.check(address, family(address));
}

function parse(text: string): { address: string; bits: number } | undefined {
  const [, base = '', suffix] = /^([^/%]*)(?:\/(\d{1,3}))?$/.exec(text) ?? [];
  const address = plainAddress(base);
  if (address === undefined) return undefined;
  const max = isIPv6(address) ? 128 : 32;
  const bits = suffix === undefined ? max : Number(suffix);
  return bits <= max ? { address, bits } : undefined;
}

const family = (address: string): 'ipv4' | 'ipv6' => (isIPv6(address) ? 'ipv6' : 'ipv4');

/** The address without zone, and an IPv4-mapped one as IPv4; undefined if the text is no address. */
export function plainAddress(text: string): string | undefined {
  const [address = ''] = text.split('%', 1);
  const ipv4 = /^::ffff:(\d+\.\d+\.\d+\.\d+)$/i.exec(address)?.[1];
  return isIP(ipv4 ?? address) === 0 ? undefined : (ipv4 ?? address);
}

/** What shares a limit: an IPv4 address, or the /64 of an IPv6 address, because one client usually has all of it. */
export function limitedAddress(address: string): string {
  if (!isIPv6(address)) return address;
  // The URL parser shortens every group; `::` is expanded to zeros below.
  const [head = '', tail] = new URL(`http://[${address}]`).hostname.slice(1, -1).split('::');
  const groups = head === '' ? [] : head.split(':');
  const after = tail === undefined || tail === '' ? [] : tail.split(':');
  while (groups.length + after.length < 8) groups.push('0');
  return `${groups.concat(after).slice(0, 4).join(':')}::/64`;
}
