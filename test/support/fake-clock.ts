import { existsSync, readdirSync, renameSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { temporaryFolder } from '../process/gateway.ts';

const LIBRARIES = '/usr/lib';
const LIBRARY = (existsSync(LIBRARIES) ? readdirSync(LIBRARIES) : [])
  .map((folder) => join(LIBRARIES, folder, 'faketime', 'libfaketimeMT.so.1'))
  .find((path) => existsSync(path));

export const NO_FAKE_CLOCK = LIBRARY === undefined ? 'libfaketime is not installed' : '';

export interface FakeClock {
  /** For the processes that live by this clock. */
  readonly env: Readonly<Record<string, string>>;
  /** By how many seconds it is wrong from now on. The time that has passed is measured as it always is. */
  jumpTo(seconds: number): void;
}

/** A clock that can be set while a process runs, as an administrator or NTP may do. */
export function fakeClock(): FakeClock {
  const file = join(temporaryFolder(), 'clock');
  const jumpTo = (seconds: number) => {
    // In one piece: it is read at every look at the clock.
    writeFileSync(`${file}.new`, `${seconds < 0 ? '' : '+'}${seconds}\n`);
    renameSync(`${file}.new`, file);
  };
  jumpTo(0);
  return {
    env: {
      LD_PRELOAD: LIBRARY as string,
      FAKETIME_TIMESTAMP_FILE: file,
      FAKETIME_NO_CACHE: '1',
      FAKETIME_DONT_FAKE_MONOTONIC: '1',
    },
    jumpTo,
  };
}
