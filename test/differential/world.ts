import type { Query, Reply } from '../support/client.ts';
import type { Subject } from '../support/subject.ts';
import type { WireContext, WireError, WireHit, WireMemory, WirePage } from '../support/wire.ts';
import { type Bound, type Caller, type Operation, USERS } from './operations.ts';

/** An answer in terms that mean the same in every store: records by number, no ids, no times. */
export interface Answer {
  readonly status: number;
  readonly code?: string;
  readonly value?: unknown;
}

export interface RankedHit {
  readonly record: number;
  readonly score: number;
  readonly memory: object;
}

/** One store, and what a sequence of operations has done to it so far. */
export interface World {
  perform(wanted: Operation): Promise<Answer>;
  /** Every memory of the user that the query can find, ranked. */
  ranking(user: number, query: { readonly q: string; readonly scope?: string }): Promise<RankedHit[]>;
}

const UNKNOWN_ID = 'mem_01HZZZZZZZZZZZZZZZZZZZZZZZ';

/** Users whose names a careless store would take for one another. */
const userNames = (run: string): string[] => [run, `${run} é`, `${run}_e\u0301`].slice(0, USERS);

export const openWorld = (subject: Subject, run: string): World => {
  const { client } = subject;
  const users = userNames(run);
  const added: WireMemory[] = [];
  const numbers = new Map<string, number>();
  /** The distinct `updated_at` seen of each record: their order is comparable, their values are not. */
  const updates = new Map<string, string[]>();
  const pages: { readonly query: Query; cursor: string | null }[] = [];

  const pick = (record: number): WireMemory | undefined =>
    added.length === 0 ? undefined : added[record % added.length];
  const idOf = (record: number): string => pick(record)?.id ?? UNKNOWN_ID;
  const userOf = (user: number): string => users[user] ?? '';
  const as = (caller: Caller): Record<string, string> =>
    caller === null ? {} : { 'x-user-id': caller === 'first user' ? userOf(0) : 'a stranger' };
  const moment = (bound: Bound): string | undefined => {
    const memory = bound && pick(bound.record);
    return memory ? new Date(Date.parse(memory.created_at) + bound.by).toISOString() : undefined;
  };

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
  const ranked = (hits: readonly WireHit[]): RankedHit[] =>
    hits.map(({ memory, score }) => ({ record: numbers.get(memory.id) ?? -1, score, memory: neutral(memory) }));
  const answer = <T>({ status, body }: Reply, read: (body: T) => unknown): Answer =>
    status >= 400 ? { status, code: (body as WireError).error.code } : { status, value: read(body as T) };
  const page =
    (query: Query) =>
    ({ items, next_cursor }: WirePage): unknown => {
      pages.push({ query, cursor: next_cursor ?? null });
      return { items: items.map(neutral), more: next_cursor != null };
    };

  const perform = async (wanted: Operation): Promise<Answer> => {
    switch (wanted.do) {
      case 'add': {
        const fields = { ...wanted.fields, user_id: userOf(wanted.user), supersedes: wanted.supersedes.map(idOf) };
        return answer<WireMemory>(await client.tell('POST', '/memories', fields), (memory) => {
          numbers.set(memory.id, added.push(memory) - 1);
          return neutral(memory);
        });
      }
      case 'patch': {
        const fields = { ...wanted.fields, ...(wanted.supersedes && { supersedes: wanted.supersedes.map(idOf) }) };
        return answer(await client.tell('PATCH', client.byId(idOf(wanted.record)), fields), neutral);
      }
      case 'delete':
        return answer(
          await client.tell('DELETE', client.byId(idOf(wanted.record)), undefined, as(wanted.as)),
          () => 'gone',
        );
      case 'get':
        return answer(await client.ask(client.byId(idOf(wanted.record)), {}, as(wanted.as)), neutral);
      case 'list': {
        const bounds = { since: moment(wanted.since), until: moment(wanted.until) };
        const query: Query = { ...wanted.query, ...bounds, user_id: userOf(wanted.user) };
        return answer(await client.ask('/memories', query), page(query));
      }
      case 'turn': {
        const open = pages[wanted.page % Math.max(pages.length, 1)];
        if (!open?.cursor) return { status: 0 };
        return answer(await client.ask('/memories', { ...open.query, cursor: open.cursor }), page(open.query));
      }
      case 'search': {
        const { limit, min_score } = wanted;
        const query: Query = { ...wanted.query, limit, min_score, user_id: userOf(wanted.user) };
        return answer<{ results: WireHit[] }>(await client.ask('/memories/search', query), ({ results }) =>
          ranked(results),
        );
      }
      case 'context':
        return answer<WireContext>(
          await client.tell('POST', '/context', { ...wanted.fields, user_id: userOf(wanted.user) }),
          ({ citations, ...block }) => ({
            ...block,
            citations: citations.map(({ memory_id, score }) => ({ record: numbers.get(memory_id) ?? -1, score })),
          }),
        );
    }
  };
  return {
    perform,
    ranking: async (user, query) => ranked(await client.search({ ...query, user_id: userOf(user), limit: 100 })),
  };
};
