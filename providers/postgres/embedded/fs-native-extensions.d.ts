/** The package ships no types; this is the part used here. */
declare module 'fs-native-extensions' {
  /** Takes an exclusive lock on an open file without waiting; false when another process holds one. */
  export function tryLock(fd: number): boolean;
}
