import { openAuditQueue } from '../../src/core/audit-queue.ts';
import type { Authenticator } from '../../src/core/grants.ts';
import { createApp } from '../../src/http/app.ts';
import type { Client, Fields, Query, Reply } from '../support/client.ts';
import { type KnownCallers, knownCallers } from '../support/known-callers.ts';
import {
  APP_LIMITS,
  clientTo,
  gateOn,
  openSubject,
  recordingLog,
  type Subject,
  type SubjectOptions,
} from '../support/subject.ts';
import type {
  WireAudit,
  WireAuditEntry,
  WireBatch,
  WireContext,
  WireErased,
  WireError,
  WireHit,
  WireMemory,
  WirePage,
  WireRollback,
  WireStats,
  WireUsers,
  WireVersion,
  WireVersions,
} from '../support/wire.ts';
import { type Asserted, type Bound, type Operation, type Right, USERS, type Version } from './operations.ts';

/** A gateway on one provider, and those it lets in. */
export interface WorldStore {
  readonly label: string;
  readonly subject: Subject;
  readonly callers: KnownCallers;
  /** Scopes where other stores are mounted. */
  readonly mounts?: readonly string[];
}

/** Opens a store under a label. */
export const openStore = async (
  label: string,
  open: (options: Pick<SubjectOptions, 'authenticator'>) => Promise<Subject>,
): Promise<WorldStore> => {
  const callers = knownCallers();
  return { label, callers, subject: await open({ authenticator: callers.authenticator }) };
};

/** The memory provider with native scopes, where vectors alone rank. */
export const openModel = (): Promise<WorldStore> =>
  openStore('memory', (more) =>
    openSubject({ provider: 'memory', options: { scopes: 'native' }, mode: 'vector', ...more }),
  );

/** What a rollback does to memories, and its own entry. */
const ROLLBACK_ACTIONS: ReadonlySet<string> = new Set(['delete', 'update', 'rollback']);

/**
 * The entries, newest first, with those around a rollback sorted: each store undoes memories in its own order, and the entries of a page
 * and of the next may have the same time. Where the page of the audit log ends amid them, they are left out.
 */
const rollbacksSorted = <Entry extends { readonly action: string }>(
  entries: readonly Entry[],
  limit = 100,
): Entry[] => {
  const ofRollback = (entry: Entry | undefined) => entry !== undefined && ROLLBACK_ACTIONS.has(entry.action);
  const sorted: Entry[] = [];
  for (let start = 0, end = 0; start < entries.length; start = end) {
    do end++;
    while (ofRollback(entries[start]) && ofRollback(entries[end]));
    const run = entries.slice(start, end);
    if (!run.some(({ action }) => action === 'rollback')) sorted.push(...run);
    else if (end < limit) sorted.push(...run.sort((a, b) => (JSON.stringify(a) < JSON.stringify(b) ? -1 : 1)));
  }
  return sorted;
};

interface RankingQuery {
  readonly q: string;
  readonly scope?: string;
  readonly since: Bound;
  readonly until: Bound;
}

/** An answer in terms that mean the same in every store: records by number, no ids, no times. */
export interface Answer {
  readonly status: number;
  readonly code?: string;
  readonly value?: unknown;
}

export interface RankedHit {
  readonly record: number;
  readonly score: number;
  readonly explanation?: WireHit['explanation'];
  readonly memory: object;
}

/** One store, and what a sequence of operations has done to it so far. */
export interface World {
  readonly audited: boolean;
  /** Whether it lists users, counts memories, and erases users. */
  readonly lists_users: boolean;
  readonly counted: boolean;
  readonly erases: boolean;
  /** Whether adds may carry an idempotency key. */
  readonly once: boolean;
  readonly etags: boolean;
  readonly versioned: boolean;
  readonly origins: boolean;
  /** Whether it can search by time. */
  readonly times: boolean;
  /** Whether the backend knows scopes, so that it counts rarity over what a caller may see. */
  readonly native: boolean;
  perform(wanted: Operation): Promise<Answer>;
  /** The scope that a record had when it was added; undefined: there is no record. */
  scopeOf(record: number): string | null | undefined;
  /** Every memory of the user that the query can find for this caller, ranked and explained. Leaves no trace in the audit log. */
  ranking(by: number, user: number, query: RankingQuery): Promise<RankedHit[]>;
  /** Whether a change was made that was answered with a failure. If so, it counts as made from now on. */
  happened(change: Operation): Promise<boolean>;
  /** All memories of all users, as this client sees them. */
  contents(client: Client): Promise<WireMemory[]>;
}

/** Clients of the same store that leave no audit entries. */
const unrecorded = ({ provider }: Subject, authenticator: Authenticator) => {
  const log = recordingLog();
  const auditQueue = openAuditQueue({ audit: undefined, record: 'all', log });
  const { gate } = gateOn(provider, log, { auditQueue });
  const app = createApp({ gate, authenticator, log, ...APP_LIMITS });
  return (headers: Record<string, string>): Client => clientTo(app, headers);
};

const UNKNOWN_ID = 'mem_01HZZZZZZZZZZZZZZZZZZZZZZZ';

/** Users whose names a careless store would take for one another. */
const userNames = (run: string): string[] => [run, `${run} é`, `${run}_e\u0301`].slice(0, USERS);

const appOf = (caller: number): string => `caller ${caller}`;

export const openWorld = ({ subject, callers }: WorldStore, rights: readonly Right[], run: string): World => {
  const users = userNames(run);
  const userOf = (user: number): string => users[user] ?? '';
  const everything: Right = { users: null, grants: ['*:*'], untrusted: false };
  const usersOf = ({ user, others = [] }: { readonly user: number; readonly others?: readonly number[] }) => [
    ...new Set([user, ...others].map(userOf)),
  ];
  const headers = [everything, ...rights].map(({ users: bound, grants, untrusted }, caller) =>
    callers.admit({ app: appOf(caller), users: bound === null ? null : bound.map(userOf), grants, untrusted }),
  );
  const clients = headers.map(subject.as);
  const silent = headers.map(unrecorded(subject, callers.authenticator));
  const clientOf = (by: number) => clients[by] ?? subject.client;
  const added: WireMemory[] = [];
  const numbers = new Map<string, number>();
  /** The distinct `updated_at` seen of each record: their order is comparable, their values are not. */
  const updates = new Map<string, string[]>();
  const pages: { readonly by: number; readonly query: Query; cursor: string | null }[] = [];
  const keyed: (() => Promise<Answer>)[] = [];
  /** Records of batches: those of one may have the same time. */
  const batched = new Set<string>();

  const pick = (record: number): WireMemory | undefined =>
    added.length === 0 ? undefined : added[record % added.length];
  const idOf = (record: number): string => pick(record)?.id ?? UNKNOWN_ID;
  const as = (user: Asserted): Record<string, string> =>
    user === null ? {} : { 'x-user-id': user === 'first user' ? userOf(0) : 'a stranger' };
  const matching = (record: number, match: Version | undefined): Record<string, string> => {
    const [last, before = '2001-01-01T00:00:00.000Z'] = updates.get(idOf(record))?.toReversed() ?? [];
    return match ? { 'if-match': `"${match === 'last' ? last : before}"` } : {};
  };
  const moment = (bound: Bound): string | undefined => {
    const memory = bound && pick(bound.record);
    return memory && !batched.has(memory.id)
      ? new Date(Date.parse(memory.created_at) + bound.by).toISOString()
      : undefined;
  };
  const boundsOf = ({ since, until }: { readonly since: Bound; readonly until: Bound }) => ({
    since: moment(since),
    until: moment(until),
  });

  const neutral = ({ id, created_at, updated_at, supersedes, ...rest }: WireMemory): object => {
    const seen = updates.get(id) ?? [];
    updates.set(id, seen);
    if (updated_at != null && !seen.includes(updated_at)) seen.push(updated_at);
    const record = numbers.get(id) ?? -1;
    return {
      ...Object.fromEntries(Object.entries(rest).filter(([, value]) => value != null)),
      record,
      created_when_added: added[record]?.created_at === created_at,
      updates: seen.indexOf(updated_at ?? ''),
      supersedes: (supersedes ?? []).map((other) => numbers.get(other) ?? other),
    };
  };
  const shown = ({ memory, ...rest }: WireVersion): object => ({ ...rest, memory: neutral(memory) });
  const ranked = (hits: readonly WireHit[]): RankedHit[] =>
    hits.map(({ memory, explanation, ...hit }) => {
      const { store: _, store_weight: __, ...parts } = { ...explanation } as Record<string, unknown>;
      return {
        ...hit,
        ...(explanation && { explanation: parts as unknown as typeof explanation }),
        record: numbers.get(memory.id) ?? -1,
        memory: neutral(memory),
      };
    });
  const answer = <T>({ status, body }: Reply, read: (body: T) => unknown): Answer =>
    status >= 400 ? { status, code: (body as WireError).error.code } : { status, value: read(body as T) };
  const page =
    (by: number, query: Query) =>
    ({ items, next_cursor }: WirePage): unknown => {
      pages.push({ by, query, cursor: next_cursor ?? null });
      return { items: items.map(neutral), more: next_cursor != null };
    };

  /** Each entry without its time and its request; a record by its number. */
  const entered = ({ action, app, memory_id, scope, outcome }: WireAuditEntry) => ({
    action,
    app,
    scope,
    outcome,
    record: memory_id === null ? null : (numbers.get(memory_id) ?? memory_id),
  });
  const note = (memory: WireMemory): void => {
    if (!numbers.has(memory.id)) numbers.set(memory.id, added.push(memory) - 1);
  };
  const post = async (by: number, fields: Fields, key?: string): Promise<Answer> => {
    const once: Record<string, string> = key === undefined ? {} : { 'idempotency-key': key };
    return answer<WireMemory>(await clientOf(by).tell('POST', '/memories', fields, once), (memory) => {
      note(memory);
      return neutral(memory);
    });
  };

  const postBatch = async (by: number, memories: readonly Fields[], key?: string): Promise<Answer> => {
    const once: Record<string, string> = key === undefined ? {} : { 'idempotency-key': key };
    const reply = await clientOf(by).tell('POST', '/memories/batch', { memories }, once);
    return answer<WireBatch>(reply, ({ results }) =>
      results.map(({ memory, error }) => {
        if (!memory) return error?.code;
        batched.add(memory.id);
        note(memory);
        return neutral(memory);
      }),
    );
  };

  const perform = async (wanted: Operation): Promise<Answer> => {
    const { by } = wanted;
    const client = clientOf(by);
    switch (wanted.do) {
      case 'add': {
        const fields = { ...wanted.fields, user_id: userOf(wanted.user), supersedes: wanted.supersedes.map(idOf) };
        if (wanted.key === undefined) return post(by, fields);
        const send = () => post(by, fields, `key ${wanted.key}`);
        keyed.push(send);
        return send();
      }
      case 'batch': {
        const memories = wanted.items.map(({ supersedes, fields }) => ({
          ...fields,
          user_id: userOf(wanted.user),
          supersedes: supersedes.map(idOf),
        }));
        const send = () => postBatch(by, memories, wanted.key === undefined ? undefined : `key ${wanted.key}`);
        if (wanted.key !== undefined) keyed.push(send);
        return send();
      }
      case 'again': {
        const before = keyed[wanted.add % Math.max(keyed.length, 1)];
        return before ? before() : { status: 0 };
      }
      case 'patch': {
        const fields = { ...wanted.fields, ...(wanted.supersedes && { supersedes: wanted.supersedes.map(idOf) }) };
        const headers = matching(wanted.record, wanted.match);
        return answer(await client.tell('PATCH', client.byId(idOf(wanted.record)), fields, headers), neutral);
      }
      case 'delete':
        return answer(
          await client.tell('DELETE', client.byId(idOf(wanted.record)), undefined, {
            ...as(wanted.as),
            ...matching(wanted.record, wanted.match),
          }),
          () => 'gone',
        );
      case 'get':
        return answer(await client.ask(client.byId(idOf(wanted.record)), {}, as(wanted.as)), neutral);
      case 'versions': {
        const { limit } = wanted;
        const found: unknown[] = [];
        let cursor: string | null | undefined;
        for (let page = 0; page < wanted.pages && cursor !== null; page++) {
          const path = `${client.byId(idOf(wanted.record))}/versions`;
          const reply = await client.ask(path, { limit, ...(cursor && { cursor }) });
          if (reply.status !== 200) return answer(reply, () => undefined);
          const { items, next_cursor } = reply.body as WireVersions;
          found.push(...items.map(shown));
          cursor = next_cursor;
        }
        return { status: 200, value: { found, more: cursor != null } };
      }
      case 'version': {
        const { record, version } = wanted;
        return answer(await client.ask(`${client.byId(idOf(record))}/versions/${version}`), shown);
      }
      case 'restore': {
        const { record, version, match } = wanted;
        const path = `${client.byId(idOf(record))}/restore`;
        return answer(await client.tell('POST', path, { version }, matching(record, match)), neutral);
      }
      case 'purge':
        return answer(await client.tell('DELETE', `${client.byId(idOf(wanted.record))}/versions`), (body) => body);
      case 'rollback': {
        const { user, key, dry_run, limit } = wanted;
        const bounds = { since: moment(wanted.since) ?? '2001-01-01', until: moment(wanted.until) };
        const body = { ...bounds, ...(key !== undefined && { key: appOf(key) }), dry_run, limit };
        const found: WireRollback['items'][number][] = [];
        for (let cursor: string | null | undefined; cursor !== null; ) {
          const reply = await client.tell('POST', `/users/${encodeURIComponent(userOf(user))}/rollback`, {
            ...body,
            cursor,
          });
          if (reply.status !== 200) return answer(reply, () => undefined);
          const { items, next_cursor } = reply.body as WireRollback;
          found.push(...items);
          cursor = next_cursor;
        }
        // Its answer shows what was there before; `updates` counts what is there now.
        const { ask, byId } = silent[0] as Client;
        for (const { action, id } of found) {
          if (dry_run || action !== 'restore' || id === null) continue;
          const { status, body } = await ask(byId(id));
          if (status === 200) neutral(body as WireMemory);
        }
        // Each store has its order, and one without an audit log does not know what was deleted.
        const value = found
          .filter(({ action }) => action !== 'deleted')
          .map(({ id, memory, ...rest }) => ({
            ...rest,
            record: numbers.get(id ?? '') ?? id,
            ...(memory && { memory: neutral(memory) }),
          }))
          .sort((a, b) => Number(a.record) - Number(b.record));
        return { status: 200, value };
      }
      case 'list': {
        const bounds = boundsOf(wanted);
        const query: Query = { ...wanted.query, ...bounds, user_id: userOf(wanted.user) };
        return answer(await client.ask('/memories', query), page(by, query));
      }
      case 'turn': {
        const open = pages[wanted.page % Math.max(pages.length, 1)];
        if (!open?.cursor) return { status: 0 };
        const query = { ...open.query, cursor: open.cursor };
        return answer(await clientOf(open.by).ask('/memories', query), page(open.by, open.query));
      }
      case 'search': {
        const { limit, min_score, explain } = wanted;
        const query: Query = {
          ...wanted.query,
          ...boundsOf(wanted),
          limit,
          min_score,
          explain: explain && 'true',
          user_id: usersOf(wanted),
        };
        return answer<{ results: WireHit[] }>(await client.ask('/memories/search', query), ({ results }) =>
          ranked(results),
        );
      }
      case 'context':
        return answer<WireContext>(
          await client.tell('POST', '/context', { ...wanted.fields, ...boundsOf(wanted), user_id: usersOf(wanted) }),
          ({ citations, ...block }) => ({
            ...block,
            citations: citations.map(({ memory_id, score }) => ({ record: numbers.get(memory_id) ?? -1, score })),
          }),
        );
      case 'erase':
        // What else is counted differs between stores.
        return answer<WireErased>(
          await client.tell('DELETE', `/users/${encodeURIComponent(userOf(wanted.user))}/memories`),
          ({ deleted, receipt: { complete } }) => ({ deleted, complete }),
        );
      case 'stats':
        return answer<WireStats>(
          await client.ask('/stats', { user_id: userOf(wanted.user) }),
          ({ count, scopes, tags }) => ({
            ...{ count, scopes, tags },
          }),
        );
      case 'users': {
        // Stores have their users in different orders, and other users too.
        const found: WireUsers['items'][number][] = [];
        for (let cursor: string | undefined; ; ) {
          const reply = await client.ask('/users', { prefix: run, limit: 2, cursor });
          if (reply.status !== 200) return answer(reply, () => undefined);
          const { items, next_cursor } = reply.body as WireUsers;
          found.push(...items);
          if (next_cursor === null) break;
          cursor = next_cursor;
        }
        const counts = users.map((user) => found.filter(({ user_id }) => user_id === user).map(({ count }) => count));
        return { status: 200, value: { counts, all: found.length } };
      }
      case 'audit': {
        const { user, since, app, limit } = wanted;
        const named = app === undefined ? undefined : appOf(app);
        const query: Query = { user_id: userOf(user), since: moment(since), app: named, limit };
        return answer<WireAudit>(await client.ask('/audit', query), ({ entries }) =>
          rollbacksSorted(entries.map(entered), limit),
        );
      }
    }
  };
  const happened = async (change: Operation): Promise<boolean> => {
    const { list, ask, byId } = silent[0] as Client;
    if (change.do === 'add' || change.do === 'batch') {
      const limit = change.do === 'add' ? 1 : change.items.length;
      const { items } = await list({ user_id: userOf(change.user), limit });
      const unknown = items.filter(({ id }) => !numbers.has(id)).reverse();
      for (const memory of unknown) {
        if (change.do === 'batch') batched.add(memory.id);
        note(memory);
        neutral(memory);
      }
      return unknown.length > 0;
    }
    if (change.do === 'erase') return (await list({ user_id: userOf(change.user) })).items.length === 0;
    if (change.do !== 'patch' && change.do !== 'delete') throw new Error(`${change.do} changes nothing`);
    const { status, body } = await ask(byId(idOf(change.record)));
    if (status === 404 || change.do === 'delete') return status === 404;
    const memory = body as WireMemory;
    const seen = updates.get(memory.id)?.includes(memory.updated_at ?? '') ?? false;
    neutral(memory);
    return !seen;
  };

  return {
    audited: subject.capabilities.features.supports_audit,
    lists_users: subject.capabilities.features.users,
    counted: subject.capabilities.features.stats,
    erases: subject.capabilities.features.erase,
    once: subject.capabilities.features.idempotency,
    etags: subject.capabilities.features.etags,
    versioned: subject.capabilities.features.versions,
    origins: subject.capabilities.features.origins,
    times: subject.capabilities.features.temporal_search,
    native: subject.capabilities.features.scopes === 'native',
    perform,
    scopeOf: (record) => (added.length === 0 ? undefined : (pick(record)?.scope ?? null)),
    ranking: async (by, user, query) => {
      const wanted = { ...query, ...boundsOf(query), user_id: userOf(user), limit: 100, explain: 'true' };
      return ranked((await silent[by]?.search(wanted)) ?? []);
    },
    happened,
    contents: async (client) => {
      const pages = await Promise.all(users.map((user_id) => client.list({ user_id, limit: 500 })));
      return pages.flatMap(({ items }) => items);
    },
  };
};
