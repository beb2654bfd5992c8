import { execFileSync } from 'node:child_process';
import { prepareEmptyPostgres } from './empty-postgres.ts';

/** Builds once before all tests, so that what runs from `dist` is never older than the source beside it. */
export default async function prepare(): Promise<void> {
  execFileSync('npm', ['run', '--silent', 'build'], { stdio: 'inherit' });
  await prepareEmptyPostgres();
}
