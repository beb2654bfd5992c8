import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { hashOf, idOf, matchesHash, newKey } from '../../src/auth/credentials.ts';

const MANY = Array.from({ length: 2_000 }, newKey);

describe('a new key', () => {
  it('has the form that the pattern for secret scanners finds in any text', () => {
    const [, pattern = ''] = /`(\\b\S+)`/.exec(readFileSync('src/auth/credentials.ts', 'utf8')) ?? [];
    const scanner = new RegExp(pattern);
    for (const { key } of MANY) {
      expect(key).toMatch(/^omp_[a-z0-9]{12}_[A-Za-z0-9_-]{43}$/);
      expect(scanner.exec(`API_KEY="${key}"; next`)?.[0]).toBe(key);
    }
    expect(scanner.test('omp_k3j2h1g0f9e8:sha256:abcdef')).toBe(false);
  });

  it('carries 32 random bytes, each bit of which is set in half of the keys', () => {
    const secrets = MANY.map(({ key }) => Buffer.from(key.slice('omp_'.length + 12 + 1), 'base64url'));
    expect(new Set(secrets.map((secret) => secret.toString('hex'))).size).toBe(MANY.length);
    for (let bit = 0; bit < 256; bit++) {
      const set = secrets.filter((secret) => ((secret[bit >> 3] as number) >> (bit & 7)) & 1).length;
      // 1,000 expected; ten standard deviations off would be 224.
      expect(Math.abs(set - 1_000)).toBeLessThan(224);
    }
  });

  it('has an id that none of the others has, of every letter and digit', () => {
    const ids = MANY.map(({ id }) => id);
    expect(new Set(ids).size).toBe(MANY.length);
    expect(new Set(ids.join('')).size).toBe(36);
  });

  it('comes with its id and hash', () => {
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

it('a hash is matched by its key alone', () => {
  const { key, hash } = newKey();
  const changed = key.slice(0, -1) + (key.endsWith('A') ? 'B' : 'A');
  expect(matchesHash(key, hash)).toBe(true);
  expect(matchesHash(changed, hash)).toBe(false);
  expect(matchesHash(newKey().key, hash)).toBe(false);
  for (const broken of ['', 'zz', hash.slice(2), `${hash}00`, key]) expect(matchesHash(key, broken)).toBe(false);
});
