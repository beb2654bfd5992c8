import { closeSync, fstatSync, openSync } from 'node:fs';
import { join } from 'node:path';
import { tryLock } from 'fs-native-extensions';

/** Another process has the data folder. */
export class FolderTaken extends Error {}

export interface FolderLock {
  /** Names the folder on this machine: a copy of it, or another one at its path, has another name. */
  readonly name: string;
  release(): void;
}

/**
 * Takes the data folder for this process. The lock is the kernel's: it ends with the process, however that dies.
 * Throws `FolderTaken` when another process has it.
 */
export function lockFolder(folder: string): FolderLock {
  const lock = take(folder, 'a+');
  if (lock.taken)
    throw new FolderTaken(
      `the data folder ${folder} is in use by another omp-gateway; stop that one, or set OMP_DATA_DIR to a folder of its own`,
    );
  return lock;
}

/** The same where there is a lock already; `taken`: by another process. Undefined: there is none. Makes no file. */
export function lockIfAny(folder: string): (FolderLock & { readonly taken: boolean }) | undefined {
  try {
    return take(folder, 'r+');
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined;
    throw error;
  }
}

function take(folder: string, flags: 'a+' | 'r+') {
  const file = openSync(join(folder, 'lock'), flags, 0o600);
  const { dev, ino } = fstatSync(file);
  const taken = !tryLock(file);
  if (taken) closeSync(file);
  return { taken, name: `${dev}:${ino}`, release: () => taken || closeSync(file) };
}
