import { closeSync, openSync } from 'node:fs';
import { join } from 'node:path';
import { tryLock } from 'fs-native-extensions';

/**
 * Takes the data folder for this process. The lock is the kernel's: it ends with the process, however that dies.
 * Throws when another process has it.
 */
export function lockFolder(folder: string): () => void {
  const file = openSync(join(folder, 'lock'), 'a+', 0o600);
  if (!tryLock(file)) {
    closeSync(file);
    throw new Error(
      `the data folder ${folder} is in use by another omp-gateway; stop that one, or set OMP_DATA_DIR to a folder of its own`,
    );
  }
  return () => closeSync(file);
}
