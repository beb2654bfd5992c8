import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';

const ROOT = join(import.meta.dirname, '../..');
const text = readFileSync(join(ROOT, 'SECURITY.md'), 'utf8');
/** The rows of the threat model and of the budgets: what is tried or kept, and the tests that show what stops or bounds it. */
const threats = text
  .split('\n')
  .filter((line) => line.startsWith('| ') && !/^\| (?:Who \||What \||---)/.test(line))
  .map((line) => line.split('|').map((cell) => cell.trim()))
  .map((cells) => ({ tried: cells.at(-4), shown: cells.at(-2) ?? '' }))
  .map(({ tried, shown }) => ({
    tried,
    tests: [...shown.matchAll(/`([^`]+)`/g)].map(([, path = '']) => path),
  }));

describe('the threat model', () => {
  it('is found', () => {
    expect(threats.length).toBeGreaterThan(10);
  });

  it.each(threats)('shows what stops whoever would $tried', ({ tests }) => {
    expect(tests.length).toBeGreaterThan(0);
    for (const path of tests) {
      expect(path).toMatch(/^test\/.*\.(?:test|suite)\.ts$/);
      expect(existsSync(join(ROOT, path)), path).toBe(true);
    }
  });

  it('is about two pages long', () => {
    expect(text.split('\n').length).toBeLessThan(110);
  });
});
