import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';

const TESTS = join(import.meta.dirname, '..');
// Chaos has the machine to itself.
const FILES = readdirSync(TESTS, { recursive: true, encoding: 'utf8' }).filter(
  (file) =>
    file.endsWith('.ts') &&
    !file.includes('node_modules/') &&
    !file.startsWith('chaos/') &&
    !import.meta.filename.endsWith(file),
);

/** Limits that a busy machine reaches, and what to use instead; where one may stand nevertheless. */
const LIMITS: readonly { what: RegExp; instead: string; allowed?: string }[] = [
  { what: /\bvi\.wait(For|Until)\(/, instead: '`eventually`', allowed: 'support/eventually.ts' },
  {
    what: /^\s*\}, [\d_]{3,}\);$|\b(it|test|describe)\b.*\{ timeout:|^\s*timeout: [\dA-Z_]+,$/m,
    instead: 'testTimeout of the config',
  },
  { what: /\.poll\(.*\btimeout: /, instead: 'expect.poll of the config' },
  { what: /\bAbortSignal\.timeout\(/, instead: '`holdTimers`, or a controller', allowed: 'support/ledger.ts' },
];

describe('no test has a time limit of its own', () => {
  it.each(LIMITS)('$what', ({ what, instead, allowed }) => {
    const found = FILES.filter((file) => what.test(readFileSync(join(TESTS, file), 'utf8')));
    expect(found, `use ${instead}`).toEqual(allowed === undefined ? [] : [allowed]);
  });
});
