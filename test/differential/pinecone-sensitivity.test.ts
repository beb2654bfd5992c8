import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { Memory, MemoryPatch, Provider } from '#contract';
import { type Pinecone, startPinecone } from '../pinecone-server/start.ts';
import { checkAgreement } from './check.ts';
import { openModel, openPineconeStore } from './pinecone-store.ts';
import type { Store } from './world.ts';

type Verbs = Required<Provider>;
type Fault = (verbs: Verbs) => Partial<Provider>;

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

/** One mistake each, of the kind a gateway on such a service might make: the Pinecone provider with a verb or two bent. */
const FAULTS: Readonly<Record<string, Fault>> = {
  'what was added last is not listed yet': ({ add, list }) => {
    let latest = '';
    return {
      add: async (input, vector, call) => {
        const memory = await add(input, vector, call);
        latest = memory.id;
        return memory;
      },
      list: async (query, call) => (await list(query, call)).filter(({ id }) => id !== latest),
    };
  },
  'what was added last is not found yet': ({ add, search }) => {
    let latest = '';
    return {
      add: async (input, vector, call) => {
        const memory = await add(input, vector, call);
        latest = memory.id;
        return memory;
      },
      search: async (query, call) => (await search(query, call)).filter(({ memory }) => memory.id !== latest),
    };
  },
  'what was deleted is still there': ({ get }) => ({
    delete: async (ref, call) => (await get(ref, call)) !== undefined,
  }),
  'a list shows memories as they were added': ({ add, list }) => {
    const { keep, of } = remembering();
    return {
      add: async (input, vector, call) => keep(await add(input, vector, call)),
      list: async (query, call) => (await list(query, call)).map(of),
    };
  },
  'a search shows memories as they were added': ({ add, search }) => {
    const { keep, of } = remembering();
    return {
      add: async (input, vector, call) => keep(await add(input, vector, call)),
      search: async (query, call) =>
        (await search(query, call)).map(({ memory, score }) => ({ memory: of(memory), score })),
    };
  },
  'a field cannot be emptied': ({ update }) => ({
    update: (ref, patch, vector, call) => update(ref, filling(patch), vector, call),
  }),
  'a patch forgets the tags, and the scope with them': ({ update }) => ({
    update: (ref, patch, vector, call) => update(ref, { ...patch, tags: [] }, vector, call),
  }),
  'hits without a score are left out': ({ search }) => ({
    search: async (query, call) => (await search(query, call)).filter(({ score }) => score > 0),
  }),
  'equal scores come oldest first': ({ search }) => ({
    search: async (query, call) =>
      (await search(query, call)).sort((a, b) => b.score - a.score || (a.memory.id > b.memory.id ? -1 : 1)),
  }),
  'a page begins with the memory the last one ended with': ({ list }) => ({
    list: async ({ after, ...query }, call) => {
      if (!after) return list(query, call);
      return list({ ...query, after: { ...after, id: `${after.id}~` } }, call);
    },
  }),
  'until is exclusive': ({ list }) => ({
    list: async (query, call) =>
      (await list(query, call)).filter(({ created_at }) => query.until === undefined || created_at < query.until),
  }),
  'the last tag is not looked at': ({ list }) => ({
    list: (query, call) => list({ ...query, tags: query.tags.slice(0, -1) }, call),
  }),
  'a memory is found whoever asks': ({ get, update, delete: remove }) => ({
    get: (ref, call) => get({ ...ref, users: null }, call),
    update: (ref, patch, vector, call) => update({ ...ref, users: null }, patch, vector, call),
    delete: (ref, call) => remove({ ...ref, users: null }, call),
  }),
  'a search asks for as many as it was asked for, and no more': ({ search }) => ({
    search: async ({ limit, ...query }, call) => search({ ...query, limit: Math.min(limit, 4) }, call),
  }),
};

/** Guards the guard, on a Pinecone that lags: mistakes in what the provider makes of its service are noticed. */
describe('the comparison notices a gateway on Pinecone where', () => {
  let pinecone: Pinecone;
  let model: Store;
  beforeAll(async () => {
    [pinecone, model] = await Promise.all([startPinecone({ lagWrites: 2, lsn: false }), openModel()]);
  });
  afterAll(async () => {
    await model.subject.close();
    await pinecone.close();
  });
  const check = async (name: string, runs: number, more: Parameters<typeof openPineconeStore>[2]) => {
    const options = { namespace: name.replaceAll(' ', '-'), ...more?.options };
    const store = await openPineconeStore(name, pinecone, { ...more, options });
    try {
      await checkAgreement(model, [store], { runs, seed: 1, shrink: false });
    } finally {
      await store.subject.close();
    }
  };

  it.for(Object.entries(FAULTS))('[SPEC Service capabilities] %s', async ([name, fault]) => {
    const alter = (provider: Provider): Provider => ({ ...provider, ...fault(provider as Verbs) });
    await expect(check(name, 60, { alter })).rejects.toThrow(/Property failed/);
  });

  it('[SPEC Service capabilities] nothing is remembered of what was written', async () => {
    await expect(check('forgetful', 20, { options: { settle_ms: 0 } })).rejects.toThrow(/Property failed/);
  });

  it('[SPEC Service capabilities] but not one without a mistake', async () => {
    await check('the same', 5, {});
  });
});
