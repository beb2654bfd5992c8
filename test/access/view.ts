import { randomUUID } from 'node:crypto';
import fc from 'fast-check';
import { expect } from 'vitest';
import type { Client, Query } from '../support/client.ts';
import { withoutDays } from '../support/context.ts';
import type { Subject } from '../support/subject.ts';
import type { WireContext, WireHit, WireMemory, WirePage } from '../support/wire.ts';
import { type Backdoor, bearer } from './callers.ts';
import { prefixGlob } from './cases.ts';
import * as random from './random.ts';
import { covers, type Key, refusalById, refusalOfQuery, sees } from './rule.ts';

/** What a store holds: its records by number, undefined where there is none. */
interface Library {
  readonly client: Client;
  readonly ids: readonly (string | undefined)[];
}

/** A record as it means the same in both stores. */
type Plain = Readonly<Record<string, unknown>>;

const MISSING = 'mem_01HZZZZZZZZZZZZZZZZZZZZ';
/** An id that names nothing, of its own for each record. */
const missingId = (number: number): string => `${MISSING}${String(number).padStart(3, '0')}`;

const numberOf = ({ ids }: Library, id: string): number => {
  const number = ids.indexOf(id);
  return number >= 0 || !id.startsWith(MISSING) ? number : Number(id.slice(MISSING.length));
};
const plain = (library: Library, memory: WireMemory): Plain => {
  const { id, created_at: _, updated_at: __, supersedes, ...rest } = memory;
  return {
    ...rest,
    record: numberOf(library, id),
    supersedes: supersedes?.map((other) => numberOf(library, other)),
  };
};

const question = fc.record({
  user: random.person,
  glob: random.maybe(random.glob),
  prefix: random.maybe(random.prefix),
  tag: random.tag,
  q: random.text,
  limit: fc.integer({ min: 1, max: 6 }),
  min_score: fc.constantFrom(undefined, 0.1, 0.5),
  token_budget: fc.integer({ min: 20, max: 120 }),
});
type Question = typeof question extends fc.Arbitrary<infer T> ? T : never;

export const scene = fc.record({
  records: fc.array(random.record, { minLength: 10, maxLength: 24 }),
  later: fc.array(random.later, { maxLength: 6 }),
  key: random.keyWith(['read', 'read', 'read', '*']),
  questions: fc.array(question, { minLength: 3, maxLength: 5 }),
});
type Scene = typeof scene extends fc.Arbitrary<infer T> ? T : never;

export interface Stores {
  /** Holds everything. */
  readonly whole: Subject;
  /** Holds only what the key may see. */
  readonly part: Subject;
  readonly door: Backdoor;
  /** How often a comparison had something to compare. */
  readonly seen: { records: number; hidden: number; refused: number; entries: number };
}

const SEEDER = 'seeder';

/**
 * Builds the scene in one store, and in the other only the records the key may see; then asks both everything, the
 * first as the key, the second as somebody unrestricted. The answers must be the same, down to scores and cursors.
 */
export async function checkView({ records, later, key, questions }: Scene, stores: Stores): Promise<void> {
  const { whole, part, door, seen } = stores;
  const names = random.namesOf(randomUUID());
  const rights = random.keyOf(key, names);
  const seeder = whole.as(bearer(door.admit(SEEDER)));
  const everything = await build(seeder, records, later, names);
  const visible = everything.map((memory) => memory && sees(rights, memory));
  const all: Library = {
    client: whole.as(bearer(door.admit('reader', rights))),
    ids: everything.map((memory) => memory?.id),
  };
  const some = await copy(part.as(bearer(door.admit(SEEDER))), everything, visible);
  seen.records += visible.filter(Boolean).length;
  seen.hidden += visible.filter((one) => one === false).length;

  for (const [number, memory] of everything.entries()) {
    const { status, body } = await all.client.ask(all.client.byId(memory?.id ?? missingId(number)));
    const refusal = refusalById(rights, 'read', memory);
    expect(status, `get ${number}`).toBe(refusal === undefined ? 200 : refusal === 'not_found' ? 404 : 403);
    if (refusal === undefined) expect(body).toEqual(memory);
  }
  const compared: Compared = { all, some, rights, seeder, seen };
  for (const asked of questions) {
    const user_id = names[asked.user] as string;
    await sameList(asked, user_id, compared);
    await sameRanking(asked, user_id, compared);
    if (whole.capabilities.features.supports_audit) await sameAudit(asked.limit, user_id, compared);
  }
}

/** The records as they are in the end; undefined for those deleted. */
async function build(
  client: Client,
  records: Scene['records'],
  later: Scene['later'],
  names: readonly string[],
): Promise<(WireMemory | undefined)[]> {
  const built: (WireMemory | undefined)[] = [];
  for (const { user, expired, supersedes, ...fields } of records) {
    const older = supersedes.map((number) => built[number % records.length]?.id ?? missingId(number % records.length));
    const more = { user_id: names[user], supersedes: older, ...(expired && { valid_to: '2001-01-01' }) };
    built.push(await client.add({ ...fields, ...more }));
  }
  for (const { record, patch } of later) {
    const number = record % records.length;
    const { id } = built[number] ?? {};
    if (id === undefined) continue;
    if (patch === null) await client.remove(id);
    built[number] = patch === null ? undefined : await client.update(id, patch);
  }
  return built;
}

/** Only the visible ones, made anew in the same order. */
async function copy(
  client: Client,
  everything: readonly (WireMemory | undefined)[],
  visible: readonly (boolean | undefined)[],
): Promise<Library> {
  const original = everything.map((memory) => memory?.id);
  const ids: (string | undefined)[] = [];
  for (const [number, memory] of everything.entries()) {
    if (!memory || !visible[number]) {
      ids.push(undefined);
      continue;
    }
    const supersedes = memory.supersedes?.map((id) => {
      const place = original.indexOf(id);
      return ids[place] ?? (place >= 0 ? missingId(place) : id);
    });
    const { id: _, created_at: __, updated_at: ___, ...fields } = memory;
    ids.push((await client.add({ ...fields, supersedes })).id);
  }
  return { client, ids };
}

interface Compared {
  /** Everything, asked by the key. */
  readonly all: Library;
  /** What it may see, asked by somebody unrestricted. */
  readonly some: Library;
  readonly rights: Key;
  /** Everything, asked by somebody unrestricted. */
  readonly seeder: Client;
  readonly seen: Stores['seen'];
}

/** Page by page to the end; and from a cursor that somebody else got, who sees more. */
async function sameList({ glob, tag, limit }: Question, user_id: string, compared: Compared): Promise<void> {
  const { all, some, rights, seeder } = compared;
  const query = { user_id, scope: glob, tag, limit };
  const refusal = refusalOfQuery(rights, user_id, glob);
  if (await isRefused(compared, { path: '/memories', query, refusal })) return;
  const given = await pages(all, query);
  expect(given, `list ${JSON.stringify(query)}`).toEqual(await pages(some, query));

  const { items, next_cursor } = await seeder.list({ ...query, limit: 1 });
  if (next_cursor == null) return;
  const last = numberOf(all, items[0]?.id ?? '');
  const rest = given.flat().filter(({ record }) => Number(record) < last);
  const further = await all.client.list({ ...query, limit: 500, cursor: next_cursor });
  expect(
    further.items.map((memory) => plain(all, memory)),
    'after a cursor of somebody else',
  ).toEqual(rest);
}

async function pages(library: Library, query: Query): Promise<Plain[][]> {
  const found: Plain[][] = [];
  let cursor: string | null | undefined;
  do {
    const page: WirePage = await library.client.list({ ...query, cursor: cursor ?? undefined });
    found.push(page.items.map((memory) => plain(library, memory)));
    cursor = page.next_cursor;
  } while (cursor != null);
  return found;
}

async function sameRanking(asked: Question, user_id: string, compared: Compared): Promise<void> {
  const { all, some, rights } = compared;
  const { prefix: scope, q, limit, min_score, token_budget } = asked;
  const query = { user_id, scope, q, limit, min_score };
  const refusal = refusalOfQuery(rights, user_id, prefixGlob(scope));
  if (await isRefused(compared, { path: '/memories/search', query, refusal })) {
    const { status } = await all.client.tell('POST', '/context', { user_id, scope, query: q });
    expect(status, `context ${JSON.stringify(query)}`).toBe(403);
    return;
  }
  const hits = async (library: Library) => {
    const found: WireHit[] = await library.client.search(query);
    return found.map(({ memory, score }) => ({ score, ...plain(library, memory) }));
  };
  expect(await hits(all), `search ${JSON.stringify(query)}`).toEqual(await hits(some));

  const block = async (library: Library) => {
    const { citations, text, token_count }: WireContext = await library.client.context({
      user_id,
      scope,
      query: q,
      token_budget,
    });
    const lines = withoutDays(text);
    return {
      lines,
      token_count,
      citations: citations.map(({ memory_id, score }) => [numberOf(library, memory_id), score]),
    };
  };
  expect(await block(all), `context ${JSON.stringify(query)}`).toEqual(await block(some));
}

/** The audit log has a history that the second store lacks, so it is held against the plain filter of everything. */
async function sameAudit(limit: number, user_id: string, compared: Compared): Promise<void> {
  const { all, rights, seeder, seen } = compared;
  const query = { user_id, app: SEEDER, limit: 1_000 };
  const entries = (body: unknown) => (body as { entries: { action: string; scope: string | null }[] }).entries;
  // What the seeder reads is noted as well; only what it changed stands still.
  const changes = (body: unknown) => entries(body).filter(({ action }) => ['add', 'update', 'delete'].includes(action));
  const whole = changes((await seeder.ask('/audit', query)).body);
  if (await isRefused(compared, { path: '/audit', query, refusal: refusalOfQuery(rights, user_id) })) return;
  const due = whole.filter(({ scope }) => covers(rights, 'read', scope));
  expect(changes((await all.client.ask('/audit', query)).body), 'audit').toEqual(due);
  const head = entries((await all.client.ask('/audit', { ...query, limit })).body);
  expect(head.filter((entry) => !covers(rights, 'read', entry.scope))).toEqual([]);
  expect(head.length).toBeGreaterThanOrEqual(Math.min(limit, due.length));
  seen.entries += due.length;
}

interface Probe {
  readonly path: string;
  readonly query: Query;
  readonly refusal: string | undefined;
}

/** Whether a query is refused, which it has to be exactly when the rule says so. */
async function isRefused({ all, seen }: Compared, { path, query, refusal }: Probe): Promise<boolean> {
  const { status } = await all.client.ask(path, { ...query, limit: 1 });
  expect(status, `${path} ${JSON.stringify(query)}`).toBe(refusal === undefined ? 200 : 403);
  if (refusal !== undefined) seen.refused++;
  return refusal !== undefined;
}
