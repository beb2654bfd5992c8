import { posix } from 'node:path';
import { describe, expect, it } from 'vitest';
import packageJson from '../../package.json' with { type: 'json' };
import { anchors, documents, exists, prose, read } from './markdown.ts';

const DOCUMENTS = documents();

/** What npm publishes. */
const PACKAGED = ['README.md', 'LICENSE', ...packageJson.files];
const isPackaged = (path: string): boolean => PACKAGED.some((entry) => path === entry || path.startsWith(`${entry}/`));

const linksIn = (text: string): string[] =>
  [...prose(text).matchAll(/\]\((?!https?:|mailto:)([^)\s]+)\)/g)].map(([, target = '']) => target);

/** Paths of this repository, written as code: `src/core/access.ts`. */
const PATH = /^(?:src|providers|test|bench|eval|scripts|deploy|docs)\/[\w@./-]*$/;
const pathsIn = (text: string): string[] =>
  [...prose(text).matchAll(/`([^`\n]+)`/g)]
    .flatMap(([, code = '']) => code.split(/\s+/))
    .filter((word) => PATH.test(word));

describe.each(DOCUMENTS)('%s', (file) => {
  const text = read(file);

  it('links to files and headings that exist, and a published document to published files', () => {
    const broken = linksIn(text).filter((target) => {
      const [path = '', anchor] = target.split('#');
      const page = path === '' ? file : posix.normalize(posix.join(posix.dirname(file), path));
      if (!exists(page) || (isPackaged(file) && !isPackaged(page))) return true;
      return anchor !== undefined && !anchors(read(page)).has(anchor);
    });
    expect(broken).toEqual([]);
  });

  // The pages of libraries name files of those libraries.
  it.skipIf(file.startsWith('docs/integrations/'))('names only paths that exist', () => {
    expect(pathsIn(text).filter((path) => !exists(path))).toEqual([]);
  });

  // Where the package is a dependency, npx finds it; in a container there is no command.
  it('calls the program by its name, omp-gateway', () => {
    const inProject = file === 'docs/providers.md';
    const others = text.split('\n').filter((line) => /dist\/src\/main\.js|npx omp-gateway/.test(line));
    const allowed = (line: string) => /\bexec\b|^container it is/.test(line) || (inProject && line.includes('npx'));
    expect(others.filter((line) => !allowed(line))).toEqual([]);
  });

  it('names only npm scripts that exist', () => {
    const named = [...text.matchAll(/\bnpm (?:run ([\w:-]+)|(test|start)\b)/g)].map(
      ([, run, short]) => run ?? short ?? '',
    );
    expect(named.filter((name) => !(name in packageJson.scripts))).toEqual([]);
  });
});

it('every page of docs is linked from another one', () => {
  const linked = new Set(
    DOCUMENTS.flatMap((file) =>
      linksIn(read(file)).map((target) => posix.normalize(posix.join(posix.dirname(file), target.split('#')[0] ?? ''))),
    ),
  );
  expect(DOCUMENTS.filter((file) => file.startsWith('docs/') && !linked.has(file))).toEqual([]);
});

it.each([
  ['Threat model', 'docs/security/threat-model.md'],
  ['Budgets', 'docs/security/bounds.md'],
])('every row of "%s" in %s names the test that shows it', (heading, file) => {
  const section =
    read(file)
      .split(/^## /m)
      .find((each) => each.startsWith(`${heading}\n`)) ?? '';
  const rows = section
    .split('\n')
    .filter((line) => line.startsWith('| '))
    .slice(2);
  expect(rows.length).toBeGreaterThan(10);
  expect(rows.filter((row) => !/`test\/[^`]+\.(?:test|suite)\.ts` \|$/.test(row))).toEqual([]);
});

it('every word of AGENTS.md is explained in docs/glossary.md, and the other way round', () => {
  const wordsIn = (text: string) => [...text.matchAll(/\*([a-z][\w' -]+)\*/g)].map(([, word]) => word);
  const [, words = ''] = /^## Words.*$([\s\S]*?)^## /m.exec(read('AGENTS.md')) ?? [];
  const explained = [...read('docs/glossary.md').matchAll(/^\| \*([^*]+)\* \|/gm)].map(([, word]) => word);
  expect(explained.sort()).toEqual(wordsIn(words).sort());
});
