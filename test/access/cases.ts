import type { Key } from './rule.ts';

/** Neighbours of `coding/x`: what a careless comparison would take for it. */
export const SCOPES = [
  null,
  'coding',
  'coding/x',
  'coding-secret',
  'coding-secret/x',
  'codin',
  'CODING/x',
  'coding/x/y',
  'code',
] as const;

/** Three of the neighbours to move a record to: what `coding/*` covers, and one on either side. */
export const DESTINATIONS = ['coding/x', 'coding', 'coding-secret/x'] as const;

const GRANTED_GLOBS = ['*', 'coding/*', 'coding', 'coding*', '*/x'] as const;
const ACTIONS = ['read', 'write', 'delete', '*'] as const;

const TOGETHER: readonly (readonly string[])[] = [
  ['read:coding', 'read:coding/*'],
  ['read:coding/*', 'read:code'],
  ['read:coding/*', 'write:coding-secret/*', 'delete:*'],
  ['read:*', 'write:coding'],
  ['*:coding/*', 'read:*'],
  ['write:coding/*', 'write:coding-secret/*', 'read:codin?'],
  ['delete:*/x', 'write:*', 'read:CODING/*'],
];

/** None of any action, every action with every glob, several together. */
export const GRANTS: readonly (readonly string[])[] = [
  [],
  ...ACTIONS.flatMap((action) => GRANTED_GLOBS.map((glob) => [`${action}:${glob}`])),
  ...TOGETHER,
];

/** Two who have memories, and one who has none. */
export const USERS = ['ana', 'ben', 'cleo'] as const;
export type User = (typeof USERS)[number];
export const OWNERS = ['ana', 'ben'] as const;

/** Unbound; bound to one, to the other, to somebody without memories, to several. */
export const BINDINGS: readonly (readonly User[] | null)[] = [null, ['ana'], ['ben'], ['cleo'], ['ana', 'ben']];

/** Every grant with every binding. */
export const KEYS: readonly Key[] = GRANTS.flatMap((grants) => BINDINGS.map((users) => ({ grants, users })));

/** What a list may ask for; undefined: everything. */
export const GLOBS = [undefined, '*', 'coding', 'coding/*', 'coding*', '*/x', 'codin?'] as const;

/** What a search may ask for. One trailing `*` is dropped by the gateway (Decision 4). */
export const PREFIXES = [undefined, '*', 'cod', 'coding', 'coding/', 'coding/*', 'CODING', 'z'] as const;
/** What a search for a prefix finds, as a glob. */
export const prefixGlob = (prefix: string | undefined): string | undefined =>
  prefix === undefined ? undefined : `${prefix.replace(/\*$/, '')}*`;

export const named = ({ grants, users }: Key): string =>
  `key [${grants.join(' ')}] ${users === null ? 'unbound' : `bound to [${users.join(' ')}]`}`;
