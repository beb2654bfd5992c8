import { pick, pickSkewed, randomFrom, seedOf } from './random.ts';

/** A user of the benchmark. The number determines the user's name and memories in every store. */
export interface User {
  readonly id: string;
  readonly number: number;
  readonly memories: number;
}

/** How many users there are of each size, of a million memories: ten thousand users in all. The rest are small. */
const TIERS: readonly (readonly [memories: number, users: number])[] = [
  [100_000, 1],
  [50_000, 2],
  [20_000, 5],
  [10_000, 6],
  [5_000, 10],
  [2_000, 50],
  [1_000, 100],
];
const MILLION = 1_000_000;
const USERS = 10_000;

/** The user whose searches are compared between a store and one a hundred times smaller; has the same memories in both. */
export const HUNDRED: User = { id: 'user-of-100', number: 0, memories: 100 };

/**
 * The users of a store with this number of memories: the share of each tier in a million, and the rest over small users, whose
 * sizes fall off like those of cities, from 200 down to 1 at a million.
 */
export function usersOf(memories: number): User[] {
  const users: User[] = [HUNDRED];
  let left = memories - HUNDRED.memories;
  const add = (size: number) => {
    users.push({ id: `user-${users.length}-of-${size}`, number: users.length, memories: size });
    left -= size;
  };
  const share = memories / MILLION;
  // A small store has none of the larger tiers: only what there would be at least one of.
  for (const [size, count] of TIERS) for (let i = 0; i < Math.floor(count * share); i++) add(size);
  const small = Math.max(1, Math.round(USERS * share) - users.length);
  const weights = Array.from({ length: small }, (_, rank) => 1 / (rank / small + 0.25));
  let weight = weights.reduce((sum, each) => sum + each, 0);
  for (const each of weights) {
    add(Math.round((left * each) / weight));
    weight -= each;
  }
  return users;
}

/** One memory, without what depends on its store. */
export interface Draft {
  readonly content: string;
  readonly scope: string | null;
  readonly tags: readonly string[];
  /** The clauses of its text and vector, and the share of the second. */
  readonly parts: readonly [first: number, second: number];
  /** A unique word at the end of the text. */
  readonly detail: string | null;
  readonly seed: number;
}

const SCOPES = [
  'work',
  'work/projects',
  'work/people',
  'home',
  'home/family',
  'health',
  'travel/plans',
  'coding/preferences',
];
const TAGS = ['preference', 'fact', 'plan', 'person', 'event', 'todo', 'health', 'travel', 'secret', 'archived'];
/** Names and numbers: the rare words of a language. */
const DETAILS = 20_000;

/** The `n`th memory of a user: the same in every run and every store. */
export function draftOf(user: User, n: number, clauses: readonly string[]): Draft {
  const seed = seedOf(user.number, n);
  const random = randomFrom(seed);
  const parts = [0, 1].map(() => Math.floor(random() ** 1.5 * clauses.length)) as [number, number];
  const detail = random() < 0.25 ? `ref${Math.floor(random() ** 3 * DETAILS)}` : null;
  return {
    content: `${clauses[parts[0]]}; ${clauses[parts[1]]}${detail === null ? '' : `, ${detail}`}`,
    scope: random() < 0.7 ? `${pickSkewed(random, SCOPES)}/${Math.floor(random() ** 2 * 40)}` : null,
    tags: random() < 0.5 ? [pickSkewed(random, TAGS), ...(random() < 0.3 ? [pick(random, TAGS)] : [])] : [],
    parts,
    detail,
    seed,
  };
}

/** The owner of every memory in order of time, users mixed. */
export function ownersInTime(users: readonly User[]): Uint32Array {
  const owners = new Uint32Array(users.reduce((sum, { memories }) => sum + memories, 0));
  let next = 0;
  for (const [index, { memories }] of users.entries()) {
    owners.fill(index, next, next + memories);
    next += memories;
  }
  const random = randomFrom(owners.length);
  for (let i = owners.length - 1; i > 0; i--) {
    const j = Math.floor(random() * (i + 1));
    const other = owners[j] as number;
    owners[j] = owners[i] as number;
    owners[i] = other;
  }
  return owners;
}
