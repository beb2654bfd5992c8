import {
  type BatchOutcome,
  backgroundCall,
  type Call,
  erasedFrom,
  type Freeze,
  type Freezing,
  type ImportRequest,
  invalidRequest,
  type Log,
  type Memory,
  OmpError,
  type VersionStore,
} from '#contract';
import { isSameRecord } from '#toolbox';
import { readBack, type StoreErasure } from '../core/erasure.ts';
import type { Store } from '../core/store.ts';
import { idPrefix } from './at-mount.ts';
import { type Changed, createEntries, type Entries, LONGEST_CHANGE_MS } from './audit-entries.ts';
import { isOutage } from './optional.ts';
import { callOf, lacking, type Part, type PartWith, withMember } from './parts.ts';

/*
 * Changes: each record is changed in its store, and the entries of the audit log are written to that of the root store before the
 * answer (Decision 49).
 */

export interface Routes {
  readonly parts: readonly Part[];
  ofScope(scope: string | null): Part;
  ofId(id: string): Part;
}

const WRITES = ['add', 'update', 'delete', 'import', 'erase'] as const;

/** Freezes all stores that can be written, or none. */
export function freezingOf(parts: readonly Part[]): Freezing {
  /** Throws `unsupported_capability` that names a store which cannot be frozen. */
  const freezings = () =>
    parts
      .filter(({ store }) => WRITES.some((member) => store[member] !== undefined))
      .map((part) => withMember(part, 'freezing').store.freezing);
  const first = (freezes: readonly (Freeze | undefined)[]) => freezes.find((freeze) => freeze !== undefined);
  return {
    current: async (call) => first(await Promise.all(freezings().map((one) => one.current(call)))),
    async freeze(request, call) {
      const all = freezings();
      const before = await Promise.all(all.map((one) => one.current(call)));
      try {
        return (await Promise.all(all.map((one) => one.freeze(request, call))))[0] as Freeze;
      } catch (error) {
        // Those that were not frozen before take changes again.
        const undo = all.filter((_, at) => before[at] === undefined);
        await Promise.allSettled(undo.map((one) => one.unfreeze(backgroundCall('unfreeze'))));
        throw error;
      }
    },
    /** All that answer take changes again, even if one does not. */
    async unfreeze(call) {
      const results = await Promise.allSettled(freezings().map((one) => one.unfreeze(call)));
      const failure = results.find((result) => result.status === 'rejected');
      if (failure) throw failure.reason;
      return first(results.map((result) => (result.status === 'fulfilled' ? result.value : undefined)));
    },
  };
}

/** The writing methods of all stores together. `root`: the root store, with what mounts hide in it. */
export function createWrites(
  { parts, ofScope, ofId }: Routes,
  root: Store,
  log: Log,
): Pick<Required<Store>, 'add' | 'batch' | 'update' | 'delete' | 'import' | 'erase' | 'close'> &
  Pick<VersionStore, 'purge'> {
  const entries = createEntries(root.audit, log);
  const { record, recordUnchanged, toItsEnd, needsEntry, close } = entries;

  return {
    async add({ input, key, limits }, call) {
      const part = withMember(ofScope(input.scope), 'add');
      return toItsEnd(part, call, async (own) => {
        let isRepeat = false;
        const onRepeat = () => {
          isRepeat = true;
        };
        const memory = await part.store.add({ input, key, onRepeat, limits }, own);
        await (isRepeat ? recordUnchanged : record)(part, 'add', [memory], own);
        return memory;
      });
    },

    async batch({ inputs, key, limits }, call) {
      const owners = inputs.map((input) => input && ofScope(input.scope));
      const outcomes: (BatchOutcome | undefined)[] = inputs.map(() => undefined);
      const addTo = async (part: Part) => {
        const own = inputs.map((input, place) => (owners[place] === part ? input : undefined));
        const added = await outcomeOf(async () => {
          const { store } = withMember(part, 'batch');
          return toItsEnd(part, call, async (ownCall) => {
            const repeats = new Set<number>();
            const onRepeat = (place: number) => repeats.add(place);
            const results = await store.batch({ inputs: own, key, onRepeat, limits }, ownCall);
            const added = (areRepeats: boolean) =>
              results.filter((_, place) => repeats.has(place) === areRepeats).filter(isMemory);
            await Promise.all([
              recordUnchanged(part, 'add', added(true), ownCall),
              record(part, 'add', added(false), ownCall),
            ]);
            return results;
          });
        });
        for (const place of own.keys()) {
          if (own[place]) outcomes[place] = added instanceof OmpError ? added : added[place];
        }
        return added;
      };
      const groups = await Promise.all([...new Set(owners)].filter((part) => part !== undefined).map(addTo));
      const failure = groups.find((one) => one instanceof OmpError);
      if (failure && !outcomes.some(isMemory)) throw failure;
      return outcomes;
    },

    async update({ ref, patch, limits }, call) {
      const part = withMember(ofId(ref.id), 'update');
      const own = callOf(part, call);
      const target = patch.scope === undefined ? part : ofScope(patch.scope);
      if (target.index !== part.index) {
        // An id that the caller may not change is answered as everywhere else.
        if (!(await part.store.get(ref, own))) return undefined;
        throw invalidRequest(
          `scope: it belongs to the store ${target.name}, and the memory is in ${part.name}; add it there and delete it here`,
        );
      }
      const change = async (ownCall: Call) => {
        const old = needsEntry(part) ? await part.store.get(ref, ownCall) : undefined;
        const memory = await part.store.update({ ref, patch, limits }, ownCall);
        if (!memory) return undefined;
        // Not by `updated_at`, which a mapped table may lack.
        if (isSameRecord(memory, old)) await recordUnchanged(part, 'update', [memory], ownCall);
        else await record(part, 'update', [{ ...memory, left_scopes: leftBy(old, memory) }], ownCall);
        return memory;
      };
      return toItsEnd(part, call, change, [ref.id]);
    },

    async delete(ref, call) {
      const part = withMember(ofId(ref.id), 'delete');
      const change = async (ownCall: Call) => {
        if (!needsEntry(part)) return part.store.delete(ref, ownCall);
        // The entry of the audit log needs its user and scope.
        const memory = await part.store.get(ref, ownCall);
        if (!memory || !(await part.store.delete(ref, ownCall))) return false;
        await record(part, 'delete', [memory], ownCall);
        return true;
      };
      return toItsEnd(part, call, change, [ref.id]);
    },

    purge: purgeWith(ofId, entries),

    async import({ items, replace }, call) {
      const owners = items.map(({ memory }) => ofId(memory.id));
      const outcomes: (boolean | OmpError)[] = items.map(({ memory, versions = [] }, place) => {
        const owner = owners[place] as Part;
        const scopes = [memory, ...versions.map((one) => one.memory)].map(({ scope }) => scope);
        const target = scopes.map(ofScope).find(({ index }) => index !== owner.index);
        return target ? elsewhere(owner, target) : !owner.store.import && lacking(owner, 'import');
      });
      const importTo = async (part: Part) => {
        const places = [...items.keys()].filter((place) => owners[place] === part && outcomes[place] === false);
        if (places.length === 0) return;
        const own: ImportRequest = { items: places.map((place) => items[place] as (typeof items)[number]), replace };
        const { store } = withMember(part, 'import');
        const change = async (ownCall: Call) => {
          const replaced = replace && needsEntry(part);
          const anywhere = { users: null, within: null };
          const olds = await Promise.all(
            own.items.map(({ memory }) => (replaced ? store.get({ id: memory.id, ...anywhere }, ownCall) : undefined)),
          );
          const results = await store.import(own, ownCall);
          const stored: Changed[] = [];
          for (const [i, place] of places.entries()) {
            outcomes[place] = results[i] as boolean | OmpError;
            const { memory } = own.items[i] as (typeof items)[number];
            if (results[i] === true) stored.push({ ...memory, left_scopes: leftBy(olds[i], memory) });
          }
          await record(part, 'import', stored, ownCall);
        };
        const ids = own.items.map(({ memory }) => memory.id);
        await toItsEnd(part, call, change, ids);
      };
      await Promise.all([...new Set(owners)].map(importTo));
      return outcomes;
    },

    erase: eraseWith(parts, root, entries),

    close,
  };
}

const purgeWith =
  (ofId: Routes['ofId'], { recordUnchanged, toItsEnd, needsEntry }: Entries): VersionStore['purge'] =>
  (ref, call) => {
    const part = withMember(ofId(ref.id), 'versions');
    const change = async (ownCall: Call) => {
      // The entry of the audit log needs its user and scope.
      const memory = needsEntry(part) ? await part.store.get(ref, ownCall) : undefined;
      const purged = await part.store.versions.purge(ref, ownCall);
      if (memory && purged !== undefined) await recordUnchanged(part, 'purge', [memory], ownCall);
      return purged;
    };
    return toItsEnd(part, call, change, [ref.id]);
  };

/** In every store, even if one fails: repeating it goes on. The root store comes last, whose entry is that of the request. */
const eraseWith =
  (parts: readonly Part[], root: Store, { record, toItsEnd, needsEntry }: Entries): NonNullable<Store['erase']> =>
  async ({ user_id }, call) => {
    const [rootPart, ...mounted] = parts as [Part, ...Part[]];
    const running = new Set<string>();
    const eraseIn = async (part: Part): Promise<StoreErasure | OmpError> =>
      outcomeOf(async () => {
        if (part.store.erase) {
          const { store } = part as PartWith<'erase'>;
          const eraseAll = async (ownCall: Call) => {
            const scopes = needsEntry(part) ? await scopesOf(part, user_id, ownCall) : [];
            const [one] = (await store.erase({ user_id }, ownCall)) as [StoreErasure];
            if (one.removed.memories) await record(part, 'erase', erasedFrom(user_id, scopes), ownCall);
            return { ...one, name: part.name };
          };
          return toItsEnd(part, call, (ownCall) => {
            running.add(part.name);
            return eraseAll(ownCall).finally(() => running.delete(part.name));
          });
        }
        // What a mount hides in the root store is erased too.
        const { capabilities, list } = part === rootPart ? root : part.store;
        const found = await readBack({ capabilities, list }, { user_id }, callOf(part, call));
        if (found.left.memories === 0) return { name: part.name, removed: {}, ...found };
        throw lacking(part, 'erase');
      });
    const outcomes = await Promise.all(mounted.map(async (part) => ({ part, outcome: await eraseIn(part) })));
    outcomes.push({ part: rootPart, outcome: await eraseIn(rootPart) });
    return allOf(outcomes, [...running], call);
  };

/**
 * What became of the user in all stores. An optional one that failed counts as not read back, and the answer names it. If another failed,
 * throws its error, which says where the user was erased. `running`: stores where the erase goes on after the request.
 */
function allOf(
  outcomes: readonly { readonly part: Part; readonly outcome: StoreErasure | OmpError }[],
  running: readonly string[],
  call: Call,
): StoreErasure[] {
  const isLeftOut = ({ part, outcome }: (typeof outcomes)[number]) =>
    !part.required && !call.aborted && isOutage(outcome);
  const failed = outcomes.find((one) => one.outcome instanceof OmpError && !isLeftOut(one));
  if (!failed)
    return outcomes.map(({ part: { name }, outcome }) => {
      if (!(outcome instanceof OmpError)) return outcome;
      call.leaveOut('x-partial', name, outcome);
      return { name, removed: {}, left: {}, read_back: 'failed' };
    });
  const erased = outcomes.filter(({ outcome }) => !(outcome instanceof OmpError)).map(({ part }) => part.name);
  const { code, message, cause, ...rest } = failed.outcome as OmpError;
  const others = erased.length > 0 ? erased.join(', ') : 'no store';
  const left =
    running.length > 0
      ? `the erase is still running in ${running.join(', ')}: repeat the request for a receipt; so far the user`
      : 'the user may have memories there, and';
  throw new OmpError(code, `${message}; ${left} was erased in ${others}`, {
    ...rest,
    cause,
  });
}

/** The scope that a memory had before and has no more. */
const leftBy = (old: Memory | undefined, { scope }: Pick<Memory, 'scope'>): string[] =>
  old && old.scope !== null && old.scope !== scope ? [old.scope] : [];

const isMemory = (outcome: BatchOutcome | undefined): outcome is Memory =>
  outcome !== undefined && !(outcome instanceof OmpError);

async function outcomeOf<Result>(work: () => Promise<Result>): Promise<Result | OmpError> {
  try {
    return await work();
  } catch (error) {
    if (error instanceof OmpError) return error;
    throw error;
  }
}

/** Most scopes that a mounted store counts for an erase. More are read from the list of memories. */
const MAX_COUNTED = 1_000;
/** A page of that list, and how long it is read, in milliseconds: deleting the memories needs the rest of `LONGEST_CHANGE_MS`. */
const PAGE = { limit: 1_000, max_bytes: 1024 * 1024 };
const LONGEST_LIST_MS = LONGEST_CHANGE_MS / 2;

/** The scopes of a user's memories in a mounted store, and the mount if they are not known. */
async function scopesOf({ mount, store }: Part, user_id: string, call: Call): Promise<Iterable<string>> {
  if (mount === undefined) return [];
  if (store.capabilities.scopes === 'none') return [mount];
  const stats = await store.userStats?.({ user_id, within: null, limit: MAX_COUNTED }, call);
  const scopes = new Set(stats?.scopes.flatMap(({ scope }) => scope ?? []));
  if (stats && stats.scopes.length < MAX_COUNTED) return scopes;
  // No scope stands for all below the mount: a reader of some of them is told by theirs alone.
  const end = performance.now() + LONGEST_LIST_MS;
  for (let after: Memory | undefined; store.list && performance.now() < end; ) {
    const page: readonly Memory[] = await store.list(
      { user_id, tags: [], within: null, ...PAGE, ...(after && { after }) },
      call,
    );
    after = page.at(-1);
    if (!after) return scopes;
    for (const { scope } of page) if (scope !== null) scopes.add(scope);
  }
  return scopes.add(mount);
}

const elsewhere = (owner: Part, target: Part): OmpError =>
  invalidRequest(
    target.mount === undefined
      ? `id: names the store ${owner.name}, whose memories have the scope ${owner.mount} or one below`
      : `id: memories of this scope are in the store ${target.name}, and their ids begin with ${idPrefix(target.name)}`,
  );
