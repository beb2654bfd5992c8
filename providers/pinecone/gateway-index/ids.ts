import { createHash, createHmac, randomBytes } from 'node:crypto';
import type { Options } from '../pinecone-options.ts';

/**
 * An id is `mem_` + U + T + R: U the user (24 characters), T the time of creation counted backwards (12), R random (16). In
 * byte order, which is the order of Pinecone's lists, the ids of one user stand together, newest first.
 */
const FORM = /^mem_([0-9a-v]{24})([0-9a-f]{12})([0-9a-v]{16})$/;
const LAST_MS = 2 ** 48 - 1;

/** The earliest time of creation, in milliseconds since 1970: a list looks no further back. */
export const EARLIEST_MS = Date.UTC(2025, 0, 1);

export interface Ids {
  /** U of a user: without the secret nobody can relate it to a user. */
  userPart(user_id: string): string;
  /** A new id. Throws a `RangeError` for a time that an id cannot hold. */
  make(user_id: string, created_ms: number): string;
}

/** `secret`: of the index; it never changes. */
export function createIds(secret: Uint8Array): Ids {
  const userPart = (user_id: string) =>
    base32(createHmac('sha256', secret).update(`user:${user_id}`).digest().subarray(0, 15));
  return {
    userPart,
    make(user_id, created_ms) {
      if (created_ms < EARLIEST_MS || created_ms > LAST_MS) throw new RangeError('an id cannot hold this time');
      return userPrefix(userPart(user_id)) + timePart(created_ms) + base32(randomBytes(10));
    },
  };
}

/**
 * The id of the record of a memory that has another id outside: always the same for the same memory. A time before `EARLIEST_MS`
 * becomes that one, and R keeps the order of such times.
 */
export function movedId(
  ids: Ids,
  { id, user_id, created_ms }: { readonly id: string; readonly user_id: string; readonly created_ms: number },
): string {
  const hash = createHash('sha256').update(id).digest();
  if (created_ms < EARLIEST_MS) hash.writeUInt32BE(Math.max(0, Math.floor(created_ms / 1_000)));
  return userPrefix(ids.userPart(user_id)) + timePart(Math.max(EARLIEST_MS, created_ms)) + base32(hash.subarray(0, 10));
}

/** Whether this is an id of the gateway and of this user. */
export const isIdOf = (id: string, userPart: string): boolean => parseId(id)?.userPart === userPart;

/** The parts of an id of the gateway; undefined for any other. */
export function parseId(id: string): { userPart: string; created_ms: number } | undefined {
  const [, userPart, time] = FORM.exec(id) ?? [];
  if (userPart === undefined || time === undefined) return undefined;
  return { userPart, created_ms: LAST_MS - Number.parseInt(time, 16) };
}

/** The prefix that all ids of a user have, and no others. */
export const userPrefix = (userPart: string): string => `mem_${userPart}`;

/** T of a time in milliseconds since 1970, smaller for later times. Times that an id cannot hold become the nearest one. */
export const timePart = (ms: number): string =>
  (LAST_MS - Math.min(Math.max(ms, 0), LAST_MS)).toString(16).padStart(12, '0');

/** T of an id. */
export const timeOf = (id: string): string => id.slice(28, 40);

/** The order of two ids of one user in a list: newest first; in the same millisecond by id, descending. */
export function listOrder(a: string, b: string): number {
  if (a === b) return 0;
  const [timeA, timeB] = [timeOf(a), timeOf(b)];
  return (timeA === timeB ? a > b : timeA < timeB) ? -1 : 1;
}

/** Five bits a digit, in the alphabet 0-9a-v: sorts as the bytes do. Lengths are multiples of five bytes. */
const base32 = (bytes: Buffer): string =>
  BigInt(`0x${bytes.toString('hex')}`)
    .toString(32)
    .padStart((bytes.length * 8) / 5, '0');

export interface Namespaces {
  /** The namespace of a user's records, by the user part of an id. */
  of(userPart: string): string;
  /** The namespace of the record that describes the index. */
  readonly base: string;
}

/**
 * `single`: all users in `base`. `sharded`: 32 namespaces by the first character of the user part, each with its own rate
 * limits. `per-user`: one namespace for each user.
 */
export function createNamespaces(layout: Options['layout'], base: string): Namespaces {
  const length = { single: 0, sharded: 1, 'per-user': Number.POSITIVE_INFINITY }[layout];
  return { base, of: (userPart) => (length === 0 ? base : `${base}-${userPart.slice(0, length)}`) };
}
