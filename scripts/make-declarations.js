// Writes the declarations of the package's two entries: all that is public, in one file each.
import { execFileSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';

const ENTRIES = ['src/provider', 'test/conformance/provider-tests'];
const PUBLIC_ENTRY = ["'#provider'", "'omp-gateway/provider'"];
const ROOMS = Object.fromEntries(
  ['contract', 'toolbox', 'ranking', 'collections'].map((room) => [`#${room}`, `src/${room}/index`]),
);

const folder = mkdtempSync('node_modules/.declarations-');
try {
  const options = ['--declaration', '--emitDeclarationOnly', '--outDir', folder];
  execFileSync('npx', ['--no-install', 'tsc', '-p', 'tsconfig.build.json', ...options], { stdio: 'inherit' });
  for (const entry of ENTRIES) writeFileSync(`dist/${entry}.d.ts`, bundle(entry));
} finally {
  rmSync(folder, { recursive: true });
}

/** What a module exports, with all that it refers to. */
function bundle(entry) {
  const { statements, exported, imports } = read(entry);
  const wanted = new Set([...exported].sort());
  const text = [];
  for (const name of wanted) {
    const statement = statements.get(name);
    const words = statement.replaceAll(/\/\*\*.*?\*\//gs, '').matchAll(/[A-Za-z_]\w*/g);
    for (const [word] of words) if (statements.has(word)) wanted.add(word);
    text.push(statement);
  }
  return [...imports, ...text, `export { ${[...exported].sort().join(', ')} };\n`].join('\n');
}

/** The statements of a module and of those that it exports from, by name; the names that it exports; its public imports. */
function read(module) {
  const statements = new Map();
  const exported = new Set();
  const imports = [];
  for (const statement of statementsOf(readFileSync(join(folder, `${module}.d.ts`), 'utf8'))) {
    const [, names, from] = /(?:^|\n)(?:export|import) (?:type )?(?:\{(.*?)\}|\*) from '(.*)';$/s.exec(statement) ?? [];
    if (from === '#provider') imports.push(statement.replace(...PUBLIC_ENTRY));
    else if (from?.startsWith('#') || from?.startsWith('.')) {
      const other = read(ROOMS[from] ?? join(dirname(module), from.replace(/\.ts$/, '')));
      for (const [name, text] of other.statements) {
        if (statements.has(name) && statements.get(name) !== text) throw new Error(`${name} is declared twice`);
        statements.set(name, text);
      }
      const picked = names?.split(',').flatMap((name) => name.trim().replace(/^type /, '') || []) ?? other.exported;
      if (/(?:^|\n)export /.test(statement)) for (const name of picked) exported.add(name);
    } else if (from === undefined) {
      const [, isExported, name] =
        /(?:^|\n)(export )?(?:declare )?(?:class|const|function|interface|type|let) (\w+)/.exec(statement) ?? [];
      if (name === undefined) continue;
      // What is exported stands at the end; a value outside of a module needs `declare`.
      statements.set(name, statement.replace(/(^|\n)export (?=declare|interface|type)/, '$1'));
      if (isExported) exported.add(name);
    }
  }
  return { statements, exported, imports };
}

/** The compiler begins each statement, and the comment before it, in the first column. Comments within a list would be there too. */
function statementsOf(text) {
  const statements = [];
  let comment = '';
  for (const part of text.trimEnd().split(/\n(?=\/\*\*|[a-z])/)) {
    if (part.startsWith('/**')) comment = `${part}\n`;
    else {
      statements.push(comment + part);
      comment = '';
    }
  }
  return statements;
}
