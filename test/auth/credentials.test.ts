import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { type ConfiguredKey, configuredKeysSchema, hashedKey, toHashedKey } from '../../src/auth/configured-keys.ts';
import { hashOf, idOf, matchesHash, newKey } from '../../src/auth/credentials.ts';

const MANY = Array.from({ length: 2_000 }, newKey);

describe('a new key', () => {
  it('matches the pattern for secret scanners', () => {
    const [, pattern = ''] = /`(\\b\S+)`/.exec(readFileSync('src/auth/credentials.ts', 'utf8')) ?? [];
    const scanner = new RegExp(pattern);
    for (const { key } of MANY) {
      expect(key).toMatch(/^omp_[a-z0-9]{12}_[A-Za-z0-9_-]{43}$/);
      expect(scanner.exec(`API_KEY="${key}"; next`)?.[0]).toBe(key);
    }
    expect(scanner.test('omp_k3j2h1g0f9e8:sha256:abcdef')).toBe(false);
  });

  it('has 32 random bytes, with each bit set in half of the keys', () => {
    const secrets = MANY.map(({ key }) => Buffer.from(key.slice('omp_'.length + 12 + 1), 'base64url'));
    expect(new Set(secrets.map((secret) => secret.toString('hex'))).size).toBe(MANY.length);
    for (let bit = 0; bit < 256; bit++) {
      const set = secrets.filter((secret) => ((secret[bit >> 3] as number) >> (bit & 7)) & 1).length;
      // 1,000 expected; ten standard deviations off would be 224.
      expect(Math.abs(set - 1_000)).toBeLessThan(224);
    }
  });

  it('has a unique id of letters and digits', () => {
    const ids = MANY.map(({ id }) => id);
    expect(new Set(ids).size).toBe(MANY.length);
    expect(new Set(ids.join('')).size).toBe(36);
  });

  it('has its id and hash', () => {
    for (const { id, key, hash } of MANY.slice(0, 10)) {
      expect(idOf(key)).toBe(id);
      expect(hash).toBe(createHash('sha256').update(key).digest('hex'));
      expect(hashOf(key)).toBe(hash);
    }
  });
});

it.each([
  '',
  'omp_',
  'sk-123',
  'omp_ABCDEFGHIJKL_x',
  `omp_abcdefghijkl_${'a'.repeat(42)}`,
  `omp_abcdefghijkl_${'a'.repeat(44)}`,
])('%j is no key', (text) => {
  expect(idOf(text)).toBeUndefined();
  expect(idOf(`${newKey().key}${text || '\n'}`)).toBeUndefined();
});

it('a hash matches only its key', () => {
  const { key, hash } = newKey();
  const changed = key.slice(0, -1) + (key.endsWith('A') ? 'B' : 'A');
  expect(matchesHash(key, hash)).toBe(true);
  expect(matchesHash(changed, hash)).toBe(false);
  expect(matchesHash(newKey().key, hash)).toBe(false);
  for (const broken of ['', 'zz', hash.slice(2), `${hash}00`, key]) expect(matchesHash(key, broken)).toBe(false);
});

const fresh = newKey();
const GOOD: ConfiguredKey = { name: 'editor', key: toHashedKey(fresh), grants: ['read:coding/*'] };
const mistakes = (...keys: readonly object[]): string[] =>
  configuredKeysSchema.safeParse(keys).error?.issues.map(({ path, message }) => `${path.join('.')} ${message}`) ?? [];

it('reads id and hash back', () => {
  expect(hashedKey(GOOD.key)).toEqual({ id: fresh.id, hash: fresh.hash });
  expect(() => hashedKey(fresh.key)).toThrow();
});

it('[Decision 13] accepts keys with all fields', () => {
  const all = { ...GOOD, users: ['ana', 'b o b'], grants: ['*:*', 'delete:a/?', 'admin:*'], expires_at: '2027-01-01' };
  expect(configuredKeysSchema.parse([all])).toEqual([all]);
  expect(mistakes(GOOD, { ...GOOD, name: 'other', key: toHashedKey(newKey()) })).toEqual([]);
  for (const expires_at of ['2027-01-01T00:00:00Z', '2027-01-01T12:30:00+02:00']) {
    expect(mistakes({ ...GOOD, expires_at })).toEqual([]);
  }
});

describe('rejects', () => {
  it.each<[string, object, string]>([
    ['no name', { name: '' }, '0.name'],
    ['a name with control characters', { name: 'a\nb' }, '0.name'],
    ['a name with a bidirectional control', { name: 'a\u202eb' }, '0.name'],
    ['a name with a zero-width space', { name: 'a\u200bb' }, '0.name'],
    ['a name with a line separator', { name: 'a\u2028b' }, '0.name'],
    ['a name with a paragraph separator', { name: 'a\u2029b' }, '0.name'],
    ['a name with a tag character', { name: 'a\u{e0041}b' }, '0.name'],
    ['a name with a space at its end', { name: 'a ' }, '0.name'],
    ['a long name', { name: 'a'.repeat(101) }, '0.name'],
    ['a hash alone', { key: fresh.hash }, '0.key'],
    ['a hash that is too short', { key: GOOD.key.slice(0, -1) }, '0.key'],
    ['no grant', { grants: [] }, '0.grants'],
    ['a grant of an unknown action', { grants: ['read:*', 'admin:x'] }, '0.grants.1'],
    ['a list of no users', { users: [] }, '0.users'],
    ['a blank user', { users: [' '] }, '0.users.0'],
    ['a time without its offset', { expires_at: '2027-01-01T00:00:00' }, '0.expires_at'],
    ['a day that does not exist', { expires_at: '2027-02-30' }, '0.expires_at'],
    ['an unknown field', { scopes: [] }, '0'],
  ])('%s', (_, change, path) => {
    const found = mistakes({ ...GOOD, ...change });
    expect(found).toHaveLength(1);
    expect(found[0]?.split(' ')[0]).toBe(path);
  });

  it('a second key with the same name or id', () => {
    const other = toHashedKey({ id: fresh.id, hash: newKey().hash });
    expect(mistakes(GOOD, { ...GOOD, key: toHashedKey(newKey()) })).toEqual(['1.name is the same as in entry 1']);
    expect(mistakes(GOOD, { ...GOOD, name: 'other', key: other })).toEqual(['1.key is the same as in entry 1']);
  });

  it('the key itself, with advice, without repeating it', () => {
    const [message = '', ...more] = mistakes({ ...GOOD, key: fresh.key });
    expect(more).toEqual([]);
    expect(message).toContain('omp-gateway keys create NAME --print');
    expect(message).toContain('not the key itself');
    expect(message).not.toContain(fresh.key.slice(-43));
  });
});
