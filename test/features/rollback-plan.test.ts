import { describe, expect, it } from 'vitest';
import { type Memory, ORIGIN, type Origin } from '#contract';
import { newRecord } from '#toolbox';
import { type Plan, planOf, type Undone, writeOf } from '../../src/features/rollback/plan.ts';
import { memoryOf } from '../support/requests.ts';

const SINCE = '2026-03-02T00:00:00.000Z';
const UNTIL = '2026-03-03T00:00:00.000Z';
const NOW = '2026-03-05T00:00:00.000Z';

/** A write of a caller in the time or out of it; or a rollback of this time, of one caller or of both. */
type Event = { readonly by: 'a' | 'b'; readonly isThen: boolean } | { readonly rollback: 'a' | 'b' | undefined };

const EVENTS: readonly Event[] = [
  ...(['a', 'b'] as const).flatMap((by) => [true, false].map((isThen) => ({ by, isThen }))),
  ...(['a', 'b', undefined] as const).map((rollback) => ({ rollback })),
];
const CALLERS = ['a', 'b', undefined] as const;

function* histories(length: number): Generator<readonly Event[]> {
  if (length === 0) return yield [];
  for (const before of histories(length - 1)) for (const event of EVENTS) yield [...before, event];
}

interface Version {
  readonly version: number;
  readonly memory: Memory;
  readonly event: Event;
}

const hits = ({ event }: Version, caller: 'a' | 'b' | undefined): boolean =>
  'by' in event && event.isThen && (caller === undefined || event.by === caller);

/** What is there after the events: all versions, and the writes that made the last one. Undefined: it was deleted meanwhile. */
function happen(events: readonly Event[]): { readonly versions: Version[]; readonly standing: Version[] } | undefined {
  const versions: Version[] = [];
  let standing: Version[] = [];
  const write = (event: Event, origin: Origin): Version => {
    const version = versions.length + 1;
    const day = 'by' in event && !event.isThen ? (version % 2 === 0 ? '01' : '04') : '02';
    const at = `2026-03-${day}T00:00:0${version}.000Z`;
    const created_at = versions[0]?.memory.created_at ?? at;
    const memory = newRecord(memoryOf('u', `version ${version}`, { extensions: { [ORIGIN]: origin } }), null, {
      id: 'mem_1',
      created_at,
    });
    const made = { version, memory: { ...memory, updated_at: at }, event };
    versions.push(made);
    return made;
  };
  for (const event of events) {
    if ('by' in event) {
      standing.push(write(event, { key: event.by, via: 'http' }));
      continue;
    }
    if (versions.length === 0) return undefined;
    const rest = [...standing];
    for (let last = rest.at(-1); last && hits(last, event.rollback); last = rest.at(-1)) rest.pop();
    // What would be left builds on what is to be undone.
    if (rest.length === standing.length || rest.some((one) => hits(one, event.rollback))) continue;
    const [restored] = rest.slice(-1);
    if (!restored) return undefined;
    standing = rest;
    write(event, { key: 'operator', via: 'rollback', version: restored.version });
  }
  return { versions, standing };
}

/** In plain words, from all that happened. `known`: how many versions are kept. */
function due(
  { versions, standing }: NonNullable<ReturnType<typeof happen>>,
  caller: 'a' | 'b' | undefined,
  known: number,
): Plan | undefined {
  const isKept = ({ version }: Version) => version > versions.length - known;
  const hit = versions.filter((one) => isKept(one) && hits(one, caller));
  if (hit.length === 0) return undefined;
  // What stands below a version that is gone is not known.
  const lost = standing.findLastIndex((one) => !isKept(one));
  const seen = standing.slice(lost + 1);
  if (!seen.some((one) => hits(one, caller))) return { action: 'keep', reason: 'rolled_back' };
  if (!hits(seen.at(-1) as Version, caller)) return { action: 'keep', reason: 'changed_since' };
  const before = seen.findLastIndex((one) => !hits(one, caller));
  const [oldest, restored] = [seen[0], seen[before]];
  if (oldest && restored) {
    if (seen.slice(0, before).some((one) => hits(one, caller))) return { action: 'keep', reason: 'changed_since' };
    const hidesSome = lost >= 0 && oldest.memory.updated_at >= SINCE;
    return hidesSome ? { action: 'keep', reason: 'no_version' } : { action: 'restore', version: restored.version };
  }
  return lost < 0 ? { action: 'delete' } : { action: 'keep', reason: 'no_version' };
}

describe('[Decision 56] what becomes of a memory', () => {
  it.for([1, 2, 3, 4])('after %i writes and rollbacks of two callers, in the time and out of it', (length) => {
    const seen = new Set<string>();
    for (const events of histories(length)) {
      const world = happen(events);
      if (!world || world.versions.length === 0) continue;
      for (const known of [1, 2, 4]) {
        for (const caller of CALLERS) {
          const undone: Undone = { since: SINCE, until: UNTIL, key: caller, now: NOW };
          const writes = world.versions.slice(-known).map(({ version, memory }) => writeOf(version, memory));
          const plan = planOf(writes.reverse(), undone);
          expect(plan, JSON.stringify({ events, known, caller })).toEqual(due(world, caller, known));
          if (plan) seen.add(plan.action === 'keep' ? plan.reason : plan.action);
        }
      }
    }
    if (length === 4)
      expect([...seen].sort()).toEqual(['changed_since', 'delete', 'no_version', 'restore', 'rolled_back']);
  });

  const TIMES = { created_at: '2026-03-02T00:00:00.000Z', updated_at: '2026-03-02T00:00:00.000Z' };
  const memory = (origin: Origin | undefined, times: Partial<typeof TIMES> = {}): Memory => ({
    ...newRecord(memoryOf('u', 'x', { extensions: origin ? { [ORIGIN]: origin } : {} }), null, {
      id: 'mem_1',
      created_at: TIMES.created_at,
    }),
    ...TIMES,
    ...times,
  });
  const undone = { since: SINCE, until: UNTIL, now: NOW };
  const planned = (one: Memory, key?: string) => planOf([writeOf(1, one)], { ...undone, key });

  it('an imported memory counts with the time of its import, whatever times its file states', () => {
    const forged = { created_at: '2001-01-01T00:00:00.000Z', updated_at: '2001-01-02T00:00:00.000Z' };
    const origin: Origin = { key: 'mover', via: 'import', at: '2026-03-02T10:00:00.000Z' };
    expect(planned(memory(origin, forged), 'mover')).toEqual({ action: 'delete' });
    expect(planned(memory({ ...origin, at: '2026-03-04T00:00:00.000Z' }), 'mover')).toBeUndefined();
  });

  it('an import whose versions are numbered by its file is deleted, unless the version before it is known', () => {
    const origin: Origin = { key: 'mover', via: 'import', at: '2026-03-02T10:00:00.000Z' };
    const writes = [writeOf(9, memory(origin)), writeOf(8, memory(origin))];
    const before = writeOf(7, memory({ key: 'editor', via: 'http' }, { updated_at: '2026-03-01T00:00:00.000Z' }));
    expect(planOf(writes, { ...undone, key: 'mover' })).toEqual({ action: 'delete' });
    expect(planOf([...writes, before], { ...undone, key: 'mover' })).toEqual({ action: 'restore', version: 7 });
  });

  it('an import that replaced a memory is not deleted', () => {
    const origin: Origin = { key: 'mover', via: 'import', at: '2026-03-02T10:00:00.000Z', replaced: true };
    expect(planned(memory(origin), 'mover')).toEqual({ action: 'keep', reason: 'no_version' });
  });

  it('what is below an import does not count: it wrote all of the memory', () => {
    const by = (version: number, key: string, via: Origin['via'] = 'http') =>
      writeOf(version, memory({ key, via, ...(via === 'import' && { replaced: true }) }));
    const writes = [by(4, 'bad'), by(3, 'mover', 'import'), by(2, 'bad'), by(1, 'good')];
    for (const known of [2, 3, 4])
      expect(planOf(writes.slice(0, known), { ...undone, key: 'bad' })).toEqual({ action: 'restore', version: 3 });
  });

  it('a change that follows a forged time yet to come is not hidden by it', () => {
    const later = memory({ key: 'a', via: 'http' }, { updated_at: '2099-01-01T00:00:00.001Z' });
    expect(planned(later, 'a')).toEqual({ action: 'keep', reason: 'no_version' });
    expect(planned(later, 'b')).toBeUndefined();
  });

  it('a rollback by the caller is told of, and not undone', () => {
    const writes = [
      writeOf(3, memory({ key: 'bad', via: 'rollback', version: 1 })),
      ...[2, 1].map((version) => writeOf(version, memory({ key: 'good', via: 'http' }))),
    ];
    expect(planOf(writes, { ...undone, key: 'bad' })).toEqual({ action: 'keep', reason: 'rolled_back' });
    expect(planOf(writes, { ...undone, key: 'other' })).toBeUndefined();
  });

  it('a memory whose origin is unknown is of everybody, and of no caller', () => {
    expect(planned(memory(undefined))).toEqual({ action: 'delete' });
    for (const key of ['', 'a']) expect(planned(memory(undefined), key)).toBeUndefined();
    expect(planned(memory({ via: 'http' }), '')).toEqual({ action: 'delete' });
    expect(planned(memory({ via: 'http' }), 'a')).toBeUndefined();
  });

  it('a first version that was changed before versions were kept is not deleted', () => {
    const changed = memory({ key: 'a', via: 'http' }, { created_at: '2025-01-01T00:00:00.000Z' });
    expect(planned(changed, 'a')).toEqual({ action: 'keep', reason: 'no_version' });
  });

  it('an origin that another application wrote leads nowhere', () => {
    for (const version of [1, 2, Number.NaN, -1]) {
      const origin = { key: 'a', via: 'rollback', version } as Origin;
      const writes = [writeOf(1, memory(origin)), writeOf(0, memory({ key: 'a', via: 'http' }))];
      const reason = version === -1 ? 'rolled_back' : 'no_version';
      expect(planOf(writes, { ...undone, key: 'a' })).toEqual({ action: 'keep', reason });
    }
  });
});
