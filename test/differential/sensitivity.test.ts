import { afterEach, describe, expect, it } from 'vitest';
import type { KeyClaim, Memory, MemoryPatch, Provider, SearchHit, StoredEntry } from '#contract';
import { withinMatcher } from '#toolbox';
import { openSubject } from '../support/subject.ts';
import { checkAgreement } from './check.ts';
import { openStore, type WorldStore } from './world.ts';

type Verbs = Required<Provider>;
type Fault = (verbs: Verbs) => Partial<Provider>;

const laterBy = (time: string, milliseconds: number): string => new Date(Date.parse(time) + milliseconds).toISOString();
const changedHits = (
  { search }: Verbs,
  change: (hits: SearchHit[], scope?: string) => SearchHit[],
): Partial<Provider> => ({
  search: async (query, call) => change(await search(query, call), query.scope),
});

const audited =
  (change: (entries: StoredEntry[]) => StoredEntry[]): Fault =>
  ({ audit }) => ({ audit: { ...audit, read: async (query, call) => change(await audit.read(query, call)) } });

/** Keeps every key as one that differs in these parts. */
const withKeys = ({ add, batch, keyUse }: Verbs, change: Partial<KeyClaim>): Partial<Provider> => ({
  add: ({ key, ...memory }, call) => add({ ...memory, key: key && { ...key, ...change } }, call),
  batch: ({ items, key }, call) => batch({ items, key: key && { ...key, ...change } }, call),
  keyUse: (key, call) => keyUse({ ...key, ...change }, call),
});

const isEmpty = (value: unknown): boolean => value === null || (Array.isArray(value) && value.length === 0);
/** Without the keys that would empty a field. */
const filling = (patch: MemoryPatch): MemoryPatch =>
  Object.fromEntries(Object.entries(patch).filter(([, value]) => !isEmpty(value)));

/** Remembers memories by id as they were when `keep` was told of them. */
const remembering = (): { keep(memory: Memory): Memory; of(memory: Memory): Memory } => {
  const kept = new Map<string, Memory>();
  return {
    keep: (memory) => {
      kept.set(memory.id, memory);
      return memory;
    },
    of: (memory) => kept.get(memory.id) ?? memory,
  };
};

/** One mistake each, of the kind a store might make: the memory provider with a single verb altered. */
const FAULTS: Readonly<Record<string, Fault>> = {
  'since is exclusive': ({ list }) => ({
    list: ({ since, ...query }, call) => list({ ...query, ...(since && { since: laterBy(since, 1) }) }, call),
  }),
  'a search overlooks its tag': ({ search }) => ({
    search: (query, call) => search({ ...query, tags: [] }, call),
  }),
  'a search leaves out what was created at since': ({ search }) => ({
    search: ({ since, ...query }, call) => search({ ...query, ...(since && { since: laterBy(since, 1) }) }, call),
  }),
  'a page begins one record late': ({ list }) => ({
    list: async (query, call) => (await list(query, call)).slice(query.after ? 1 : 0),
  }),
  'tags ignore case': ({ list }) => ({
    list: (query, call) => list({ ...query, tags: query.tags.map((tag) => tag.toLowerCase()) }, call),
  }),
  'a glob ends at a slash': ({ list }) => ({
    list: async (query, call) =>
      (await list(query, call)).filter(
        ({ scope }) => scope?.split('/').length === String(query.scope).split('/').length || !query.scope,
      ),
  }),
  'equal scores come oldest first': (verbs) =>
    changedHits(verbs, (hits) => hits.toReversed().sort((a, b) => b.score - a.score)),
  'scores are rounded': (verbs) =>
    changedHits(verbs, (hits) => hits.map((hit) => ({ ...hit, score: Math.round(hit.score * 100) / 100 }))),
  'the last hit is lost': (verbs) => changedHits(verbs, (hits) => hits.slice(0, -1)),
  'a prefix ends at a segment': (verbs) =>
    changedHits(verbs, (hits, prefix) =>
      hits.filter(({ memory }) => prefix === undefined || `${memory.scope}/`.startsWith(`${prefix}/`)),
    ),
  'a patch always moves updated_at': ({ update }) => ({
    update: async (request, call) => {
      const memory = await update(request, call);
      return memory && { ...memory, updated_at: laterBy(memory.updated_at, 1) };
    },
  }),
  'a patch drops the expiry': ({ update }) => ({
    update: ({ patch, ...rest }, call) => update({ ...rest, patch: { ...patch, valid_to: null } }, call),
  }),
  'delete does not look at the owner': ({ delete: remove }) => ({
    delete: (ref, call) => remove({ ...ref, users: null }, call),
  }),
  'get does not look at the scope': ({ get }) => ({ get: (ref, call) => get({ ...ref, within: null }, call) }),
  'delete does not look at the scope': ({ delete: remove }) => ({
    delete: (ref, call) => remove({ ...ref, within: null }, call),
  }),
  'update does not look at the owner': ({ update }) => ({
    update: ({ ref, ...rest }, call) => update({ ...rest, ref: { ...ref, users: null } }, call),
  }),
  'update does not look at the version': ({ update }) => ({
    update: ({ ref, ...rest }, call) => update({ ...rest, ref: { ...ref, versions: undefined } }, call),
  }),
  'delete does not look at the version': ({ delete: remove }) => ({
    delete: (ref, call) => remove({ ...ref, versions: undefined }, call),
  }),
  'a page counts what may not be seen': ({ list }) => ({
    list: async (query, call) => {
      const admits = withinMatcher(query.within);
      return (await list({ ...query, within: null }, call)).filter(({ scope }) => admits(scope));
    },
  }),
  'rarity counts what may not be seen': ({ search }) => ({
    search: async ({ within, ...query }, call) => {
      const admits = withinMatcher(within);
      return (await search({ ...query, within: null }, call)).filter(({ memory }) => admits(memory.scope));
    },
  }),
  'a key is forgotten': ({ add, batch }) => ({
    add: ({ input, vector }, call) => add({ input, vector }, call),
    batch: ({ items }, call) => batch({ items }, call),
    keyUse: async () => undefined,
  }),
  'a key forgets its input': (verbs) => withKeys(verbs, { fingerprint: '' }),
  'callers share their keys': (verbs) => withKeys(verbs, { caller: '' }),
  'the audit log is shown oldest first': audited((entries) => entries.toReversed()),
  'the audit log leaves out what failed': audited((entries) => entries.filter(({ outcome }) => outcome === 'ok')),
  'the audit log names nobody': audited((entries) => entries.map((entry) => ({ ...entry, app: null }))),
  'the audit log does not look at scopes': ({ audit }) => ({
    audit: { ...audit, read: (query, call) => audit.read({ ...query, within: null }, call) },
  }),
  'the audit log ends a little early': ({ audit }) => ({
    audit: {
      ...audit,
      read: ({ since, ...query }, call) =>
        audit.read({ ...query, ...(since && { since: laterBy(since, 60_000) }) }, call),
    },
  }),
  'a deleted record is still read': ({ delete: remove, get }) => ({
    delete: async (ref, call) => (await get(ref, call)) !== undefined || remove(ref, call),
  }),
  'what was added last is not listed yet': ({ add, list }) => {
    let latest = '';
    return {
      add: async (request, call) => {
        const memory = await add(request, call);
        if (memory) latest = memory.id;
        return memory;
      },
      list: async (query, call) => (await list(query, call)).filter(({ id }) => id !== latest),
    };
  },
  'what was added last is not found yet': ({ add, search }) => {
    let latest = '';
    return {
      add: async (request, call) => {
        const memory = await add(request, call);
        if (memory) latest = memory.id;
        return memory;
      },
      search: async (query, call) => (await search(query, call)).filter(({ memory }) => memory.id !== latest),
    };
  },
  'a list shows memories as they were added': ({ add, list }) => {
    const { keep, of } = remembering();
    return {
      add: async (request, call) => {
        const memory = await add(request, call);
        return memory && keep(memory);
      },
      list: async (query, call) => (await list(query, call)).map(of),
    };
  },
  'a search shows memories as they were added': ({ add, search }) => {
    const { keep, of } = remembering();
    return {
      add: async (request, call) => {
        const memory = await add(request, call);
        return memory && keep(memory);
      },
      search: async (query, call) =>
        (await search(query, call)).map(({ memory, score }) => ({ memory: of(memory), score })),
    };
  },
  'a field cannot be emptied': ({ update }) => ({
    update: ({ patch, ...rest }, call) => update({ ...rest, patch: filling(patch) }, call),
  }),
  'a patch forgets the tags, and the scope with them': ({ update }) => ({
    update: ({ patch, ...rest }, call) => update({ ...rest, patch: { ...patch, tags: [] } }, call),
  }),
  'hits without a score are left out': ({ search }) => ({
    search: async (query, call) => (await search(query, call)).filter(({ score }) => score > 0),
  }),
  'until is exclusive': ({ list }) => ({
    list: async (query, call) =>
      (await list(query, call)).filter(({ created_at }) => query.until === undefined || created_at < query.until),
  }),
  'the last tag is not looked at': ({ list }) => ({
    list: (query, call) => list({ ...query, tags: query.tags.slice(0, -1) }, call),
  }),
  'a search asks for as many as it was asked for, and no more': ({ search }) => ({
    search: async ({ limit, ...query }, call) => search({ ...query, limit: Math.min(limit, 4) }, call),
  }),
};

/** Guards the guard: a comparison that lets a wrong store pass would be worth nothing. */
describe('the comparison notices a store that answers differently', () => {
  const opened: WorldStore[] = [];
  afterEach(async () => {
    for (const { subject } of opened.splice(0)) await subject.close();
  });
  const open = async (label: string, fault?: Fault) => {
    const alter = (provider: Provider): Provider => (fault ? { ...provider, ...fault(provider as Verbs) } : provider);
    const store = await openStore(label, (options) =>
      openSubject({ provider: 'memory', options: { scopes: 'native' }, alter, ...options }),
    );
    opened.push(store);
    return store;
  };

  it.for(Object.keys(FAULTS))('[SPEC Service capabilities] %s', async (name) => {
    const checked = checkAgreement(await open('memory'), [await open(name, FAULTS[name])], {
      runs: 200,
      seed: 1,
      shrink: false,
    });
    await expect(checked).rejects.toThrow(/Property failed/);
  });

  it('[SPEC Service capabilities] and lets a store without a fault pass', async () => {
    await checkAgreement(await open('memory'), [await open('the same')], { runs: 10, seed: 1, shrink: false });
  });
});
