import { execFileSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join, resolve } from 'node:path';
import { prepareEmptyPostgres } from './empty-postgres.ts';

/** Everything the build reads. */
const INPUTS = [
  'src',
  'providers',
  'scripts',
  'console',
  'clients/typescript/src',
  'test/conformance/provider-tests.ts',
  'tsconfig.json',
  'tsconfig.build.json',
  'package.json',
  'package-lock.json',
];
const BUILT = [
  'dist/src/main.js',
  'dist/embedded-database.json',
  'dist/matmul.wasm',
  'assets/swagger-ui/LICENSE',
  'assets/console/index.html',
];
/** Names what the last build was made of. Not in `dist`, which is packed. */
const STAMP = resolve('node_modules/.cache/omp-gateway-test/built');

const filesOf = (path: string): string[] =>
  statSync(path).isDirectory()
    ? readdirSync(path, { recursive: true, encoding: 'utf8' }).map((file) => join(path, file))
    : [path];

function fingerprint(): string {
  const hash = createHash('sha256').update(resolve());
  for (const file of INPUTS.flatMap(filesOf).sort()) hash.update(`${file} ${statSync(file).mtimeMs}\n`);
  return hash.digest('hex');
}

/**
 * Builds before all tests where the sources have changed, so that what runs from `dist` is never older than they are.
 * Files in `TEST_RUN_FOLDER` are removed after the last test.
 */
export default async function prepare(): Promise<() => void> {
  const sources = fingerprint();
  const isBuilt = [...BUILT, STAMP].every((file) => existsSync(file)) && readFileSync(STAMP, 'utf8') === sources;
  if (!isBuilt) {
    execFileSync('npm', ['run', '--silent', 'build'], { stdio: 'inherit' });
    mkdirSync(dirname(STAMP), { recursive: true });
    // A rename, since the file may be hard-linked to the one of another checkout.
    writeFileSync(`${STAMP}.${process.pid}`, sources);
    renameSync(`${STAMP}.${process.pid}`, STAMP);
  }
  await prepareEmptyPostgres();
  const folder = mkdtempSync(join(tmpdir(), 'omp-run-'));
  process.env.TEST_RUN_FOLDER = folder;
  return () => rmSync(folder, { recursive: true, force: true });
}
