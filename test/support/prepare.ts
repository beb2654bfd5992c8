import { execFileSync } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { prepareEmptyPostgres } from './empty-postgres.ts';

/**
 * Builds before all tests where the sources have changed, so that what runs from `dist` is never older than they are.
 * Files in `TEST_RUN_FOLDER` are removed after the last test.
 */
export default async function prepare(): Promise<() => void> {
  execFileSync('npm', ['run', '--silent', 'prestart'], { stdio: 'inherit' });
  await prepareEmptyPostgres();
  const folder = mkdtempSync(join(tmpdir(), 'omp-run-'));
  process.env.TEST_RUN_FOLDER = folder;
  return () => rmSync(folder, { recursive: true, force: true });
}
