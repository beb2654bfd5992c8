import { type ParseArgsConfig, parseArgs } from 'node:util';
import type { z } from 'zod';
import { expirySchema, grantSchema, keyNameSchema, keyUserSchema } from '../auth/configured-keys.ts';
import { COMMON_OPTIONS, type Flags, flagsIn } from './config-flags.ts';

/** What `omp-gateway keys --help` prints: at most 80 columns wide, ends with a newline. */
export const KEYS_USAGE = `Usage: omp-gateway keys create NAME --grant GRANT ... [options]
       omp-gateway keys list [--json] [options]
       omp-gateway keys revoke NAME|ID [options]

API keys of the gateway, kept in Postgres or, with --print, in its
configuration. A new key is shown once: the gateway keeps only its hash.

Options of create:
  --grant GRANT       What the key may do, as <action>:<scope glob>; may be
                      given several times. Actions: read, write, delete, or *
                      for all three. read:coding/* covers every scope that
                      begins with coding/; read:* also what has no scope.
  --user USER         The only user whose memories it may touch; may be given
                      several times. Without it: every user.
  --expires WHEN      A date (2027-01-01, from 00:00 UTC on), a date-time with
                      offset (2027-01-01T12:00:00Z), or days from now (90d)
  --print             Store nothing; print the lines for the configuration

Options of all:
  --config FILE       As of the gateway itself, and so is the environment
  --provider NAME
  --data-dir FOLDER
  -h, --help          Print this and exit
`;

export interface KeyRequest {
  readonly name: string;
  readonly grants: readonly string[];
  readonly users: readonly string[] | null;
  /** ISO 8601, UTC, milliseconds, `Z`. */
  readonly expires_at: string | null;
}

/** What is asked for. `flags` are as `loadConfig` takes them. */
export type KeysArguments =
  | { readonly action: 'create'; readonly request: KeyRequest; readonly flags: Flags }
  | { readonly action: 'print'; readonly request: KeyRequest }
  | { readonly action: 'list'; readonly json: boolean; readonly flags: Flags }
  | { readonly action: 'revoke'; readonly nameOrId: string; readonly flags: Flags }
  | { readonly action: 'help' }
  | { readonly action: 'mistake'; readonly message: string };

const CREATE = {
  ...COMMON_OPTIONS,
  grant: { type: 'string', multiple: true },
  user: { type: 'string', multiple: true },
  expires: { type: 'string' },
  print: { type: 'boolean' },
} satisfies ParseArgsConfig['options'];

/** Reads the arguments that follow `keys`. `now` in epoch milliseconds. */
export function parseKeysArguments([command, ...args]: readonly string[], now: number): KeysArguments {
  if (command === '--help' || command === '-h') return { action: 'help' };
  try {
    if (command === 'create') return create(args, now);
    if (command === 'list') {
      const { values } = parseArgs({ args, options: { ...COMMON_OPTIONS, json: { type: 'boolean' } } });
      return values.help ? { action: 'help' } : { action: 'list', json: values.json === true, flags: flagsIn(values) };
    }
    if (command === 'revoke') {
      const { values, positionals } = parseArgs({ args, options: COMMON_OPTIONS, allowPositionals: true });
      if (values.help) return { action: 'help' };
      const [nameOrId, extra] = positionals;
      if (nameOrId === undefined || extra !== undefined) return mistake('keys revoke needs one name or id');
      return { action: 'revoke', nameOrId, flags: flagsIn(values) };
    }
  } catch (error) {
    return mistake((error as Error).message.replaceAll('\n', ' '));
  }
  return mistake(command === undefined ? 'keys needs a command' : `Unknown command 'keys ${command}'`);
}

function create(args: string[], now: number): KeysArguments {
  const { values, positionals } = parseArgs({ args, options: CREATE, allowPositionals: true });
  if (values.help) return { action: 'help' };
  const [name, extra] = positionals;
  if (name === undefined || extra !== undefined) return mistake('keys create needs one name');
  const { grant: grants = [], user: users, expires } = values;
  if (grants.length === 0) return mistake(NO_GRANT);
  const expires_at = expires === undefined ? null : readExpiry(expires, now);
  const mistakes = [
    ...check(keyNameSchema, name, 'The name'),
    ...grants.flatMap((grant) => check(grantSchema, grant, `--grant '${grant}'`)),
    ...(users ?? []).flatMap((user) => check(keyUserSchema, user, `--user '${user}'`)),
    ...(expires_at === undefined
      ? [`--expires '${expires}' must be a date or date-time to come, or days as in 90d`]
      : []),
  ];
  if (mistakes.length > 0 || expires_at === undefined) return mistake(mistakes.join('\n'));
  const request = { name, grants, users: users ?? null, expires_at };
  const flags = flagsIn(values);
  if (!values.print) return { action: 'create', request, flags };
  const [unused] = Object.keys(flags);
  return unused === undefined ? { action: 'print', request } : mistake(`--${unused} has no effect with --print`);
}

const NO_GRANT = `keys create needs --grant, which says what the key may do, such as
  --grant 'read:coding/*'    read what has a scope that begins with coding/
  --grant 'read:*'           read everything, also what has no scope
  --grant 'write:*'          add and change
  --grant '*:*'              read, write and delete everything`;

const check = (schema: z.ZodType, value: string, label: string): string[] =>
  schema.safeParse(value).error?.issues.map(({ message }) => `${label} ${message}`) ?? [];

const DAY_MS = 86_400_000;

/** Undefined for what is no time to come. */
function readExpiry(text: string, now: number): string | undefined {
  const days = /^(\d{1,5})d$/.exec(text)?.[1];
  if (days === undefined && !expirySchema.safeParse(text).success) return undefined;
  const time = days === undefined ? Date.parse(text) : now + Number(days) * DAY_MS;
  return time > now ? new Date(time).toISOString() : undefined;
}

const mistake = (message: string): KeysArguments => ({
  action: 'mistake',
  message: `${message}\nTry 'omp-gateway keys --help'.`,
});
