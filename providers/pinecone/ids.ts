import { createHmac, randomBytes } from 'node:crypto';
import type { Ids } from './parts.ts';

/**
 * An id is `mem_` + U + T + R: U the user (24), T the time of its making counted backwards (12), R chance (16). In byte
 * order, which is that of the service's lists, the ids of one user stand together, newest first.
 */
const FORM = /^mem_([0-9a-v]{24})([0-9a-f]{12})([0-9a-v]{16})$/;
const LAST_MS = 2 ** 48 - 1;

/** Nothing is older, in milliseconds since 1970: a list need not look further back. */
export const EARLIEST_MS = Date.UTC(2025, 0, 1);

/** `secret`: the index's own, for ever. Without it nobody can tell whose id it is, or test a guess. */
export function createIds(secret: Uint8Array): Ids {
  const userPart = (user_id: string) =>
    base32(createHmac('sha256', secret).update(`user:${user_id}`).digest().subarray(0, 15));
  return {
    userPart,
    make(user_id, created_ms) {
      if (created_ms < EARLIEST_MS || created_ms > LAST_MS) throw new RangeError('no memory is made at such a time');
      return userPrefix(userPart(user_id)) + timePart(created_ms) + base32(randomBytes(10));
    },
  };
}

/** What an id of ours tells; undefined for any other. */
export function parseId(id: string): { userPart: string; created_ms: number } | undefined {
  const [, userPart, time] = FORM.exec(id) ?? [];
  if (userPart === undefined || time === undefined) return undefined;
  return { userPart, created_ms: LAST_MS - Number.parseInt(time, 16) };
}

/** What all ids of a user, and no others, begin with. */
export const userPrefix = (userPart: string): string => `mem_${userPart}`;

/** T of a moment in milliseconds since 1970: later moments are smaller. Moments no id can name become the nearest that one can. */
export const timePart = (ms: number): string =>
  (LAST_MS - Math.min(Math.max(ms, 0), LAST_MS)).toString(16).padStart(12, '0');

/** T of an id. */
export const timeOf = (id: string): string => id.slice(28, 40);

/** The order of two ids of one user in a list: newest first, of one millisecond by id descending. */
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
