// Whether `dist` and `assets` were built of the present sources: `npm start` builds only when they were not.
//   node scripts/built.js           status 0: they were; 1: they must be built, and says so
//   node scripts/built.js begin     before a build
//   node scripts/built.js end       after it
// Contents decide, since git and npm change the times of files.
import { createHash } from 'node:crypto';
import {
  chmodSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { join, resolve } from 'node:path';

process.chdir(resolve(import.meta.dirname, '..'));

/** Everything that the build reads. */
const INPUTS = [
  'src',
  'providers',
  'scripts',
  'console',
  'clients/typescript/src',
  'test/conformance',
  'test/support',
  'tsconfig.json',
  'tsconfig.build.json',
  'package.json',
  'package-lock.json',
];
/** The last file of each step. */
const OUTPUTS = [
  'dist/src/main.js',
  'dist/test/conformance/provider-tests.d.ts',
  'assets/console/index.html',
  'assets/swagger-ui/LICENSE',
  'dist/matmul.wasm',
  'dist/embedded-database.json',
];
const STAMP = 'dist/.built-of';
const BEGUN = `${STAMP}.begun`;

const [step] = process.argv.slice(2);
if (step === 'begin') {
  // A build that does not end leaves no stamp.
  rmSync(STAMP, { force: true });
  mkdirSync('dist', { recursive: true });
  // What the sources hold now: the build may miss what changes meanwhile. First removed, since it may be a hard link.
  rmSync(BEGUN, { force: true });
  writeFileSync(BEGUN, fingerprint());
} else if (step === 'end') {
  // The command of `npm link`.
  chmodSync('dist/src/main.js', 0o755);
  // None: another build at the same time took it.
  if (existsSync(BEGUN)) renameSync(BEGUN, STAMP);
} else if ([...OUTPUTS, STAMP].every((file) => existsSync(file)) && readFileSync(STAMP, 'utf8') === fingerprint())
  console.error('omp-gateway: the build is up to date');
else {
  console.error(
    'omp-gateway: building, because this is the first start or the sources have changed (some 15 seconds) …',
  );
  process.exitCode = 1;
}

function fingerprint() {
  const hash = createHash('sha256');
  for (const file of INPUTS.flatMap(filesOf).sort()) hash.update(`${file}\0`).update(readFileSync(file)).update('\0');
  return hash.digest('hex');
}

function filesOf(path) {
  if (!statSync(path).isDirectory()) return [path];
  const files = readdirSync(path, { recursive: true, withFileTypes: true }).filter((entry) => entry.isFile());
  return files.map(({ parentPath, name }) => join(parentPath, name));
}
