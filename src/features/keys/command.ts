import { type ParseArgsConfig, parseArgs } from 'node:util';
import type { z } from 'zod';
import { backgroundCall, type KeyStore, type StoredKey } from '#contract';
import {
  type ConfiguredKey,
  expirySchema,
  hasUse,
  keyGrantSchema,
  keyNameSchema,
  keyUserSchema,
  NO_USE,
  toHashedKey,
} from '../../auth/configured-keys.ts';
import type { FreshKey } from '../../auth/credentials.ts';
import { newKey, storeKey } from '../../auth/credentials.ts';
import type { Commands } from '../../cli/command.ts';
import { COMMON_OPTIONS, COMMON_USAGE, configFlags, configOf, type Flags } from '../../cli/options.ts';
import { Mistake, printable, runCommand, type Terminal, terminalLog } from '../../cli/terminal.ts';
import { providerOptions } from '../../config/config-options.ts';
import { providerModule } from '../../registry.ts';

/** What `omp-gateway keys --help` prints: at most 80 columns wide, ends with a newline. */
const KEYS_USAGE = `Usage: omp-gateway keys create NAME --grant GRANT ... [options]
       omp-gateway keys list [--json] [options]
       omp-gateway keys revoke NAME|ID [options]

API keys of the gateway, kept in Postgres or, with --print, in its
configuration. A new key is shown once: the gateway keeps only its hash.

Options of create:
  --grant GRANT       What the key may do, as <action>:<scope glob>; may be
                      given several times. Actions: read, write, delete, or *
                      for all three. read:coding/* covers every scope that
                      begins with coding/; read:* also covers memories
                      without a scope. admin:* lets it list, create and revoke
                      keys over HTTP and in the console, and nothing else.
  --user USER         The only user whose memories it may access; may be given
                      several times. Without it: every user.
  --expires WHEN      A date (2027-01-01, from 00:00 UTC on), a date-time with
                      offset (2027-01-01T12:00:00Z), or days from now (90d)
  --untrusted         Mark what it writes, for agents that read what others
                      wrote, such as web pages. Contexts and tools of agents
                      leave it out, and it changes only what is marked.
  --print             Store nothing; print the lines for the configuration

Options of all:
${COMMON_USAGE}
`;

interface KeyRequest {
  readonly name: string;
  readonly grants: readonly string[];
  readonly users: readonly string[] | null;
  /** ISO 8601, UTC, milliseconds, `Z`. */
  readonly expires_at: string | null;
  readonly untrusted: boolean;
}

type KeysArguments =
  | { readonly action: 'create'; readonly request: KeyRequest; readonly flags: Flags }
  | { readonly action: 'print'; readonly request: KeyRequest }
  | { readonly action: 'list'; readonly json: boolean; readonly flags: Flags }
  | { readonly action: 'revoke'; readonly nameOrId: string; readonly flags: Flags }
  | { readonly action: 'help' };

const CREATE = {
  ...COMMON_OPTIONS,
  grant: { type: 'string', multiple: true },
  user: { type: 'string', multiple: true },
  expires: { type: 'string' },
  untrusted: { type: 'boolean' },
  print: { type: 'boolean' },
} satisfies ParseArgsConfig['options'];

/** Parses the arguments that follow `keys`. `now` in epoch milliseconds. Throws `Mistake`, or as `parseArgs` does. */
function parseKeysArguments([command, ...args]: readonly string[], now: number): KeysArguments {
  if (command === '--help' || command === '-h') return { action: 'help' };
  if (command === 'create') return create(args, now);
  if (command === 'list') {
    const { values } = parseArgs({ args, options: { ...COMMON_OPTIONS, json: { type: 'boolean' } } });
    return values.help
      ? { action: 'help' }
      : { action: 'list', json: values.json === true, flags: configFlags(values) };
  }
  if (command === 'revoke') {
    const { values, positionals } = parseArgs({ args, options: COMMON_OPTIONS, allowPositionals: true });
    if (values.help) return { action: 'help' };
    const [nameOrId, extra] = positionals;
    if (nameOrId === undefined || extra !== undefined) throw new Mistake('keys revoke needs one name or id');
    return { action: 'revoke', nameOrId, flags: configFlags(values) };
  }
  throw new Mistake(command === undefined ? 'keys needs a command' : `Unknown command 'keys ${command}'`);
}

function create(args: string[], now: number): KeysArguments {
  const { values, positionals } = parseArgs({ args, options: CREATE, allowPositionals: true });
  if (values.help) return { action: 'help' };
  const [name, extra] = positionals;
  if (name === undefined || extra !== undefined) throw new Mistake('keys create needs one name');
  const { grant: grants = [], user: users, expires, untrusted = false } = values;
  if (grants.length === 0) throw new Mistake(NO_GRANT);
  const expires_at = expires === undefined ? null : readExpiry(expires, now);
  const mistakes = [
    ...check(keyNameSchema, name, 'The name'),
    ...grants.flatMap((grant) => check(keyGrantSchema, grant, `--grant '${grant}'`)),
    ...(users ?? []).flatMap((user) => check(keyUserSchema, user, `--user '${user}'`)),
    ...(expires_at === undefined
      ? [`--expires '${expires}' must be a date or date-time in the future, or days as in 90d`]
      : []),
    ...(hasUse({ grants, untrusted }) ? [] : [`--untrusted: ${NO_USE}`]),
  ];
  if (mistakes.length > 0 || expires_at === undefined) throw new Mistake(mistakes.join('\n'));
  const request = { name, grants, users: users ?? null, expires_at, untrusted };
  const flags = configFlags(values);
  if (!values.print) return { action: 'create', request, flags };
  const [unused] = Object.keys(flags);
  if (unused !== undefined) throw new Mistake(`--${unused} has no effect with --print`);
  return { action: 'print', request };
}

const NO_GRANT = `keys create needs --grant, which says what the key may do, such as
  --grant 'read:coding/*'    read memories whose scope begins with coding/
  --grant 'read:*'           read everything, also memories without a scope
  --grant 'write:*'          add and change
  --grant '*:*'              read, write and delete everything
  --grant 'admin:*'          manage the keys of the gateway`;

const check = (schema: z.ZodType, value: string, label: string): string[] =>
  schema.safeParse(value).error?.issues.map(({ message }) => `${label} ${message}`) ?? [];

const DAY_MS = 86_400_000;

/** Undefined: the text is no time in the future. */
function readExpiry(text: string, now: number): string | undefined {
  const days = /^(\d{1,5})d$/.exec(text)?.[1];
  if (days === undefined && !expirySchema.safeParse(text).success) return undefined;
  const time = days === undefined ? Date.parse(text) : now + Number(days) * DAY_MS;
  return time > now ? new Date(time).toISOString() : undefined;
}

/**
 * `omp-gateway keys`: results go to standard output, everything else to standard error. Returns the exit status: 0; 1: it
 * failed; 2: wrong arguments.
 */
export const runKeys = (argv: readonly string[], terminal: Terminal): Promise<number> =>
  runCommand('keys', KEYS_USAGE, terminal, async () => {
    const command = parseKeysArguments(argv, Date.now());
    if (command.action === 'help') return command.action;
    if (command.action === 'print') print(command.request, terminal);
    else await withStore(command, terminal);
    return 0;
  });

const INSTEAD = `Keys may be part of the configuration instead:
  omp-gateway keys create NAME --grant GRANT --print`;

const SHOWN_ONCE = `This is the only time the key is shown. Clients send it as
  Authorization: Bearer <key>
`;
const FIRST = 'It is the first key: gateways on this database stop answering callers without one within seconds.\n';

type Stored = Extract<KeysArguments, { action: 'create' | 'list' | 'revoke' }>;

async function withStore(command: Stored, terminal: Terminal): Promise<void> {
  const config = configOf(command.flags, terminal);
  const { provider, data_dir } = config;
  const { openKeys } = await providerModule(provider);
  const store = await openKeys?.(providerOptions(config), { data_dir, log: terminalLog(terminal) });
  if (!store) throw new Error(`the provider ${provider} stores no keys. ${INSTEAD}`);
  await run(command, store, terminal).finally(store.close);
}

async function run(command: Stored, store: KeyStore, { stdout, stderr }: Terminal): Promise<void> {
  const call = backgroundCall('keys');
  if (command.action === 'create') {
    const { id, hash, key } = newKey();
    const first = !(await store.hasAny(call));
    await storeKey(store, { id, hash, ...command.request }, call);
    stdout.write(`${key}\n`);
    stderr.write(first ? SHOWN_ONCE + FIRST : SHOWN_ONCE);
  } else if (command.action === 'list') {
    const keys = await store.list({}, call);
    stdout.write(command.json ? keysJson(keys) : keysTable(keys, Date.now()));
  } else {
    const revoked = await store.revoke(command.nameOrId, call);
    if (!revoked) throw new Error(NO_SUCH_KEY);
    stdout.write(`${revoked.id} is revoked since ${revoked.revoked_at}\n`);
    stderr.write('Gateways reject it within seconds.\n');
  }
}

const NO_SUCH_KEY = 'no stored key has this name or id; to revoke a key of the configuration, remove it there';

function print(request: KeyRequest, { stdout, stderr }: Terminal): void {
  const fresh = newKey();
  const configured = JSON.stringify(toConfigured(request, fresh));
  stdout.write(`${fresh.key}\n\nauth:\n  keys:\n    - ${configured}\n`);
  stderr.write(`${SHOWN_ONCE}The gateway needs only the lines below it, in its configuration file. In the environment:
  OMP_AUTH_KEYS=[${configured}]
`);
}

/** A key in the form of the configuration. */
const toConfigured = ({ name, grants, users, expires_at, untrusted }: KeyRequest, key: FreshKey): ConfiguredKey => ({
  name,
  key: toHashedKey(key),
  grants: [...grants],
  ...(users && { users: [...users] }),
  ...(expires_at !== null && { expires_at }),
  ...(untrusted && { untrusted }),
});

/** Keys without their hashes, as JSON. */
const keysJson = (keys: readonly StoredKey[]): string =>
  `${JSON.stringify(
    keys.map(({ hash: _, ...key }) => key),
    null,
    2,
  )}\n`;

const HEAD = ['ID', 'NAME', 'STATE', 'TRUST', 'GRANTS', 'USERS', 'CREATED', 'EXPIRES', 'LAST USED'];

/** Keys as a table. `now` in epoch milliseconds. */
function keysTable(keys: readonly StoredKey[], now: number): string {
  const rows = keys.map((key) => [
    key.id,
    key.name,
    stateOf(key, now),
    key.untrusted ? 'untrusted' : 'trusted',
    key.grants.join(' '),
    key.users?.join(' ') ?? 'all',
    ...[key.created_at, key.expires_at, key.last_used_at].map((time) => time?.replace(/\.\d+Z$/, 'Z') ?? 'never'),
  ]);
  const table = [HEAD, ...rows].map((cells) => cells.map(printable));
  const widths = HEAD.map((_, column) => Math.max(...table.map((cells) => cells[column]?.length ?? 0)));
  return table
    .map(
      (cells) =>
        `${cells
          .map((cell, i) => cell.padEnd(widths[i] ?? 0))
          .join('  ')
          .trimEnd()}\n`,
    )
    .join('');
}

function stateOf({ revoked_at, expires_at }: StoredKey, now: number): string {
  if (revoked_at !== null) return 'revoked';
  return expires_at !== null && Date.parse(expires_at) <= now ? 'expired' : 'active';
}

export const commands: Commands = { keys: runKeys };
