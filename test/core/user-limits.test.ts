import { expect, it } from 'vitest';
import { backgroundCall, OmpError } from '#contract';
import { ANONYMOUS } from '../../src/core/grants.ts';
import type { Store } from '../../src/core/store.ts';
import { createUserLimits } from '../../src/core/user-limits.ts';
import { withOrigin } from '../../src/core/with-origin.ts';

const LIMITS = { memories: 10, bytes: null, adds_per_day: 5 };
const limits = createUserLimits({
  ...LIMITS,
  overrides: [
    { keys: 'importer', users: 'org-*', memories: null },
    { keys: 'importer', adds_per_day: 100 },
    { users: 'org-?', memories: 20, adds_per_day: null },
  ],
});
const key = { ...ANONYMOUS, id: 'key:k3j2h1g0f9e8', app: 'importer' };
const token = { ...ANONYMOUS, id: 'token:x', app: 'importer' };

it.each([
  [ANONYMOUS, 'ana', LIMITS],
  [ANONYMOUS, 'org-1', { memories: 20, bytes: null, adds_per_day: null }],
  [key, 'ana', { ...LIMITS, adds_per_day: 100 }],
  [key, 'org-1', { memories: null, bytes: null, adds_per_day: 100 }],
  // A token may call its subject as it likes.
  [token, 'ana', LIMITS],
])('[Decision 59] the first override that sets a limit decides it (%#)', (principal, user, expected) => {
  expect(limits.of(principal)(user)).toEqual(expected);
});

it('[Decision 59] counts rejections by limit, and no other outcome', () => {
  const { rejected, rejections } = createUserLimits({ ...LIMITS, overrides: [] });
  rejected(new OmpError('payload_too_large', 'full', { limit: 'bytes' }));
  rejected(new OmpError('payload_too_large', 'too long'));
  rejected(undefined);
  expect(rejections()).toEqual({ memories: 0, bytes: 1, adds_per_day: 0 });
});

it.each([
  ['rollback', null, null],
  // Otherwise a user would shorten contents, add others, and bring the long ones back.
  ['rollback', ['ana'], 10],
  ['restore', null, 10],
] as const)('[Decision 59] a %s of a key for the users %j has the limit %j', async (via, users, memories) => {
  let given: unknown;
  const update: Store['update'] = async (request) => {
    given = request.limits?.('ana').memories;
    return undefined;
  };
  const store = withOrigin({ update } as Store, { ...ANONYMOUS, users }, { via, version: 1 }, limits);
  await store.update?.({ ref: { id: 'mem_1', users, within: null }, patch: {} }, backgroundCall('test'));
  expect(given).toBe(memories);
});
