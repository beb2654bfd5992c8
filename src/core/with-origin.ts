import {
  type Call,
  type ExportedMemory,
  isUntrusted,
  type Memory,
  type MemoryPatch,
  type NewMemory,
  NO_LIMITS,
  OmpError,
  ORIGIN,
  type Origin,
  type Ref,
  UNTRUSTED,
} from '#contract';
import { isSameRecord, withMemories } from '#toolbox';
import type { Principal } from './grants.ts';
import type { Store } from './store.ts';
import type { UserLimitRules } from './user-limits.ts';

/** The error for what an untrusted key may not do. */
export const untrustedDenied = () =>
  new OmpError(
    'scope_denied',
    'the key lacks the permission for this user or scope, or is untrusted: such a key changes and deletes only what untrusted keys wrote',
  );

/**
 * The store as one caller writes to it, by one way: every change carries its origin, and the mark of an untrusted caller (Decision 54).
 * Memories without the mark count as absent for the updates and deletes of an untrusted caller, which neither erases nor
 * replaces. Every method that changes memories is replaced here; verbs have no other store.
 *
 * A trusted change of the content removes the mark; but a restore or a rollback gives a memory the mark of the version that it brings
 * back, so their patches say it (`UNTRUSTED`: true or null).
 *
 * Changes carry the limits of users (Decision 59); those of a rollback by an operator, who may access every user, only count.
 */
export function withOrigin(
  store: Store,
  principal: Principal,
  way: Pick<Origin, 'via' | 'version'>,
  userLimits?: UserLimitRules,
): Store {
  const { app, users, untrusted = false } = principal;
  const { via } = way;
  const limits = userLimits && (via === 'rollback' && users === null ? () => NO_LIMITS : userLimits.of(principal));
  const counted = <Result>(change: Promise<Result>): Promise<Result> =>
    userLimits
      ? change.catch((error) => {
          userLimits.rejected(error);
          throw error;
        })
      : change;
  const { add, batch, update, delete: remove, erase, import: importMemories, versions } = store;
  const origin: Origin = app === null ? way : { key: app, ...way };
  const bringsMark = via === 'restore' || via === 'rollback';
  const markOf = ({ content }: MemoryPatch) => {
    if (untrusted) return { [UNTRUSTED]: true };
    return bringsMark || content === undefined ? {} : { [UNTRUSTED]: null };
  };
  // Not a spread: see docs/performance-notes.md.
  const stamp = (input: NewMemory): NewMemory => ({
    content: input.content,
    user_id: input.user_id,
    scope: input.scope,
    tags: input.tags,
    source: input.source,
    confidence: input.confidence,
    valid_from: input.valid_from,
    valid_to: input.valid_to,
    supersedes: input.supersedes,
    extensions: untrusted
      ? { [ORIGIN]: origin, [UNTRUSTED]: true, ...input.extensions }
      : { [ORIGIN]: origin, ...input.extensions },
  });
  const ifMarked = <Result>(ref: Ref, call: Call, change: (ref: Ref) => Promise<Result>) => {
    const find = async () => {
      const memory = await store.get(ref, call);
      return memory && isUntrusted(memory) ? memory : undefined;
    };
    return changeChecked(store, ref, find, change);
  };

  const writes: Partial<Store> = {
    ...(add && {
      add: ({ input, key, onRepeat }, call) => counted(add({ input: stamp(input), key, onRepeat, limits }, call)),
    }),
    ...(batch && {
      async batch({ inputs, ...rest }, call) {
        const outcomes = await batch({ inputs: inputs.map((input) => input && stamp(input)), ...rest, limits }, call);
        if (userLimits) outcomes.forEach(userLimits.rejected);
        return outcomes;
      },
    }),
    ...(update && {
      update({ ref, patch }, call) {
        const extensions = { ...patch.extensions, [ORIGIN]: origin, ...markOf(patch) };
        const change = (ref: Ref) => counted(update({ ref, patch: { ...patch, extensions }, limits }, call));
        return untrusted ? ifMarked(ref, call, change) : change(ref);
      },
    }),
    ...(remove && {
      async delete(ref, call) {
        if (!untrusted) return remove(ref, call);
        return (await ifMarked(ref, call, (exact) => remove(exact, call))) ?? false;
      },
    }),
    ...(erase && {
      async erase(request, call) {
        if (untrusted) throw untrustedDenied();
        return erase(request, call);
      },
    }),
    ...(versions &&
      untrusted && {
        versions: {
          ...versions,
          async purge() {
            throw untrustedDenied();
          },
        },
      }),
    ...(importMemories && {
      async import({ items, replace }, call) {
        if (untrusted && replace) throw untrustedDenied();
        const at = new Date().toISOString();
        const outcomes: (boolean | OmpError)[] = items.map(() => false);
        const importAt = async (places: readonly number[], replaced?: true) => {
          if (places.length === 0) return;
          // Versions of a file are as much the importer's as the memory itself.
          const own = (memory: Memory) =>
            imported(memory, { ...origin, via: 'import', at, ...(replaced && { replaced }) });
          const stamped = places.map((place) => withMemories(items[place] as ExportedMemory, own));
          const results = await importMemories({ items: stamped, replace: replaced === true }, call);
          for (const [i, place] of places.entries()) outcomes[place] = results[i] as boolean | OmpError;
        };
        const idOf = (place: number) => (items[place] as ExportedMemory).memory.id;
        const places = [...items.keys()];
        const present = await storedAmong(store, replace ? places.map(idOf) : [], call);
        await importAt(places.filter((place) => !present.has(idOf(place))));
        if (!replace) return outcomes;
        // What is there already, as it is, keeps its origin: nobody has written it anew.
        const differs = (place: number) =>
          !isSameRecord((items[place] as ExportedMemory).memory, present.get(idOf(place)));
        await importAt(
          places.filter((place) => outcomes[place] === false && differs(place)),
          true,
        );
        return outcomes;
      },
    }),
  };
  /** Of an imported memory, `ORIGIN` is what its file says. */
  const imported = ({ extensions: { [ORIGIN]: from, ...others }, ...memory }: Memory, origin: Origin): Memory => ({
    ...memory,
    extensions: { ...others, [ORIGIN]: from ? { ...origin, from } : origin, ...(untrusted && { [UNTRUSTED]: true }) },
  });
  // Keeps the getters of a store that is several.
  return Object.defineProperties({} as Store, {
    ...Object.getOwnPropertyDescriptors(store),
    ...Object.getOwnPropertyDescriptors(writes),
  });
}

/** Bytes of the memories that one read of the store returns. */
const MAX_PART_BYTES = 4 * 1024 * 1024;

/** Those of these memories that the store has, by id: read together where it can. */
export async function storedAmong(
  { get, export: exportPart, mounts }: Store,
  ids: readonly string[],
  call: Call,
): Promise<ReadonlyMap<string, Memory>> {
  if (ids.length === 0) return new Map();
  const found: (Memory | undefined)[] = [];
  // Of several stores, an export would name those that it leaves out in the answer to the import.
  if (mounts || !exportPart)
    found.push(...(await Promise.all(ids.map((id) => get({ id, users: null, within: null }, call)))));
  else
    for (let after: string | undefined; ; ) {
      const query = { after, ids, vectors: false, limit: ids.length, max_bytes: MAX_PART_BYTES };
      const { items, next } = await exportPart(query, call);
      found.push(...items.map(({ memory }) => memory));
      if (next === undefined) break;
      after = next;
    }
  return new Map(found.flatMap((memory) => (memory ? [[memory.id, memory]] : [])));
}

/**
 * Changes a memory as it was when `find` returned it; if another request changes it meanwhile, finds it again, up to three times.
 * Undefined: `find` found none. Where the backend has no versions, the change may meet another state.
 */
export async function changeChecked<Result>(
  { mounts, capabilities }: Pick<Store, 'mounts' | 'capabilities'>,
  ref: Ref,
  find: () => Promise<Memory | undefined>,
  change: (ref: Ref) => Promise<Result>,
): Promise<Result | undefined> {
  const { etags } = mounts ? (mounts.ofId(ref.id)?.store ?? mounts.root).capabilities : capabilities;
  for (let retries = 3; ; retries--) {
    const memory = await find();
    if (!memory) return undefined;
    const versions = (ref.versions ?? [memory.updated_at]).filter((version) => version === memory.updated_at);
    try {
      return await change(etags ? { ...ref, versions } : ref);
    } catch (error) {
      const isOurs = error instanceof OmpError && error.version !== undefined && ref.versions === undefined;
      if (!isOurs || retries === 0) throw error;
    }
  }
}
