import { z } from 'zod';
import { type Call, type Memory, OmpError, type Ref } from '#contract';
import { recordBytes } from '#toolbox';
import type { Access } from '../../core/access.ts';
import { cursorKind, malformed, NO_TIME } from '../../core/cursor.ts';
import { MAX_ANSWER_BYTES, type SizedResult } from '../../core/read-shares.ts';
import { restoringPatch } from '../../core/restoring.ts';
import type { Store, StorePart, StoreReads } from '../../core/store.ts';
import { partsIn } from '../../stores/mount-stores.ts';
import { cursor, dateTime, leftOut, next_cursor, sourceText, userId, wholeNumber } from '../../verbs/fields.ts';
import { verb } from '../../verbs/verb.ts';
import { MemoryFields, memoryExample, toWire, withoutUndefined } from '../../verbs/wire-memory.ts';
import { isUndone, type Plan, planOf, type Undone, type Write, writeOf } from './plan.ts';

/*
 * Undoes what was written in a time, by a caller (Decision 56).
 */

const RollbackBody = z
  .object({
    since: dateTime.meta({
      description: 'Undoes what was written at or after this time, by the clock of the gateway.',
    }),
    until: dateTime.optional().meta({ description: 'At or before this time; default: until now.' }),
    key: sourceText.optional().meta({
      description:
        'By this caller: the name of a key or the subject of a token; empty: callers without one. Default: by anybody.',
    }),
    dry_run: z.boolean().default(false).meta({ description: 'Only says what would be done.' }),
    limit: wholeNumber('Maximum memories that a request looks at', 1, 500).default(100),
    cursor,
  })
  .meta({ id: 'Rollback' });

const ACTIONS = ['delete', 'restore', 'keep', 'deleted'] as const;
const REASONS = ['changed_since', 'no_version', 'rolled_back', 'unchanged', 'rejected'] as const;

interface Item {
  /** Null: all memories of the user, which were erased. */
  readonly id: string | null;
  readonly action: (typeof ACTIONS)[number];
  readonly reason?: (typeof REASONS)[number];
  readonly version?: number;
  /** As it was found. */
  readonly memory?: Memory;
}

const RollbackCursor = cursorKind<RollbackPlace>('rollback', {
  position: ({ at, created_at, id, start }) => ({ created_at, id: `${at}~${start}~${id}` }),
  place({ created_at, id: text }) {
    const [, at, start, id] = /^(\d{1,3})~(\d{1,14})~(.*)$/su.exec(text) ?? [];
    if (id === undefined) return undefined;
    return { at: Number(at), created_at, id, start: Number(start) };
  },
});

export const rollback = verb({
  name: 'rollback',
  method: 'POST',
  path: '/users/{id}/rollback',
  input: RollbackBody.extend({ id: userId.meta({ description: 'Id of the user.' }) }),
  body: { schema: RollbackBody, example: { since: memoryExample.created_at, key: 'crawler', dry_run: true } },
  needs: ['list', 'delete'],
  suits: canRollBack,
  writes: true,
  feature: 'rollback',
  demands: { write: 'all', delete: 'all', users: { in: 'id' }, trusted: true },
  facts: ({ id }, access) => access.facts({ user_id: id }),
  async run({ id: user_id, cursor, limit, dry_run, ...undone }, access, call) {
    const filters = { user_id, dry_run, ...withoutUndefined(undone) };
    const now = new Date();
    const from = RollbackCursor.read(cursor, filters) ?? beginning(now.getTime());
    const work = { user_id, undone: { ...undone, now: now.toISOString() }, dry_run, limit };
    const { items, next } = await access.shares.records(limit, call, () => rollBack(access, work, from, call));
    return {
      items: items.map(({ memory, ...item }) =>
        memory && access.admitsRead(memory.scope) ? { ...item, memory: toWire(memory) } : item,
      ),
      next_cursor: RollbackCursor.write(next, filters),
      deletes_known: access.auditQueue.read !== undefined,
    };
  },
  id: 'rollBack',
  summary: 'Undo what was written in a time, by a caller',
  description: `What was added is deleted, what was changed gets the version before back as a new version, unless somebody else has
changed it since. Each memory is undone in one step, with its own audit entry. Pass each \`next_cursor\` as \`cursor\` until it is null;
after an error, repeating the request goes on. Available if \`features.rollback\`
is true.`,
  success: {
    description: 'What was done, or would be.',
    schema: z
      .looseObject({
        items: z.array(
          z.looseObject({
            id: z.string().nullable().meta({ description: 'The memory; null: all memories of the user.' }),
            action: z.enum(ACTIONS).meta({
              description:
                '`delete`: it was added then. `restore`: it gets `version` back. `keep`: it stays as it is, for this `reason`. `deleted`: it was deleted then, which cannot be undone.',
            }),
            reason: z.enum(REASONS).optional().meta({
              description:
                '`changed_since`: by somebody else, last or in between. `no_version`: the version before is not known. `rolled_back`: already, or this caller has rolled it back, which only a restore undoes. `unchanged`: it says what it said before. `rejected`: the store does not take the version back.',
            }),
            version: z.int().optional().meta({ description: 'The version that it gets back.' }),
            memory: MemoryFields.optional().meta({ description: 'As it was found, if the caller may read it.' }),
          }),
        ),
        next_cursor,
        deletes_known: z.boolean().meta({
          description: 'False: the gateway has no audit log, so no item says what was deleted then.',
        }),
        ...leftOut,
      })
      .meta({ id: 'RollbackPage' }),
    example: {
      items: [{ id: memoryExample.id, action: 'delete', memory: memoryExample }],
      next_cursor: null,
      deletes_known: true,
    },
  },
});

/** Without versions, the times of a memory tell whether it was changed. */
function canRollBack({ list, delete: remove, update, versions, capabilities }: StoreReads): boolean {
  return remove !== undefined && (versions && update ? true : list !== undefined && capabilities.temporal);
}

/** Whether the store can tell what a rollback is about. */
const canTell = ({ store }: StorePart, { undone: { key } }: Work): boolean =>
  canRollBack(store) && (key === undefined || store.capabilities.stamped !== false);

/** Where a walk is: after this memory of the store at this place; after all stores, in the audit log. */
interface RollbackPlace {
  readonly at: number;
  readonly created_at: string;
  /** Empty: at the beginning. */
  readonly id: string;
  /** When the walk began, in epoch milliseconds: what it has deleted itself is no news. */
  readonly start: number;
}

const beginning = (start: number, at = 0): RollbackPlace => ({ at, created_at: NO_TIME, id: '', start });

interface Work {
  readonly user_id: string;
  readonly undone: Undone;
  readonly dry_run: boolean;
  readonly limit: number;
}

type Rollable = Access & { readonly store: Required<Pick<Store, 'delete'>> };

/** One page: store after store, then what was deleted. Ends early, when it holds enough, or half of the request's time has passed. */
async function rollBack(
  access: Rollable,
  work: Work,
  from: RollbackPlace,
  call: Call,
): Promise<SizedResult<{ items: Item[]; next: RollbackPlace | undefined }>> {
  const parts = partsIn(access.store);
  if (!parts.some((part) => canTell(part, work))) throw access.unsupported(NO_ORIGINS);
  const end = call.deadline === undefined ? Number.POSITIVE_INFINITY : (performance.now() + call.deadline) / 2;
  const items: Item[] = [];
  let bytes = 0;
  let looked = 0;
  const isFull = () => looked >= work.limit || bytes >= MAX_ANSWER_BYTES || performance.now() > end;
  let place = from;
  for (let part = parts[place.at]; part && !isFull(); part = parts[place.at]) {
    const found = await candidatesIn(part, { ...work, limit: work.limit - looked }, place, call);
    if (found.length === 0) place = beginning(place.start, place.at + 1);
    for (const { id, created_at, memory } of found) {
      if (isFull()) break;
      const item = await undo(access, part.store, { ...work, id, memory }, call);
      if (item) items.push(item);
      if (item?.memory) bytes += recordBytes(item.memory);
      place = { ...place, created_at, id };
      looked++;
    }
  }
  if (place.at < parts.length) return { result: { items, next: place }, count: items.length, bytes };
  const { deleted, next } = await deletedIn(access, work, place, call);
  return { result: { items: [...items, ...deleted], next }, count: items.length, bytes };
}

const NO_ORIGINS = 'rollback of a key: its memories do not say who wrote them; leave out key';

interface Candidate {
  readonly id: string;
  readonly created_at: string;
  /** Undefined: not read yet. */
  readonly memory?: Memory;
}

/** Memories that may have something to undo. An answer says which stores cannot, and which optional ones do not answer. */
async function candidatesIn(
  part: StorePart,
  work: Work,
  { created_at, id }: RollbackPlace,
  call: Call,
): Promise<readonly Candidate[]> {
  const { user_id, limit } = work;
  const { since, key } = work.undone;
  const { versions, list } = part.store;
  if (!canTell(part, work)) {
    call.leaveOut('x-without', part.name);
    return [];
  }
  const found = await part.ask(call, async (own): Promise<Candidate[]> => {
    if (versions?.writtenIn) {
      // Without `until`: a later time may follow a forged one.
      const query = { user_id, since, key: key === '' ? null : key, after: id || undefined, limit };
      return (await versions.writtenIn(query, own)).map((one) => ({ id: one, created_at: NO_TIME }));
    }
    const after = id === '' ? {} : { after: { created_at, id } };
    const query = { user_id, tags: [], within: null, limit, max_bytes: MAX_ANSWER_BYTES, ...after };
    const memories = (await list?.(query, own)) ?? [];
    return memories.map((memory) => ({ id: memory.id, created_at: memory.created_at, memory }));
  });
  return found?.result ?? [];
}

/** How often a memory is looked at, if others keep changing it. */
const ATTEMPTS = 5;

/** Undoes what was written to one memory. Undefined: nothing was, or it does not exist any more. */
async function undo(
  access: Rollable,
  part: StoreReads,
  { id, user_id, undone, dry_run, memory: listed }: Work & { readonly id: string; readonly memory: Memory | undefined },
  call: Call,
): Promise<Item | undefined> {
  const ref = access.ref({ id, user_id }, 'any');
  const { get, versions } = access.store;
  const reader = { get, versions: part.versions && versions };
  for (let attempt = 1; ; attempt++) {
    const known = part.versions || attempt > 1 ? undefined : listed;
    const history = await historyOf(reader, ref, known, call);
    const plan = history && (planOf(history.writes, undone) ?? changedSince(history, part, undone));
    if (!plan) return undefined;
    const { memory } = history;
    access.writable(memory, user_id);
    const exact = part.capabilities.etags ? { ...ref, versions: [memory.updated_at] } : ref;
    try {
      const done = await carryOut(access, { plan, memory, ref: exact, dry_run }, call);
      return done && { id, ...done, memory };
    } catch (error) {
      if (!(error instanceof OmpError)) throw error;
      if (error.version !== undefined && attempt < ATTEMPTS) continue;
      if (error.version !== undefined) return { id, action: 'keep', reason: 'changed_since', memory };
      if (!REJECTIONS.has(error.code)) throw error;
      return { id, action: 'keep', reason: 'rejected', memory };
    }
  }
}

/** Errors that this memory would cause again: they must not keep a rollback from the others. */
const REJECTIONS: ReadonlySet<string> = new Set(['invalid_request', 'unsupported_capability', 'payload_too_large']);

interface History {
  readonly memory: Memory;
  /** Newest first. */
  readonly writes: readonly Write[];
}

/** Versions that are read at once. */
const VERSIONS = 100;

/** Undefined: there is no such memory. `known`: the memory, of a store without versions. */
async function historyOf(
  { get, versions }: Pick<Store, 'get' | 'versions'>,
  ref: Ref,
  known: Memory | undefined,
  call: Call,
): Promise<History | undefined> {
  if (!versions) {
    const memory = known ?? (await get(ref, call));
    return memory && { memory, writes: [writeOf(1, memory)] };
  }
  const query = { ref, limit: VERSIONS, max_bytes: MAX_ANSWER_BYTES };
  let page = await versions.list(query, call);
  if (!page) return undefined;
  const { current, version } = page;
  const writes = [writeOf(version, current)];
  while (page && page.versions.length > 0) {
    // The memory may have been changed between two pages: then its `updated_at` is another one, and the change is rejected.
    writes.push(...page.versions.map((one) => writeOf(one.version, one.memory)));
    page = await versions.list({ ...query, before: writes.at(-1)?.version }, call);
  }
  return { memory: current, writes };
}

/** Without versions, who has added a memory is not known any more once somebody else has changed it. */
function changedSince({ memory }: History, { versions }: StoreReads, undone: Undone): Plan | undefined {
  const first = { version: 1, at: memory.created_at, origin: undefined, writesAll: true };
  return !versions && isUndone(first, undone) ? { action: 'keep', reason: 'changed_since' } : undefined;
}

/** Does what the plan says; undefined: the memory does not exist any more. Throws `versionChanged`. */
async function carryOut(
  access: Rollable,
  { plan, memory, ref, dry_run }: { plan: Plan; memory: Memory; ref: Ref; dry_run: boolean },
  call: Call,
): Promise<Omit<Item, 'id' | 'memory'> | undefined> {
  const { store } = access;
  if (plan.action === 'keep') return plan;
  if (plan.action === 'delete') return dry_run || (await store.delete(ref, call)) ? plan : undefined;
  const { version } = plan;
  const page = await store.versions?.list({ ref, before: version + 1, limit: 1, max_bytes: 1 }, call);
  const before = page?.versions.find((one) => one.version === version)?.memory;
  if (!before) return page && { action: 'keep', reason: 'no_version' };
  const patch = restoringPatch(memory, before);
  if (!patch) return { action: 'keep', reason: 'unchanged' };
  return dry_run || (await access.through('rollback', version).update?.({ ref, patch }, call)) ? plan : undefined;
}

/** Audit entries that one request looks at. */
const ENTRIES = 1_000;

/** What was deleted in that time, as far as the audit log says: newest first. */
async function deletedIn(
  access: Access,
  { user_id, undone: { since, until, key } }: Work,
  place: RollbackPlace,
  call: Call,
): Promise<{ deleted: Item[]; next: RollbackPlace | undefined }> {
  const { read } = access.auditQueue;
  if (!read) return { deleted: [], next: undefined };
  const seq = Number(place.id);
  if (!Number.isSafeInteger(seq)) throw malformed();
  const after = place.id === '' ? {} : { after: { timestamp: place.created_at, seq } };
  const before = new Date(place.start - 1).toISOString();
  const filters = {
    user_id,
    since,
    until: until && until < before ? until : before,
    ...(key && { app: key }),
    ...after,
  };
  const entries = await read({ ...filters, within: access.bounds.within, limit: ENTRIES }, call);
  for (const entry of entries) access.readable(entry, user_id);
  const last = entries.length === ENTRIES ? entries.at(-1) : undefined;
  return {
    deleted: entries
      .filter(({ action, outcome, app }) => outcome === 'ok' && DELETES.has(action) && (key !== '' || app === null))
      .map(({ memory_id }) => ({ id: memory_id, action: 'deleted' })),
    next: last && { ...place, created_at: last.timestamp, id: String(last.seq) },
  };
}

const DELETES: ReadonlySet<string> = new Set(['delete', 'erase']);
