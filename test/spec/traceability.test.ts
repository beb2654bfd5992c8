import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { CLAUSES } from './clauses.ts';

const TESTS = join(import.meta.dirname, '..');
/** Folders whose tests define the product: each of their names begins with the clause it stands for. */
const DEFINING = /^(conformance|providers|http|differential)\//;
const TEST_NAME =
  /\b(?:it|test)(?:\.(?:each|for|skipIf|runIf)\((?:[^()]|\([^()]*\))*\))?\(\s*(['"`])((?:\\.|(?!\1)[\s\S])*)\1/g;
const CLAUSE = /\[((?:SPEC|Decision) [^\]\n]+)\]/g;
/** A table of cases may carry the clause of each row; its test is then named after the row alone. */
const NAMED_BY_ROW = '%s';

interface TestFile {
  readonly file: string;
  readonly names: readonly string[];
  readonly clauses: readonly string[];
}

const testFiles = (): TestFile[] =>
  readdirSync(TESTS, { recursive: true, encoding: 'utf8' })
    .filter((file) => /\.(test|suite)\.ts$/.test(file))
    .map((file) => {
      const source = readFileSync(join(TESTS, file), 'utf8').replace(/^\s*(\/\/|\/?\*).*$/gm, '');
      return {
        file,
        names: [...source.matchAll(TEST_NAME)].map(([, , name = '']) => name),
        clauses: [...source.matchAll(CLAUSE)].map(([, clause = '']) => clause),
      };
    });

describe('every clause has its test', () => {
  const files = testFiles();
  const cited = new Set(files.flatMap(({ clauses }) => clauses));

  it('finds the tests', () => {
    expect(files.flatMap(({ names }) => names).length).toBeGreaterThan(100);
  });

  it('cites every clause at least once', () => {
    const uncited = Object.entries(CLAUSES).filter(([clause, covered]) => covered === true && !cited.has(clause));
    expect(uncited.map(([clause]) => clause)).toEqual([]);
  });

  it('cites no clause that does not exist', () => {
    const unknown = files.flatMap(({ file, clauses }) =>
      clauses.filter((clause) => CLAUSES[clause] === undefined).map((clause) => `${file}: ${clause}`),
    );
    expect(unknown).toEqual([]);
  });

  it('lists no clause as untested that a test cites', () => {
    expect([...cited].filter((clause) => typeof CLAUSES[clause] === 'string')).toEqual([]);
  });

  it('begins every defining test with its clause', () => {
    const nameless = files
      .filter(({ file }) => DEFINING.test(file))
      .flatMap(({ file, names }) => names.map((name) => ({ file, name })))
      .filter(({ name }) => !/^\[(SPEC|Decision) [^\]]+\]/.test(name) && name !== NAMED_BY_ROW);
    expect(nameless).toEqual([]);
  });
});
