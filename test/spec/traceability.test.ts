import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { CASES } from '../../src/conformance/cases/index.ts';
import { CLAUSES } from './clauses.ts';

const TESTS = join(import.meta.dirname, '..');
/** Folders whose tests define the product: each of their names, or of the groups they are in, begins with its clause. */
const DEFINING = /^(conformance|providers|http|differential)\//;
const TITLE =
  /^( *)(?:.*\W)?(describe|it|test)(?:\.(?:each|for|skipIf|runIf)\((?:[^()]|\([^()]*\))*\))?\(\s*(['"`])((?:\\.|(?!\3)[\s\S])*)\3/gm;
const CLAUSE = /\[((?:SPEC|Decision) [^\]\n$]+)\]/g;
/** A table of cases may carry the clause of each row; its test is then named after the row alone. */
const NAMED_BY_ROW = '%s';

interface TestFile {
  readonly file: string;
  /** Of each test, outermost group first. */
  readonly titles: readonly (readonly string[])[];
  readonly clauses: readonly string[];
}

const testFiles = (): TestFile[] =>
  readdirSync(TESTS, { recursive: true, encoding: 'utf8' })
    .filter((file) => /\.(test|suite)\.ts$/.test(file))
    .map((file) => {
      const source = readFileSync(join(TESTS, file), 'utf8').replace(/^\s*(\/\/|\/?\*).*$/gm, '');
      const clauses = [...source.matchAll(CLAUSE)].flatMap(([, clause = '']) => clausesIn(clause));
      return { file, titles: titlesIn(source), clauses };
    });

/** `Decision 13|14` cites both. */
function clausesIn(cited: string): string[] {
  const last = cited.lastIndexOf(' ') + 1;
  return cited
    .slice(last)
    .split('|')
    .map((name) => cited.slice(0, last) + name);
}

/** Our formatter sees to it that what stands in a group is indented further. */
function titlesIn(source: string): string[][] {
  const titles: string[][] = [];
  let groups: { readonly depth: number; readonly title: string }[] = [];
  for (const [, { length: depth } = '', kind, , title = ''] of source.matchAll(TITLE)) {
    groups = groups.filter((group) => group.depth < depth);
    if (kind === 'describe') groups.push({ depth, title });
    else titles.push([...groups.map((group) => group.title), title]);
  }
  return titles;
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

  it('finds the tests', () => {
    expect(files.flatMap(({ titles }) => titles).length).toBeGreaterThan(100);
  });

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

  it('begins every defining test with its clause', () => {
    const nameless = files
      .filter(({ file }) => DEFINING.test(file))
      .flatMap(({ file, titles }) => titles.map((path) => ({ file, path })))
      .filter(({ path }) => !path.some((title) => /^\[(SPEC|Decision) [^\]]+\]/.test(title) || title === NAMED_BY_ROW));
    expect(nameless).toEqual([]);
  });
});
