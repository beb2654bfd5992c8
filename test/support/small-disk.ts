import { execFileSync } from 'node:child_process';
import { appendFileSync, chownSync, mkdtempSync, rmdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { onTestFinished } from 'vitest';

export interface SmallDisk {
  readonly folder: string;
  /** Leaves no room, until it is freed. */
  fill(): void;
  free(): void;
}

/** Why there is none; empty where file systems may be mounted. */
export function noSmallDisk(): string {
  if (process.getuid?.() !== 0) return 'only root may mount a small file system';
  try {
    mount(4).unmount();
    return '';
  } catch {
    return 'this machine lets nobody mount a small file system';
  }
}

function mount(megabytes: number) {
  const folder = mkdtempSync(join(tmpdir(), 'omp-d-'));
  const unmount = () => {
    execFileSync('umount', ['--lazy', folder], { stdio: 'pipe' });
    rmdirSync(folder);
  };
  try {
    execFileSync('mount', ['-t', 'tmpfs', '-o', `size=${megabytes}m,mode=700`, 'omp-chaos', folder], { stdio: 'pipe' });
  } catch (error) {
    rmdirSync(folder);
    throw error;
  }
  return { folder, unmount };
}

/** A disk of so many megabytes, which belongs to whom is named. It does not outlive the test. */
export function mountSmallDisk(megabytes: number, { uid = 0, gid = 0 } = {}): SmallDisk {
  const { folder, unmount } = mount(megabytes);
  onTestFinished(unmount);
  chownSync(folder, uid, gid);
  const ballast = join(folder, 'ballast');
  return {
    folder,
    fill() {
      for (const size of [65_536, 4_096]) while (more(ballast, size));
    },
    free: () => rmSync(ballast, { force: true }),
  };
}

/** Whether there was room for it. */
function more(file: string, bytes: number): boolean {
  try {
    appendFileSync(file, Buffer.alloc(bytes));
    return true;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOSPC') return false;
    throw error;
  }
}
