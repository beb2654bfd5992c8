import { isDeepStrictEqual } from 'node:util';
import { ORIGIN } from '#contract';
import type { Client, Reply } from '../support/client.ts';
import { contextLines } from '../support/context.ts';
import type {
  WireBatch,
  WireChanges,
  WireContext,
  WireErrorCode,
  WireHit,
  WireMemory,
  WirePage,
  WireStats,
  WireUsers,
  WireVersions,
} from '../support/wire.ts';
import {
  globMatches,
  globsMeet,
  globsOf,
  type Key,
  type Refusal,
  refusalById,
  refusalOfAdd,
  refusalOfQuery,
  refusalOfUpdate,
  sees,
} from './rule.ts';

/** Every record holds this word, so that a search for it finds everything the caller may see. */
export const WORD = 'coffee';

/** Neighbours of `coding/x`, which a careless comparison would take for it. */
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
const DESTINATIONS = ['coding/x', 'coding', 'coding-secret/x'] as const;

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
  ['admin:*'],
  ['admin:*', 'read:coding/*'],
];

/** No grant, every action with every glob, several together. */
export const GRANTS: readonly (readonly string[])[] = [
  [],
  ...ACTIONS.flatMap((action) => GRANTED_GLOBS.map((glob) => [`${action}:${glob}`])),
  ...TOGETHER,
];

/** Two users with memories, and one without. */
export const USERS = ['ana', 'ben', 'cleo'] as const;
type User = (typeof USERS)[number];
export const OWNERS = ['ana', 'ben'] as const;

/** Unbound; bound to nobody, to one user, to the other, to one without memories, to several. */
export const BINDINGS: readonly (readonly User[] | null)[] = [null, [], ['ana'], ['ben'], ['cleo'], ['ana', 'ben']];

/** Every grant with every binding. */
export const KEYS: readonly Key[] = GRANTS.flatMap((grants) => BINDINGS.map((users) => ({ grants, users })));

/** Globs of lists; undefined: everything. */
const GLOBS = [undefined, '*', 'coding', 'coding/*', 'coding*', '*/x', 'codin?'] as const;

/** Prefixes of searches. The gateway drops one trailing `*` (Decision 4). */
const PREFIXES = [undefined, '*', 'cod', 'coding', 'coding/', 'coding/*', 'CODING', 'z'] as const;
/** What a search for a prefix finds, as a glob. */
export const prefixGlob = (prefix: string | undefined): string | undefined =>
  prefix === undefined ? undefined : `${prefix.replace(/\*$/, '')}*`;

export const named = ({ grants, users }: Key): string =>
  `key [${grants.join(' ')}] ${users === null ? 'unbound' : `bound to [${users.join(' ')}]`}`;

/** A store with one record of every owner in every scope, and what it must hold at any time. */
export interface World {
  /** Those records, oldest first. No case may change them. */
  readonly targets: readonly WireMemory[];
  /** Another record like this one, for a key that is allowed to change it. */
  copy(target: WireMemory): Promise<WireMemory>;
  /** The store must hold this from now on. */
  expect(memory: WireMemory): void;
  /** The store must not hold this any more. */
  expectGone(id: string): void;
  /** Where the store differs from what it must hold. */
  differences(): Promise<unknown[]>;
  /** Removes everything but the targets. */
  tidy(): Promise<void>;
  /** Where the store of this scope is mounted; undefined: in the root store. */
  mountOf(scope: string | null): string | undefined;
}

/** Nothing tells a key of a store that none of its grants reaches (Decision 49). */
function seenRefusal(
  key: Key,
  { mountOf }: World,
  target: WireMemory | undefined,
  refusal: Refusal | undefined,
): Refusal | undefined {
  const mount = target && mountOf(target.scope ?? null);
  if (refusal !== 'scope_denied' || mount === undefined) return refusal;
  const globs = (['read', 'write', 'delete'] as const).flatMap((action) => globsOf(key, action));
  return globs.some((glob) => globsMeet(glob, mount) || globsMeet(glob, `${mount}/*`)) ? refusal : 'not_found';
}

/** One request of a key, and its expected outcome. */
export interface Case {
  readonly name: string;
  send(client: Client): Promise<Reply>;
  /** The expected error; undefined: success. */
  readonly code: WireErrorCode | undefined;
  /** By default that of the code. */
  readonly status?: number;
  /** Whether the message of the error names what it is about. */
  readonly naming?: boolean;
}

/** A request that changes nothing: `read` of a successful answer gives `value`. */
export interface ReadCase extends Case {
  read(body: unknown): unknown;
  readonly value: unknown;
}

export const UNKNOWN_ID = 'mem_01HZZZZZZZZZZZZZZZZZZZZZZZ';
/** `X-User-Id` of requests by id: not sent, or one of two. */
const ASSERTED = [undefined, 'ana', 'ben'] as const;
export const asserting = (user: string | undefined): Record<string, string> => (user ? { 'x-user-id': user } : {});

const describeTarget = (target: WireMemory | undefined): string =>
  target ? `a record of ${target.user_id} in ${target.scope ?? 'no scope'}` : 'an unknown id';

/** Get, list, search, context, audit, stats and users of everything. `counted`: whether the backend can. */
export function readCases(
  key: Key,
  world: World,
  { audited, counted, versioned }: Readonly<Record<'audited' | 'counted' | 'versioned', boolean>>,
): ReadCase[] {
  const seen = world.targets.filter((target) => sees(key, target)).reverse();
  const found = (user: string, glob: string | undefined) =>
    seen.filter(
      ({ user_id, scope }) => user_id === user && (glob === undefined || (scope != null && globMatches(glob, scope))),
    );
  return [
    ...getCases(key, world),
    ...(versioned ? versionsCases(key, world) : []),
    ...USERS.flatMap((user_id) => [
      ...listCases(key, user_id, found),
      ...searchCases(key, user_id, found),
      auditCase(key, user_id, found(user_id, undefined), audited),
      ...changesCases(key, [user_id], found, audited),
      statsCase(key, user_id, found(user_id, undefined), counted),
    ]),
    ...changesCases(key, USERS, found, audited),
    usersCase(key, found, counted),
    ...TOGETHER_SEARCHED.flatMap((users) => searchCases(key, users, found)),
  ];
}

const getCases = (key: Key, world: World): ReadCase[] =>
  [...world.targets, undefined].flatMap((target) =>
    ASSERTED.map((user) => ({
      name: `get ${describeTarget(target)}${user ? ` as ${user}'s` : ''}`,
      send: ({ ask, byId }) => ask(byId(target?.id ?? UNKNOWN_ID), {}, asserting(user)),
      code: seenRefusal(key, world, target, refusalById(key, 'read', target, { user })),
      read: (body) => body,
      value: target,
    })),
  );

/** The versions of everything: the current one, and of those before it only scopes that the key may read. */
const versionsCases = (key: Key, world: World): ReadCase[] =>
  [...world.targets, undefined].map((target) => ({
    name: `versions of ${describeTarget(target)}`,
    send: ({ ask, byId }) => ask(`${byId(target?.id ?? UNKNOWN_ID)}/versions`),
    code: seenRefusal(key, world, target, refusalById(key, 'read', target)),
    read(body) {
      const { items } = body as WireVersions;
      return { current: items[0]?.memory, hidden: items.filter(({ memory }) => !sees(key, memory)).length };
    },
    value: { current: target, hidden: 0 },
  }));

type Found = (user: string, glob: string | undefined) => WireMemory[];

const listCases = (key: Key, user_id: string, found: Found): ReadCase[] =>
  GLOBS.map((scope) => ({
    name: `list ${user_id}'s ${scope ?? 'everything'}`,
    send: ({ ask }) => ask('/memories', { user_id, scope }),
    code: refusalOfQuery(key, user_id, scope),
    read: (body) => body as WirePage,
    value: { items: found(user_id, scope), next_cursor: null },
  }));

const byId = (memories: readonly WireMemory[]): WireMemory[] =>
  memories.toSorted((one, other) => (one.id < other.id ? 1 : -1));

/** Users that are searched together: every key reaches all, some or none of them. */
const TOGETHER_SEARCHED: readonly (readonly User[])[] = [['ana', 'ben'], ['ben', 'cleo'], USERS];

const searchCases = (key: Key, user_id: string | readonly string[], found: Found): ReadCase[] =>
  PREFIXES.flatMap((scope): ReadCase[] => {
    const glob = prefixGlob(scope);
    const users = [user_id].flat();
    const code = users.map((user) => refusalOfQuery(key, user, glob)).find((refusal) => refusal !== undefined);
    const due = users.flatMap((user) => found(user, glob));
    return [
      {
        name: `search ${user_id}'s ${scope ?? 'everything'}`,
        send: ({ ask }) => ask('/memories/search', { user_id, scope, q: WORD, limit: 100 }),
        code,
        read: (body) => byId((body as { results: WireHit[] }).results.map(({ memory }) => memory)),
        value: byId(due),
      },
      {
        name: `context of ${user_id}'s ${scope ?? 'everything'}`,
        send: ({ tell }) => tell('POST', '/context', { user_id, scope, query: WORD, token_budget: 5_000 }),
        code,
        read: (body) => {
          const { text, citations } = body as WireContext;
          return { lines: contextLines(text).sort(), ids: citations.map(({ memory_id }) => memory_id).sort() };
        },
        value: { lines: due.map(({ content }) => content).sort(), ids: due.map(({ id }) => id).sort() },
      },
    ];
  });

export const SEEDER = 'seeder';

/** The seeder's entries are known to the last one. */
const auditCase = (key: Key, user_id: string, due: readonly WireMemory[], audited: boolean): ReadCase => ({
  name: `audit of ${user_id}`,
  send: ({ ask }) => ask('/audit', { user_id, app: SEEDER, limit: 1_000 }),
  code: audited ? refusalOfQuery(key, user_id) : 'unsupported_capability',
  read: (body) =>
    (body as { entries: Record<string, unknown>[] }).entries.map(({ app, action, memory_id, scope, outcome }) => ({
      app,
      action,
      memory_id,
      scope,
      outcome,
    })),
  value: due.map(({ id, scope }) => ({ app: SEEDER, action: 'add', memory_id: id, scope, outcome: 'ok' })),
});

/** The seeder's changes, of one user or of all. */
const changesCases = (key: Key, users: readonly string[], found: Found, audited: boolean): ReadCase[] =>
  GLOBS.map((scope) => {
    const [user_id] = users.length === 1 ? users : [];
    const mayRead = globsOf(key, 'read').some((granted) => globsMeet(granted, scope ?? '*'));
    const refusal =
      user_id === undefined ? (mayRead ? undefined : 'scope_denied') : refusalOfQuery(key, user_id, scope);
    return {
      name: `changes of ${user_id ?? 'all'} in ${scope ?? 'everything'}`,
      send: ({ ask }) => ask('/changes', { user_id, scope, limit: 50 }),
      code: audited ? refusal : 'unsupported_capability',
      read: (body) =>
        (body as WireChanges).changes
          .flatMap(({ caller, id, user_id: owner, scope: place }) =>
            caller === SEEDER ? [`${id} ${owner} ${place}`] : [],
          )
          .sort(),
      value: users
        .flatMap((user) => found(user, scope))
        .map(({ id, user_id: owner, scope: place }) => `${id} ${owner} ${place ?? null}`)
        .sort(),
    };
  });

const statsCase = (key: Key, user_id: string, due: readonly WireMemory[], counted: boolean): ReadCase => ({
  name: `stats of ${user_id}`,
  send: ({ ask }) => ask('/stats', { user_id }),
  code: counted ? refusalOfQuery(key, user_id) : 'unsupported_capability',
  read: (body) => {
    const { count, scopes } = body as WireStats;
    return { count, scopes: scopes.map(({ scope }) => scope ?? '').sort() };
  },
  value: { count: due.length, scopes: due.map(({ scope }) => scope ?? '').sort() },
});

const usersCase = (key: Key, found: Found, counted: boolean): ReadCase => ({
  name: 'users',
  send: ({ ask }) => ask('/users'),
  code: !counted ? 'unsupported_capability' : globsOf(key, 'read').length === 0 ? 'scope_denied' : undefined,
  read: (body) => (body as WireUsers).items.map(({ user_id, count }) => ({ user_id, count })),
  value: USERS.map((user_id) => ({ user_id, count: found(user_id, undefined).length })).filter(
    ({ count }) => count > 0,
  ),
});

/** A request that changes something where it is allowed. */
export interface ChangeCase extends Case {
  /** Sends it and updates the world. Answers what was wrong with the reply, if anything. */
  succeed(client: Client, world: World): Promise<unknown>;
}

/** Add, update, update that moves, and delete of everything; with ETags, also of a version that has changed. */
export const changeCases = (
  key: Key,
  world: World,
  { etags, versioned }: Readonly<Record<'etags' | 'versioned', boolean>>,
): ChangeCase[] => [
  ...USERS.flatMap((user_id) => SCOPES.map((scope) => addCase(key, user_id, scope))),
  batchCase(key),
  ...[...world.targets, undefined].flatMap((target) => [
    updateCase(key, world, target),
    ...DESTINATIONS.map((scope) => updateCase(key, world, target, scope)),
    deleteCase(key, world, target),
    ...(versioned ? [...restoreCases(key, world, target), purgeCase(key, world, target)] : []),
    ...(etags ? [staleCase(key, world, target, 'write'), staleCase(key, world, target, 'delete')] : []),
  ]),
];

/** Where the key may not read. What a restore changes is checked by the conformance suite. */
function restoreCases(key: Key, world: World, target: WireMemory | undefined): ChangeCase[] {
  const code = seenRefusal(key, world, target, refusalById(key, 'read', target));
  const send = ({ tell, byId }: Client) => tell('POST', `${byId(target?.id ?? UNKNOWN_ID)}/restore`, { version: 1 });
  return code ? [{ name: `restore ${describeTarget(target)}`, send, code, succeed: async () => undefined }] : [];
}

const purgeCase = (key: Key, world: World, target: WireMemory | undefined): ChangeCase => {
  const send = ({ tell, byId }: Client) => tell('DELETE', `${byId(target?.id ?? UNKNOWN_ID)}/versions`);
  return {
    name: `purge the versions of ${describeTarget(target)}`,
    send,
    code: seenRefusal(key, world, target, refusalById(key, 'delete', target)),
    async succeed(client) {
      const { status, text } = await send(client);
      return status === 200 ? undefined : { name: 'purge', text };
    },
  };
};

/** `If-Match` of a version that no record has. */
export const STALE = { 'if-match': '"2001-01-01T00:00:00.000Z"' };

function staleCase(key: Key, world: World, target: WireMemory | undefined, action: 'write' | 'delete'): ChangeCase {
  const refusal = seenRefusal(key, world, target, refusalById(key, action, target));
  // Of a new content, the gateway itself reads the version first.
  const [method, fields] = action === 'write' ? ['PATCH', { confidence: 0.75 }] : ['DELETE'];
  return {
    name: `${method} with If-Match ${describeTarget(target)}`,
    send: ({ tell, byId }) => tell(method, byId(target?.id ?? UNKNOWN_ID), fields, STALE),
    code: refusal ?? 'invalid_request',
    ...(refusal === undefined && { status: 412 }),
    succeed: async () => undefined,
  };
}

function addCase(key: Key, user_id: string, scope: string | null): ChangeCase {
  const name = `add a record of ${user_id} in ${scope ?? 'no scope'}`;
  const input = { user_id, scope, content: `made by: ${name}` };
  const send = ({ tell }: Client) => tell('POST', '/memories', input);
  return {
    name,
    send,
    code: refusalOfAdd(key, input),
    async succeed(client, world) {
      const reply = await send(client);
      if (reply.status !== 201) return { name, reply };
      const memory = reply.body as WireMemory;
      world.expect(memory);
      const { content, user_id: owner, scope: place = null } = memory;
      return isDeepStrictEqual({ content, user_id: owner, scope: place }, input) ? undefined : { name, memory };
    },
  };
}

/** A record of every user in every scope. Each has the outcome of a single add. */
function batchCase(key: Key): ChangeCase {
  const name = 'add a batch';
  const inputs = USERS.flatMap((user_id) =>
    SCOPES.map((scope) => ({ user_id, scope, content: `made by: ${name} for ${user_id} in ${scope}` })),
  );
  const send = ({ tell }: Client) => tell('POST', '/memories/batch', { memories: inputs });
  return {
    name,
    send,
    code: undefined,
    async succeed(client, world) {
      const reply = await send(client);
      if (reply.status !== 200) return { name, reply };
      const { results } = reply.body as WireBatch;
      for (const { memory } of results) if (memory) world.expect(memory);
      const given = results.map(({ memory, error }) =>
        memory ? { user_id: memory.user_id, scope: memory.scope ?? null, content: memory.content } : error?.code,
      );
      const due = inputs.map((input) => refusalOfAdd(key, input) ?? input);
      return isDeepStrictEqual(given, due) ? undefined : { name, given, due };
    },
  };
}

function updateCase(key: Key, world: World, target: WireMemory | undefined, moveTo?: string): ChangeCase {
  const name = `update ${describeTarget(target)}${moveTo ? `, moving it to ${moveTo}` : ''}`;
  // A record that was changed wrongly shows by which case.
  // Of a new content, the gateway reads the record before it calls the provider's `update`.
  const patch = moveTo ? { confidence: 0.25, scope: moveTo } : { content: `changed by: ${name}` };
  const send = (id: string, { tell, byId }: Client): Promise<Reply> => tell('PATCH', byId(id), patch);
  const refusal = seenRefusal(key, world, target, refusalOfUpdate(key, target, { moveTo }));
  const leaves = moveTo !== undefined && world.mountOf(moveTo) !== world.mountOf(target?.scope ?? null);
  return {
    name,
    send: (client) => send(target?.id ?? UNKNOWN_ID, client),
    code: refusal ?? (leaves ? 'invalid_request' : undefined),
    naming: refusal === undefined && leaves,
    async succeed(client, world) {
      const before = await world.copy(target as WireMemory);
      const reply = await send(before.id, client);
      const after = reply.body as WireMemory;
      const due = { ...before, ...patch, updated_at: after.updated_at, [ORIGIN]: after[ORIGIN] };
      world.expect(due);
      const later = String(after.updated_at) > String(before.updated_at);
      const shown = sees(key, due) ? due : { ...withoutHidden(due), ...patch };
      return reply.status === 200 && later && isDeepStrictEqual(after, shown) ? undefined : { name, before, reply };
    },
  };
}

/** What an update shows of a memory that the key may not read, without what the key sent. */
const withoutHidden = ({ id, user_id, created_at, updated_at, status }: WireMemory) => ({
  [ORIGIN]: { via: 'unknown' },
  ...{ id, content: '', user_id, created_at, updated_at, scope: null, tags: [], source: null, confidence: null },
  ...{ valid_from: null, valid_to: null, supersedes: [], embedding_model: null, status },
});

function deleteCase(key: Key, world: World, target: WireMemory | undefined): ChangeCase {
  const name = `delete ${describeTarget(target)}`;
  const send = (id: string, { tell, byId }: Client): Promise<Reply> => tell('DELETE', byId(id));
  return {
    name,
    send: (client) => send(target?.id ?? UNKNOWN_ID, client),
    code: seenRefusal(key, world, target, refusalById(key, 'delete', target)),
    async succeed(client, world) {
      const { id } = await world.copy(target as WireMemory);
      const reply = await send(id, client);
      world.expectGone(id);
      return reply.status === 204 && reply.text === '' ? undefined : { name, reply };
    },
  };
}
