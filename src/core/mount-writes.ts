import {
  type AuditAction,
  type AuditLog,
  type BatchOutcome,
  type Call,
  changeEntry,
  type ImportRequest,
  invalidRequest,
  type Memory,
  OmpError,
} from '#contract';
import { idPrefix } from './mount.ts';
import { callOf, lacking, type Part, type PartWith } from './mount-parts.ts';
import type { Store } from './with-embedder.ts';

/*
 * Changes: each record is changed in its store, and the entries of the audit log are written to that of the root store before the
 * answer (Decision 49).
 */

export interface Routes {
  readonly parts: readonly Part[];
  ofScope(scope: string | null): Part;
  ofId(id: string): Part;
}

type Changed = Parameters<typeof changeEntry>[1];

/** The writing methods of all stores together. */
export function createWrites(
  { parts, ofScope, ofId }: Routes,
  audit: AuditLog | undefined,
): Pick<Required<Store>, 'add' | 'batch' | 'update' | 'delete' | 'import' | 'erase'> {
  /** The root store writes its entries itself. */
  const record = async (part: Part, action: AuditAction, changed: readonly Changed[], call: Call) => {
    if (part.mount === undefined || !audit || changed.length === 0) return;
    await audit.record(
      changed.map((one) => changeEntry(action, one, call)),
      call,
    );
  };

  return {
    async add({ input, key }, call) {
      const part = withMember(ofScope(input.scope), 'add');
      const memory = await part.store.add({ input, key }, callOf(part, call));
      await record(part, 'add', [memory], call);
      return memory;
    },

    async batch({ inputs, key }, call) {
      const owners = inputs.map((input) => input && ofScope(input.scope));
      const outcomes: (BatchOutcome | undefined)[] = inputs.map(() => undefined);
      const addTo = async (part: Part) => {
        const own = inputs.map((input, place) => (owners[place] === part ? input : undefined));
        const added = await outcomeOf(async () => {
          const { store } = withMember(part, 'batch');
          const results = await store.batch({ inputs: own, key }, callOf(part, call));
          await record(part, 'add', results.filter(isMemory), call);
          return results;
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

    async update({ ref, patch }, call) {
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
      const moves = patch.scope !== undefined && part.mount !== undefined && audit !== undefined;
      const old = moves ? await part.store.get(ref, own) : undefined;
      const memory = await part.store.update({ ref, patch }, own);
      if (memory) {
        const left_scopes = old && old.scope !== null && old.scope !== memory.scope ? [old.scope] : [];
        await record(part, 'update', [{ ...memory, left_scopes }], call);
      }
      return memory;
    },

    async delete(ref, call) {
      const part = withMember(ofId(ref.id), 'delete');
      const own = callOf(part, call);
      if (part.mount === undefined || !audit) return part.store.delete(ref, own);
      // The entry of the audit log needs its user and scope.
      const memory = await part.store.get(ref, own);
      if (!memory || !(await part.store.delete(ref, own))) return false;
      await record(part, 'delete', [memory], call);
      return true;
    },

    async import({ items, replace }, call) {
      const owners = items.map(({ memory }) => ofId(memory.id));
      const outcomes: (boolean | OmpError)[] = items.map(({ memory }, place) => {
        const [owner, target] = [owners[place] as Part, ofScope(memory.scope)];
        if (owner.index !== target.index) return elsewhere(owner, target);
        return owner.store.import ? false : lacking(owner, 'import');
      });
      const importTo = async (part: Part) => {
        const places = [...items.keys()].filter((place) => owners[place] === part && outcomes[place] === false);
        if (places.length === 0) return;
        const own: ImportRequest = { items: places.map((place) => items[place] as (typeof items)[number]), replace };
        const results = await withMember(part, 'import').store.import(own, callOf(part, call));
        for (const [i, place] of places.entries()) outcomes[place] = results[i] as boolean | OmpError;
        const stored = places.filter((place) => outcomes[place] === true);
        await record(
          part,
          'import',
          stored.map((place) => (items[place] as (typeof items)[number]).memory),
          call,
        );
      };
      await Promise.all([...new Set(owners)].map(importTo));
      return outcomes;
    },

    /** The root store comes last: its statement writes the entry of the audit log. */
    async erase({ user_id }, call) {
      const [root, ...mounted] = parts as [Part, ...Part[]];
      const eraseIn = async (part: Part): Promise<number | OmpError> =>
        outcomeOf(async () => {
          if (part.store.erase) {
            const left_scopes = await scopesOf(part, user_id, call);
            const count = await part.store.erase({ user_id }, callOf(part, call));
            if (count > 0) await record(part, 'erase', [{ id: null, user_id, scope: null, left_scopes }], call);
            return count;
          }
          if (await holdsNothing(part, user_id, call)) return 0;
          throw lacking(part, 'erase');
        });
      const outcomes = await Promise.all(mounted.map(async (part) => ({ part, outcome: await eraseIn(part) })));
      outcomes.push({ part: root, outcome: await eraseIn(root) });
      const failed = outcomes.find(({ outcome }) => outcome instanceof OmpError);
      if (!failed) return outcomes.reduce((sum, { outcome }) => sum + (outcome as number), 0);
      const erased = outcomes.filter(({ outcome }) => !(outcome instanceof OmpError)).map(({ part }) => part.name);
      const { code, message, ...rest } = failed.outcome as OmpError;
      const others = erased.length > 0 ? erased.join(', ') : 'no store';
      throw new OmpError(code, `${message}; the user may have memories there, and was erased in ${others}`, {
        ...rest,
        cause: (failed.outcome as OmpError).cause,
      });
    },
  };
}

const isMemory = (outcome: BatchOutcome | undefined): outcome is Memory =>
  outcome !== undefined && !(outcome instanceof OmpError);

/** The part; throws `unsupported_capability` if its store lacks the method. */
function withMember<Member extends keyof Store>(part: Part, member: Member): PartWith<Member> {
  if (part.store[member] === undefined) throw lacking(part, member);
  return part as PartWith<Member>;
}

async function outcomeOf<Result>(work: () => Promise<Result>): Promise<Result | OmpError> {
  try {
    return await work();
  } catch (error) {
    if (error instanceof OmpError) return error;
    throw error;
  }
}

/** Most scopes that the entry of an erase names. */
const MAX_SCOPES = 1_000;

/** The scopes of a user's memories in a mounted store, as far as it can count them. */
async function scopesOf(part: Part, user_id: string, call: Call): Promise<string[]> {
  if (part.mount === undefined) return [];
  const stats = await part.store.userStats?.({ user_id, within: null, limit: MAX_SCOPES }, callOf(part, call));
  return stats?.scopes.flatMap(({ scope }) => scope ?? []) ?? [part.mount];
}

/** Whether the store is known to have no memory of the user. */
async function holdsNothing(part: Part, user_id: string, call: Call): Promise<boolean> {
  const query = { user_id, tags: [], within: null, limit: 1, max_bytes: 1 };
  return (await part.store.list?.(query, callOf(part, call)))?.length === 0;
}

const elsewhere = (owner: Part, target: Part): OmpError =>
  invalidRequest(
    target.mount === undefined
      ? `id: names the store ${owner.name}, whose memories have the scope ${owner.mount} or one below`
      : `id: memories of this scope are in the store ${target.name}, and their ids begin with ${idPrefix(target.name)}`,
  );
