import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { CASES } from '../../src/conformance/cases/index.ts';
import { CLAUSES } from './clauses.ts';

const TESTS = join(import.meta.dirname, '..');
const CLAUSE = /\[((?:SPEC|Decision) [^\]\n$]+)\]/g;
interface TestFile {
  readonly file: string;
  readonly clauses: readonly string[];
}

const testFiles = (): TestFile[] =>
  readdirSync(TESTS, { recursive: true, encoding: 'utf8' })
    .filter((file) => /\.(test|suite)\.ts$/.test(file))
    .map((file) => {
      const source = readFileSync(join(TESTS, file), 'utf8').replace(/^\s*(\/\/|\/?\*).*$/gm, '');
      const clauses = [...source.matchAll(CLAUSE)].flatMap(([, clause = '']) => clausesIn(clause));
      return { file, clauses };
    });

/** `Decision 13|14` cites both. */
function clausesIn(cited: string): string[] {
  const last = cited.lastIndexOf(' ') + 1;
  return cited
    .slice(last)
    .split('|')
    .map((name) => cited.slice(0, last) + name);
}

/** The cases of the kit, which `test/conformance/kit.suite.ts` runs on every provider. */
const KIT = {
  file: 'src/conformance/cases',
  clauses: Object.values(CASES).flatMap((cases) =>
    cases.flatMap((one) => one.clauses.map((clause) => `SPEC ${clause}`)),
  ),
};

describe('every clause has its test', () => {
  const files = testFiles();
  const cited = new Set([...files, KIT].flatMap(({ clauses }) => clauses));

  it('cites every clause at least once', () => {
    const uncited = Object.entries(CLAUSES).filter(([clause, covered]) => covered === true && !cited.has(clause));
    expect(uncited.map(([clause]) => clause)).toEqual([]);
  });

  it('cites no clause that does not exist', () => {
    const unknown = [...files, KIT].flatMap(({ file, clauses }) =>
      clauses.filter((clause) => CLAUSES[clause] === undefined).map((clause) => `${file}: ${clause}`),
    );
    expect(unknown).toEqual([]);
  });

  it('lists no clause as untested that a test cites', () => {
    expect([...cited].filter((clause) => typeof CLAUSES[clause] === 'string')).toEqual([]);
  });
});
