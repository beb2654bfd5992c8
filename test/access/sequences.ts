import { randomUUID } from 'node:crypto';
import fc from 'fast-check';
import { expect } from 'vitest';
import type { Client, Reply } from '../support/client.ts';
import type { Subject } from '../support/subject.ts';
import type { WireMemory, WirePage } from '../support/wire.ts';
import { type Backdoor, bearer, clientWith } from './callers.ts';
import * as random from './random.ts';
import { covers, type Key, reaches, sees } from './rule.ts';

/** By number: a record there is, or one more than there are, which names nothing. */
const record = fc.nat({ max: 30 });
const step = fc.oneof(
  fc.record({ do: fc.constant('add' as const), user: random.person, scope: random.maybe(random.scope) }),
  fc.record({
    do: fc.constant('patch' as const),
    record,
    fields: fc.record({ scope: random.scope, content: random.text }, { requiredKeys: [] }),
  }),
  fc.record({ do: fc.constant('delete' as const), record }),
  fc.record({ do: fc.constant('get' as const), record }),
  fc.record({ do: fc.constant('list' as const), user: random.person, scope: random.maybe(random.glob) }),
  fc.record({ do: fc.constant('search' as const), user: random.person, scope: random.maybe(random.prefix) }),
  fc.record({ do: fc.constant('context' as const), user: random.person, scope: random.maybe(random.prefix) }),
  fc.record({ do: fc.constant('audit' as const), user: random.person }),
);
type Step = typeof step extends fc.Arbitrary<infer T> ? T : never;

export const plot = fc.record({
  records: fc.array(random.record, { minLength: 8, maxLength: 16 }),
  key: random.keyWith(['read', 'write', 'write', 'delete', 'delete', '*']),
  steps: fc.array(step, { minLength: 15, maxLength: 40 }),
});
type Plot = typeof plot extends fc.Arbitrary<infer T> ? T : never;

export interface Stage {
  readonly subject: Subject;
  readonly door: Backdoor;
  /** How often something happened that the check is about. */
  readonly seen: { changed: number; refused: number; outside: number; revealed: number };
}

/** Each record carries a word of its own, so that whatever shows a part of it is found out. */
const markOf = (number: number): string => `mark${number}mark`;
const MARK = /mark(\d+)mark/g;
const UNKNOWN_ID = 'mem_01HZZZZZZZZZZZZZZZZZZZZZZZ';

/**
 * Plays a sequence of requests of one key. No answer may hold anything of a record the key may not see at that moment,
 * and in the end everything it may neither write nor delete is as it was, byte for byte.
 */
export async function checkSequence({ records, key, steps }: Plot, { subject, door, seen }: Stage): Promise<void> {
  const names = random.namesOf(randomUUID());
  const rights = random.keyOf(key, names);
  const master = clientWith(subject, bearer(door.admit('master')));
  const client = clientWith(subject, bearer(door.admit('player', rights)));
  const current: (WireMemory | undefined)[] = [];
  for (const [number, { user, scope, content }] of records.entries()) {
    current.push(await master.add({ user_id: names[user], scope, content: `${content} ${markOf(number)}` }));
  }
  const before = await snapshot(master, names);

  for (const [place, wanted] of steps.entries()) {
    const number = 'record' in wanted ? wanted.record % (current.length + 1) : current.length;
    const label = `step ${place}, ${JSON.stringify(wanted)}`;
    const shown = current.map((memory, at) => (memory && sees(rights, memory) ? at : undefined));
    const reply = await perform(wanted, current[number]?.id ?? UNKNOWN_ID, { client, names, number: current.length });
    expect([200, 201, 204, 403, 404, 400], label).toContain(reply.status);
    if (reply.status >= 400) seen.refused++;
    if (wanted.do === 'add') current.push(reply.status === 201 ? (reply.body as WireMemory) : undefined);
    if (reply.status < 300 && wanted.do === 'patch') current[number] = reply.body as WireMemory;
    if (reply.status < 300 && wanted.do === 'delete') current[number] = undefined;
    // Who may write a record sees what became of it.
    const own = wanted.do === 'add' ? current.length - 1 : wanted.do === 'patch' ? number : undefined;
    const told = new Set([...reply.text.matchAll(MARK)].map(([, at]) => Number(at)));
    for (const at of told) {
      expect(at === own || shown.includes(at), `${label} shows record ${at}`).toBe(true);
      seen.revealed++;
    }
    if (wanted.do === 'audit' && reply.status === 200) expectWithin(reply, rights, label);
  }
  await expectUntouched(before, await snapshot(master, names), { rights, seen });
}

interface Player {
  readonly client: Client;
  readonly names: readonly string[];
  /** Of the record that is added next. */
  readonly number: number;
}

function perform(wanted: Step, id: string, { client, names, number }: Player): Promise<Reply> {
  const { ask, tell, byId } = client;
  switch (wanted.do) {
    case 'add': {
      const { user, scope } = wanted;
      return tell('POST', '/memories', { user_id: names[user], scope, content: `coffee ${markOf(number)}` });
    }
    case 'patch': {
      const { content, ...fields } = wanted.fields;
      return tell('PATCH', byId(id), { ...fields, ...(content && { content: `${content} changed` }) });
    }
    case 'delete':
      return tell('DELETE', byId(id));
    case 'get':
      return ask(byId(id));
    case 'list':
      return ask('/memories', { user_id: names[wanted.user], scope: wanted.scope });
    case 'search':
      return ask('/memories/search', { user_id: names[wanted.user], scope: wanted.scope, q: 'coffee', limit: 100 });
    case 'context':
      return tell('POST', '/context', { user_id: names[wanted.user], scope: wanted.scope, query: 'coffee' });
    case 'audit':
      return ask('/audit', { user_id: names[wanted.user] });
  }
}

/** An entry is seen by whoever may read the scope it is about. */
function expectWithin({ body }: Reply, rights: Key, label: string): void {
  const { entries } = body as { entries: { scope: string | null }[] };
  expect(
    entries.filter(({ scope }) => !covers(rights, 'read', scope)),
    label,
  ).toEqual([]);
}

type Snapshot = ReadonlyMap<string, WireMemory>;

async function snapshot(master: Client, names: readonly string[]): Promise<Snapshot> {
  const pages: WirePage[] = await Promise.all(names.map((user_id) => master.list({ user_id, limit: 500 })));
  return new Map(pages.flatMap(({ items }) => items).map((memory) => [memory.id, memory]));
}

interface Judged {
  readonly rights: Key;
  readonly seen: Stage['seen'];
}

async function expectUntouched(before: Snapshot, after: Snapshot, { rights, seen }: Judged): Promise<void> {
  const mayWrite = ({ user_id, scope = null }: WireMemory) =>
    reaches(rights, user_id) && covers(rights, 'write', scope);
  const mayDelete = ({ user_id, scope = null }: WireMemory) =>
    reaches(rights, user_id) && covers(rights, 'delete', scope);
  for (const [id, memory] of before) {
    const same = JSON.stringify(after.get(id)) === JSON.stringify(memory);
    if (!same) seen.changed++;
    if (mayWrite(memory) || mayDelete(memory)) continue;
    seen.outside++;
    expect(JSON.stringify(after.get(id)), 'a record outside of the grant').toBe(JSON.stringify(memory));
  }
  for (const [id, memory] of after) {
    const same = JSON.stringify(before.get(id)) === JSON.stringify(memory);
    if (!same) expect(mayWrite(memory), `changed or new: ${JSON.stringify(memory)}`).toBe(true);
    expect(before.get(id)?.user_id ?? memory.user_id, 'the owner').toBe(memory.user_id);
  }
}
