// Prints the test files that behave differently where a server or a packed gateway is named in TEST_*: those that read
// such a variable, or import something below test/ that does, however far away.
import { readdirSync, readFileSync } from 'node:fs';
import { dirname, join, normalize } from 'node:path';

const VARIABLE = /\bprocess\.env\.TEST_\w+/;
const IMPORT = /(?:\bfrom|\bimport)\s*\(?\s*'(\.[^']+)'/g;

const files = readdirSync('test', { recursive: true })
  .filter((file) => file.endsWith('.ts'))
  .map((file) => join('test', file));
const sources = new Map(files.map((file) => [file, readFileSync(file, 'utf8')]));

function reads(file, seen = new Set()) {
  const source = sources.get(file);
  if (source === undefined || seen.has(file)) return false;
  seen.add(file);
  if (VARIABLE.test(source)) return true;
  return [...source.matchAll(IMPORT)].some(([, path]) => reads(normalize(join(dirname(file), path)), seen));
}

const found = files.filter((file) => file.endsWith('.test.ts') && reads(file)).sort();
if (found.length === 0) throw new Error('no test needs a server: something is wrong with this script');
process.stdout.write(`${found.join('\n')}\n`);
