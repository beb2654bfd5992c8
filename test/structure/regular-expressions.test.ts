import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { Linter } from 'eslint';
import regexp from 'eslint-plugin-regexp';
import { describe, expect, it } from 'vitest';

/** What runs, built before the tests are: the linter reads JavaScript. */
const BUILT = join(import.meta.dirname, '../../dist');
const FILES = ['src', 'providers'].flatMap((folder) =>
  readdirSync(join(BUILT, folder), { recursive: true, encoding: 'utf8' })
    .filter((file) => file.endsWith('.js'))
    .map((file) => join(folder, file)),
);

const RULES: Linter.RulesRecord = {
  'regexp/no-super-linear-backtracking': ['error', { report: 'potential' }],
  'regexp/no-super-linear-move': ['error', { report: 'potential' }],
  'regexp/no-dupe-disjunctions': ['error', { report: 'interesting', reportExponentialBacktracking: 'potential' }],
  'no-restricted-syntax': [
    'error',
    {
      selector: ":matches(NewExpression, CallExpression)[callee.name='RegExp']:not([arguments.0.type='Literal'])",
      message: 'A regular expression made at run time cannot be checked: write it as a literal.',
    },
  ],
};
const linter = new Linter();
const faults = (source: string): string[] =>
  linter
    .verify(source, [{ plugins: { regexp }, rules: RULES }])
    .map(({ line, ruleId, message }) => `line ${line}, ${ruleId}: ${message.slice(0, 200)}`);

describe('regular expressions', () => {
  it('[Decision 8] are searched in all built files', () => {
    expect(FILES.length).toBeGreaterThan(100);
  });

  it.each(FILES)('[Decision 8] take linear time in %s', (file) => {
    expect(faults(readFileSync(join(BUILT, file), 'utf8'))).toEqual([]);
  });

  it.each([
    ['nested repetition', 'f(/^(?:a+)+$/);'],
    ['alternatives that share characters', 'f(/^(?:\\w|\\d)+$/);'],
    ['neighbours that share characters', 'f(/^\\d*\\.?\\d+(?:[eE]-?\\d+)?$/);'],
    ['one that is tried at every position', 'f(/T.*[+-](?:2[4-9]|[3-9]\\d|\\d{2}:?[6-9])/);'],
    ['a constructor', "f(new RegExp('^(?:a+)+$', 'u'));"],
    ['a call', "f(RegExp('x+x+y'));"],
    ['one that cannot be checked', 'f(new RegExp(pattern));'],
  ])('[Decision 8] the linter sees %s', (_, source) => {
    expect(faults(source)).not.toEqual([]);
  });
});
