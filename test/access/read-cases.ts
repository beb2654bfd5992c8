import type { Client, Reply } from '../support/client.ts';
import type { WireContext, WireErrorCode, WireHit, WireMemory, WirePage } from '../support/wire.ts';
import { GLOBS, PREFIXES, prefixGlob, USERS } from './cases.ts';
import { globMatches, type Key, refusalById, refusalOfQuery, sees } from './rule.ts';
import { WORD, type World } from './world.ts';

/** One request of a key, and what has to come of it. */
export interface Case {
  readonly name: string;
  send(client: Client): Promise<Reply>;
  /** The error that is due; undefined: success. */
  readonly code: WireErrorCode | undefined;
}

/** A request that changes nothing: `value` is what `read` has to find in a successful answer. */
export interface ReadCase extends Case {
  read(body: unknown): unknown;
  readonly value: unknown;
}

export const UNKNOWN_ID = 'mem_01HZZZZZZZZZZZZZZZZZZZZZZZ';
/** `X-User-Id` of by-id requests: not sent, or one of two. */
export const ASSERTED = [undefined, 'ana', 'ben'] as const;
export const asserting = (user: string | undefined): Record<string, string> => (user ? { 'x-user-id': user } : {});

export const describeTarget = (target: WireMemory | undefined): string =>
  target ? `a record of ${target.user_id} in ${target.scope ?? 'no scope'}` : 'an unknown id';

/** Get, list, search, context and audit of everything a key might ask for. */
export function readCases(key: Key, world: World, audited: boolean): ReadCase[] {
  const seen = world.targets.filter((target) => sees(key, target)).reverse();
  const found = (user: string, glob: string | undefined) =>
    seen.filter(
      ({ user_id, scope }) => user_id === user && (glob === undefined || (scope != null && globMatches(glob, scope))),
    );
  return [
    ...getCases(key, world),
    ...USERS.flatMap((user_id) => [
      ...listCases(key, user_id, found),
      ...searchCases(key, user_id, found),
      auditCase(key, user_id, found(user_id, undefined), audited),
    ]),
  ];
}

const getCases = (key: Key, { targets }: World): ReadCase[] =>
  [...targets, undefined].flatMap((target) =>
    ASSERTED.map((user) => ({
      name: `get ${describeTarget(target)}${user ? ` as ${user}'s` : ''}`,
      send: ({ ask, byId }) => ask(byId(target?.id ?? UNKNOWN_ID), {}, asserting(user)),
      code: refusalById(key, 'read', target, { user }),
      read: (body) => body,
      value: target,
    })),
  );

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

const searchCases = (key: Key, user_id: string, found: Found): ReadCase[] =>
  PREFIXES.flatMap((scope): ReadCase[] => {
    const glob = prefixGlob(scope);
    const code = refusalOfQuery(key, user_id, glob);
    const due = found(user_id, glob);
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
          const lines = text === '' ? [] : text.split('\n').map((line) => line.replace(/^\[\d+\] /, ''));
          return { lines: lines.sort(), ids: citations.map(({ memory_id }) => memory_id).sort() };
        },
        value: { lines: due.map(({ content }) => content).sort(), ids: due.map(({ id }) => id).sort() },
      },
    ];
  });

export const SEEDER = 'seeder';

/** What the seeder did: it is known to the last entry. */
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
