import { userInfo } from 'node:os';

/** The name of the user who runs this process; undefined: the system has none for its uid, as in a container with `--user 12345`. */
export function userName(): string | undefined {
  try {
    return userInfo().username;
  } catch {
    return undefined;
  }
}

/** `userName`, or an error that says how to name one. */
export function requireUserName(): string {
  const name = userName();
  if (name === undefined) throw new Error('this system has no name for your user: set OMP_USER_ID, or use --user');
  return name;
}
