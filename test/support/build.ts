import { execFileSync } from 'node:child_process';

/** Builds once before all tests, so that what runs from `dist` is never older than the source beside it. */
export default function build(): void {
  execFileSync('npm', ['run', '--silent', 'build'], { stdio: 'inherit' });
}
