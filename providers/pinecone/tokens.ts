import { createHmac, timingSafeEqual } from 'node:crypto';

/** What a client carries from replica to replica: for a few namespaces, the log sequence number of its latest write. */
export interface Tokens {
  /** The client's token with this write added, at most 172 characters of base64url. */
  add(token: string | undefined, namespace: string, lsn: number): string;
  /** The number a token names for a namespace. Undefined: none, or the token is not one of ours. */
  read(token: string | undefined, namespace: string): number | undefined;
}

/*
 * Version (1) · seal (16) · per namespace, latest write first: name (6) and number (8).
 *
 * Names are keyed hashes: a namespace may carry the user part of ids. Sealed, so that nobody can make a gateway wait for
 * a number that was never given; a token of another index, or of before its secret changed, is taken for none.
 */
const VERSION = 1;
const SEAL_BYTES = 16;
const NAME_BYTES = 6;
const ENTRY_BYTES = NAME_BYTES + 8;
const HEAD_BYTES = 1 + SEAL_BYTES;
const MAX_NAMESPACES = 8;

export function createTokens(secret: Uint8Array): Tokens {
  const digest = (label: string, data: string | Uint8Array) =>
    createHmac('sha256', secret).update(label).update(data).digest();
  const seal = (entries: Uint8Array) => digest('token:', entries).subarray(0, SEAL_BYTES);
  const nameOf = (namespace: string) => digest('namespace:', namespace).subarray(0, NAME_BYTES);

  const open = (token: string | undefined): Buffer[] => {
    const bytes = Buffer.from(token ?? '', 'base64url');
    const entries = bytes.subarray(HEAD_BYTES);
    const ours =
      bytes.length >= HEAD_BYTES &&
      bytes[0] === VERSION &&
      entries.length % ENTRY_BYTES === 0 &&
      entries.length <= MAX_NAMESPACES * ENTRY_BYTES &&
      timingSafeEqual(bytes.subarray(1, HEAD_BYTES), seal(entries));
    if (!ours) return [];
    return Array.from({ length: entries.length / ENTRY_BYTES }, (_, index) =>
      entries.subarray(index * ENTRY_BYTES, (index + 1) * ENTRY_BYTES),
    );
  };
  const numberOf = (entries: readonly Buffer[], name: Buffer): number | undefined => {
    const entry = entries.find((candidate) => candidate.subarray(0, NAME_BYTES).equals(name));
    return entry && Number(entry.readBigUInt64BE(NAME_BYTES));
  };

  return {
    read: (token, namespace) => (token === undefined ? undefined : numberOf(open(token), nameOf(namespace))),
    add(token, namespace, lsn) {
      const name = nameOf(namespace);
      const before = open(token);
      const entry = Buffer.alloc(ENTRY_BYTES);
      name.copy(entry);
      entry.writeBigUInt64BE(BigInt(Math.max(lsn, numberOf(before, name) ?? 0)), NAME_BYTES);
      const others = before.filter((candidate) => !candidate.subarray(0, NAME_BYTES).equals(name));
      const entries = Buffer.concat([entry, ...others].slice(0, MAX_NAMESPACES));
      return Buffer.concat([Uint8Array.of(VERSION), seal(entries), entries]).toString('base64url');
    },
  };
}
