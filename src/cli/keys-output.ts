import type { StoredKey } from '#contract';
import { type ConfiguredKey, toHashedKey } from '../auth/configured-keys.ts';
import type { FreshKey } from '../auth/credentials.ts';
import type { KeyRequest } from './keys-arguments.ts';
import { printable } from './printable.ts';

/** A key as the configuration takes it. */
export const toConfigured = ({ name, grants, users, expires_at }: KeyRequest, key: FreshKey): ConfiguredKey => ({
  name,
  key: toHashedKey(key),
  grants: [...grants],
  ...(users && { users: [...users] }),
  ...(expires_at !== null && { expires_at }),
});

/** Keys without their hashes, as JSON. */
export const keysJson = (keys: readonly StoredKey[]): string =>
  `${JSON.stringify(
    keys.map(({ hash: _, ...key }) => key),
    null,
    2,
  )}\n`;

const HEAD = ['ID', 'NAME', 'STATE', 'GRANTS', 'USERS', 'CREATED', 'EXPIRES', 'LAST USED'];

/** Keys as a table. `now` in epoch milliseconds. */
export function keysTable(keys: readonly StoredKey[], now: number): string {
  const rows = keys.map((key) => [
    key.id,
    key.name,
    stateOf(key, now),
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
