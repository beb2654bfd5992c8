import { describe, expect, it } from 'vitest';
import { type ConfiguredKey, configuredKeysSchema, hashedKey, toHashedKey } from '../../src/auth/configured-keys.ts';
import { newKey } from '../../src/auth/credentials.ts';

const fresh = newKey();
const GOOD: ConfiguredKey = { name: 'editor', key: toHashedKey(fresh), grants: ['read:coding/*'] };
const mistakes = (...keys: readonly object[]): string[] =>
  configuredKeysSchema.safeParse(keys).error?.issues.map(({ path, message }) => `${path.join('.')} ${message}`) ?? [];

it('reads id and hash back', () => {
  expect(hashedKey(GOOD.key)).toEqual({ id: fresh.id, hash: fresh.hash });
  expect(() => hashedKey(fresh.key)).toThrow();
});

it('[Decision 13] takes keys with everything that may be said of them', () => {
  const all = { ...GOOD, users: ['ana', 'b o b'], grants: ['*:*', 'delete:a/?'], expires_at: '2027-01-01' };
  expect(configuredKeysSchema.parse([all])).toEqual([all]);
  expect(mistakes(GOOD, { ...GOOD, name: 'other', key: toHashedKey(newKey()) })).toEqual([]);
  for (const expires_at of ['2027-01-01T00:00:00Z', '2027-01-01T12:30:00+02:00']) {
    expect(mistakes({ ...GOOD, expires_at })).toEqual([]);
  }
});

describe('refuses', () => {
  it.each<[string, object, string]>([
    ['no name', { name: '' }, '0.name'],
    ['a name with control characters', { name: 'a\nb' }, '0.name'],
    ['a name with a space at its end', { name: 'a ' }, '0.name'],
    ['a long name', { name: 'a'.repeat(101) }, '0.name'],
    ['a hash alone', { key: fresh.hash }, '0.key'],
    ['a hash that is too short', { key: GOOD.key.slice(0, -1) }, '0.key'],
    ['no grant', { grants: [] }, '0.grants'],
    ['a grant of an unknown action', { grants: ['read:*', 'admin:*'] }, '0.grants.1'],
    ['a list of no users', { users: [] }, '0.users'],
    ['a blank user', { users: [' '] }, '0.users.0'],
    ['a time without its offset', { expires_at: '2027-01-01T00:00:00' }, '0.expires_at'],
    ['a day that does not exist', { expires_at: '2027-02-30' }, '0.expires_at'],
    ['a word it does not know', { scopes: [] }, '0'],
  ])('%s', (_, change, path) => {
    const found = mistakes({ ...GOOD, ...change });
    expect(found).toHaveLength(1);
    expect(found[0]?.split(' ')[0]).toBe(path);
  });

  it('a second key of the same name or id', () => {
    const other = toHashedKey({ id: fresh.id, hash: newKey().hash });
    expect(mistakes(GOOD, { ...GOOD, key: toHashedKey(newKey()) })).toEqual(['1.name is the same as in entry 1']);
    expect(mistakes(GOOD, { ...GOOD, name: 'other', key: other })).toEqual(['1.key is the same as in entry 1']);
  });

  it('the key itself, says what to do, and does not repeat it', () => {
    const [message = '', ...more] = mistakes({ ...GOOD, key: fresh.key });
    expect(more).toEqual([]);
    expect(message).toContain('omp-gateway keys create NAME --print');
    expect(message).toContain('not the key itself');
    expect(message).not.toContain(fresh.key.slice(-43));
  });
});
