/** The package as npm packs it. */
export const TARBALL = process.env.TEST_TARBALL ?? '';
export const NO_TARBALL = 'TEST_TARBALL names no file made by npm pack; installing it takes the npm registry';

/** Kills what `npx` or a shell has started. */
export function endGroup(group: number): void {
  try {
    process.kill(group, 'SIGKILL');
  } catch {
    // It has already ended.
  }
}
