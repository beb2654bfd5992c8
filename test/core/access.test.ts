import { describe, expect, it } from 'vitest';
import type { AuditEntry, Memory, MemoryPatch, OmpError, ProviderCapabilities, SearchHit } from '#contract';
import { newRecord } from '#toolbox';
import { type Part, type Verbs, verbsFor } from '../../src/core/access.ts';
import { openAuditQueue } from '../../src/core/audit-queue.ts';
import type { Principal } from '../../src/core/principal.ts';
import { toGrants } from '../../src/core/principal.ts';
import { createReadShares } from '../../src/core/read-shares.ts';
import { hashingEmbedder } from '../support/hashing-embedder.ts';
import { auditOf, call, memoryOf, openMemory } from '../support/requests.ts';
import { type FullStore, type Store, storeOf } from '../support/stores.ts';
import { recordingLog } from '../support/subject.ts';

type Full = FullStore;
const principal = (grants: readonly string[], users: readonly string[] | null = null): Principal => ({
  id: 'key:1',
  app: 'app',
  users,
  grants: toGrants(grants),
});
const once = { key: 'k', fingerprint: 'f' };
const UNKNOWN = 'mem_unknown';

/** The memory provider, which tells what it is asked; `change` bends it, as no provider should be. */
const openStore = async (change: (provider: Full) => Partial<Store> = () => ({})) => {
  const texts: string[] = [];
  const inner = hashingEmbedder();
  const embedder = {
    ...inner,
    embed: (given: readonly string[], ...rest: [purpose: 'document' | 'query', by: typeof call]) => {
      texts.push(...given);
      return inner.embed(given, ...rest);
    },
  };
  const bare = await openMemory('native', { embedder, ranking: { mode: 'hybrid', keyword_weight: 0.5 } });
  const memory = storeOf(bare, embedder);
  const asked: unknown[][] = [];
  const bent: Full = { ...memory, ...change(memory) };
  const provider = Object.fromEntries(
    Object.entries(bent).map(([name, part]) => [
      name,
      typeof part === 'function'
        ? (...given: unknown[]) => {
            asked.push([name, ...given.slice(0, -1)]);
            return (part as (...all: unknown[]) => unknown)(...given);
          }
        : part,
    ]),
  ) as unknown as Full;
  const auditQueue = openAuditQueue({ audit: provider.audit, record: 'all', log: recordingLog() });
  const verbsOf = (caller: Principal) =>
    verbsFor(caller, { provider, auditQueue, shares: createReadShares() }) as Required<Verbs>;
  const add = (user: string, scope: string | null, content = 'note') =>
    memory.add({ input: memoryOf(user, content, { scope }) }, call);
  const entries = async (user: string): Promise<AuditEntry[]> => (await auditQueue.read?.(auditOf(user), call)) ?? [];
  /** What was asked, and what was embedded, since this was called last. */
  const since = () => ({ asked: asked.splice(0), texts: texts.splice(0) });
  return { memory, provider, auditQueue, verbsOf, add, entries, since };
};

const failure = (pending: Promise<unknown>): Promise<OmpError> =>
  pending.then(
    (value) => expect.fail(`it was expected to fail, and gave ${JSON.stringify(value)}`),
    (error: unknown) => error as OmpError,
  );
const codeOf = async (pending: Promise<unknown>): Promise<string> => (await failure(pending)).code;

const stored = (user: string, content: string): Memory => newRecord(memoryOf(user, content), null);

/** Of an answer. */
const max_bytes = 4 * 1024 * 1024;

/** Every verb on a user's memories. */
const OF_USER: Readonly<Record<string, (verbs: Required<Verbs>, user_id: string, scope?: string) => Promise<unknown>>> =
  {
    list: (verbs, user_id, scope) => verbs.list({ user_id, tags: [], limit: 9, ...(scope && { scope }) }, call),
    search: (verbs, user_id, scope) =>
      verbs.search({ user_id, text: 'note', tags: [], limit: 9, ...(scope && { scope }) }, call),
    context: (verbs, user_id, scope) =>
      verbs.context({ user_id, text: 'note', tags: [], ...(scope && { scope }) }, { budget: 99, min_score: 0 }, call),
  };

describe('the grants of a caller are part of every query', () => {
  it('with restricted users and scopes', async () => {
    const { verbsOf, add, since } = await openStore();
    const { id } = await add('u', 'in/1');
    const verbs = verbsOf(principal(['read:in/*', 'write:in/1', 'write:in/2', 'delete:i*'], ['u', 'v']));
    since();
    await verbs.get({ id }, call);
    await verbs.update({ ref: { id }, patch: { scope: 'in/2' } }, call);
    await verbs.list({ user_id: 'u', tags: [], limit: 3 }, call);
    await verbs.search({ user_id: 'u', text: 'q', tags: [], limit: 3 }, call);
    await verbs.context({ user_id: 'u', text: 'q', tags: [] }, { budget: 99, min_score: 0 }, call);
    await verbs.delete({ id }, call);
    const users = ['u', 'v'];
    expect(since().asked).toEqual([
      ['get', { id, users, within: ['in/*'] }],
      ['get', { id, users, within: ['in/*'] }],
      ['update', { id, users, within: ['in/1', 'in/2'], versions: [expect.any(String)] }, { scope: 'in/2' }],
      ['list', { user_id: 'u', tags: [], limit: 4, within: ['in/*'], max_bytes }],
      ['search', { user_id: 'u', text: 'q', tags: [], limit: 3, within: ['in/*'], max_bytes }],
      [
        'search',
        { user_id: 'u', text: 'q', tags: [], limit: 100, within: ['in/*'], max_bytes, max_content_bytes: 99 * 32 },
      ],
      ['delete', { id, users, within: ['i*'] }],
    ]);
  });

  it('without restrictions, in a single query', async () => {
    const { verbsOf, add, since } = await openStore();
    const { id } = await add('u', null);
    const verbs = verbsOf(principal(['*:*']));
    since();
    await verbs.get({ id }, call);
    await verbs.get({ id, user_id: 'u' }, call);
    await verbs.list({ user_id: 'u', tags: [], limit: 3 }, call);
    await failure(verbs.delete({ id, user_id: 'v' }, call));
    expect(since().asked).toEqual([
      ['get', { id, users: null, within: null }],
      ['get', { id, users: ['u'], within: null }],
      ['list', { user_id: 'u', tags: [], limit: 4, within: null, max_bytes }],
      ['delete', { id, users: ['v'], within: null }],
    ]);
  });

  it('of the audit log too', async () => {
    const queries: unknown[] = [];
    const { verbsOf } = await openStore(({ audit }) => ({
      audit: {
        ...audit,
        read: (query, by) => {
          queries.push(query);
          return audit.read(query, by);
        },
      },
    }));
    await verbsOf(principal(['read:in/*', 'write:*'])).audit({ user_id: 'u', app: 'a', limit: 7 }, call);
    expect(queries).toEqual([{ user_id: 'u', app: 'a', limit: 7, within: ['in/*'] }]);
  });
});

describe('an update of the scope', () => {
  it('needs one lookup if its target is rejected, and none otherwise', async () => {
    const { verbsOf, add, since } = await openStore();
    const { id } = await add('u', 'in/1');
    const verbs = verbsOf(principal(['*:in/*']));
    since();
    expect(await codeOf(verbs.update({ ref: { id }, patch: { scope: 'out' } }, call))).toBe('scope_denied');
    expect(await codeOf(verbs.update({ ref: { id: UNKNOWN }, patch: { scope: 'out' } }, call))).toBe('not_found');
    expect(since().asked.map(([verb]) => verb)).toEqual(['get', 'get']);
    expect(await verbs.update({ ref: { id }, patch: { scope: 'in/new' } }, call)).toMatchObject({ scope: 'in/new' });
    expect(since().asked.map(([verb]) => verb)).toEqual(['update']);
  });
});

describe('an update of a caller who may not read all that it may write', () => {
  const rights = principal(['read:open/*', 'write:*']);

  it('[Decision 14] shows nothing of a hidden memory but what the caller sent, and moves none to where it is read', async () => {
    const { verbsOf, add, memory } = await openStore();
    const { id } = await add('u', 'secret/x');
    const update = (patch: MemoryPatch) => verbsOf(rights).update({ ref: { id }, patch }, call);
    const stored = () => memory.get({ id, users: null, within: null }, call);
    const hidden = await stored();
    expect(await update({})).toMatchObject({ id, user_id: 'u', content: '', scope: null, tags: [] });
    expect(await codeOf(update({ scope: 'open/x' }))).toBe('scope_denied');
    expect(await stored()).toEqual(hidden);
    expect(await update({ tags: ['new'] })).toMatchObject({ content: '', scope: null, tags: ['new'] });
    expect(await update({ scope: 'secret/y' })).toMatchObject({ content: '', scope: 'secret/y', tags: [] });
    expect(await stored()).toMatchObject({ content: hidden?.content, scope: 'secret/y', tags: ['new'] });
  });

  it('[Decision 14] shows nothing of a memory that another caller hides meanwhile', async () => {
    const moves: (() => Promise<unknown>)[] = [];
    const { verbsOf, add, memory } = await openStore((store) => ({
      async get(ref, by) {
        const found = await store.get(ref, by);
        await moves.shift()?.();
        return found;
      },
    }));
    const { id } = await add('u', 'open/x');
    const change = (patch: object) => memory.update({ ref: { id, users: null, within: null }, patch }, call);
    moves.push(() => change({ tags: ['another'] }));
    const moved = await verbsOf(rights).update({ ref: { id }, patch: { scope: 'open/y' } }, call);
    expect(moved).toMatchObject({ tags: ['another'], scope: 'open/y' });
    moves.push(() => change({ scope: 'secret/x' }));
    expect(await codeOf(verbsOf(rights).update({ ref: { id }, patch: { scope: 'open/x' } }, call))).toBe(
      'scope_denied',
    );
  });

  it('[Decision 14] [Decision 36] keeps the condition of the caller', async () => {
    const { verbsOf, add } = await openStore();
    const { id, updated_at } = await add('u', 'open/x');
    const update = (...versions: string[]) =>
      verbsOf(rights).update({ ref: { id, versions }, patch: { scope: 'open/y' } }, call);
    expect(await failure(update('2001-01-01T00:00:00.000Z'))).toMatchObject({ version: updated_at });
    expect(await update('2001-01-01T00:00:00.000Z', updated_at)).toMatchObject({ scope: 'open/y' });
  });
});

describe.each(Object.entries(OF_USER))("of a user's memories, %s", (_, perform) => {
  it('is rejected without a call to the backend or the embedder', async () => {
    const { verbsOf, since } = await openStore();
    const narrow = verbsOf(principal(['read:in/*', 'write:*', 'delete:*'], ['u']));
    expect(await codeOf(perform(narrow, 'v'))).toBe('scope_denied');
    expect(await codeOf(perform(narrow, 'u', 'out/x'))).toBe('scope_denied');
    expect(await codeOf(perform(verbsOf(principal(['write:*', 'delete:*'])), 'u'))).toBe('scope_denied');
    expect(since()).toEqual({ asked: [], texts: [] });
  });
});

describe('a search of several users', () => {
  const search = (verbs: Required<Verbs>, user_id: string | readonly string[], limit = 9) =>
    verbs.search({ user_id, text: 'note', tags: [], limit }, call);
  const brief = ({ items, more }: Part<SearchHit>) => ({ found: items.map(({ memory }) => memory.content), more });

  it('[Decision 40] embeds the query once, and searches one user after another', async () => {
    let running = 0;
    const { verbsOf, since } = await openStore((memory) => ({
      async search(query, by) {
        expect(++running).toBe(1);
        return memory.search(query, by).finally(() => running--);
      },
    }));
    await search(verbsOf(principal(['read:in/*'])), ['u', 'v', 'w']);
    const { asked, texts } = since();
    expect(texts).toEqual(['note']);
    const query = { text: 'note', tags: [], limit: 9, within: ['in/*'], max_bytes, vector: expect.any(Float32Array) };
    expect(asked.filter(([verb]) => verb === 'search')).toEqual(
      ['u', 'v', 'w'].map((user_id) => ['search', { ...query, user_id }]),
    );
  });

  it('[Decision 40] of a list of one is a search of that user', async () => {
    const { verbsOf, since } = await openStore();
    const verbs = verbsOf(principal(['*:*']));
    await search(verbs, 'u');
    const { asked } = since();
    await search(verbs, ['u']);
    expect(since().asked).toEqual(asked);
    expect(asked.map(([verb]) => verb)).toEqual(['search']);
  });

  it('[Decision 40] is rejected if the caller may not access all of them, before any work', async () => {
    const { verbsOf, since, entries } = await openStore();
    const some = verbsOf(principal(['*:*'], ['u', 'v']));
    expect(await codeOf(search(some, ['u', 'w', 'v']))).toBe('scope_denied');
    expect(await codeOf(some.context({ user_id: ['u', 'w'], text: 'q', tags: [] }, { budget: 9 }, call))).toBe(
      'scope_denied',
    );
    expect(since()).toEqual({ asked: [], texts: [] });
    const brief = async (user: string) => (await entries(user)).map(({ action, outcome }) => `${action} ${outcome}`);
    expect(await brief('u')).toEqual(['context scope_denied', 'search scope_denied']);
    expect(await brief('v')).toEqual(['search scope_denied']);
    expect(await brief('w')).toEqual([]);
  });

  it('[Decision 40] [Decision 11] has an audit entry for each user', async () => {
    const { verbsOf, entries } = await openStore();
    const verbs = verbsOf(principal(['*:*']));
    await search(verbs, ['u', 'v']);
    await verbs.context({ user_id: ['v', 'u'], text: 'q', tags: [] }, { budget: 9 }, call);
    for (const user of ['u', 'v']) {
      expect((await entries(user)).map(({ action, outcome }) => `${action} ${outcome}`)).toEqual([
        'context ok',
        'search ok',
      ]);
    }
  });

  it('[Decision 40] merges by score, then in list order, and keeps the order of each user', async () => {
    const hits = (user: string, ...scores: readonly (readonly [score: number, time: number])[]) =>
      scores.map(([score, time], i) => ({
        score,
        memory: { ...stored(user, `${user}${i}`), created_at: new Date(time).toISOString() },
      }));
    // Of equal scores `v` has the older first: a mapped table may have an order of its own.
    const found: Record<string, SearchHit[]> = {
      u: hits('u', [0.9, 1], [0.5, 4], [0.5, 2]),
      v: hits('v', [0.7, 9], [0.5, 1], [0.5, 3], [0.1, 9]),
    };
    const { verbsOf } = await openStore(() => ({ search: async ({ user_id }) => found[user_id] ?? [] }));
    const verbs = verbsOf(principal(['*:*']));
    const all = ['u0', 'v0', 'u1', 'u2', 'v1', 'v2', 'v3'];
    expect(brief(await search(verbs, ['u', 'none', 'v']))).toEqual({ found: all, more: false });
    expect(brief(await search(verbs, ['v', 'u'], 4))).toEqual({ found: all.slice(0, 4), more: false });
  });

  it('[Decision 40] [Decision 29] has at most the bytes of one answer, and leaves out only what ranks lower', async () => {
    const third = (user: string, name: string, score: number): SearchHit => ({
      score,
      memory: { ...stored(user, name), tags: ['x'.repeat(max_bytes / 3 - 1_000)] },
    });
    // As `max_bytes` of a query requires: up to and including the hit that exceeds it.
    const whole = { u: [9, 7, 5, 3], v: [8, 6, 4, 2], w: [1] };
    const { verbsOf } = await openStore(() => ({
      search: async ({ user_id }) =>
        (whole[user_id as keyof typeof whole] ?? []).map((score) => third(user_id, `${score}`, score / 10)),
    }));
    const verbs = verbsOf(principal(['*:*']));
    for (const users of [
      ['u', 'v', 'w'],
      ['w', 'v', 'u'],
    ]) {
      expect(brief(await search(verbs, users))).toEqual({ found: ['9', '8', '7'], more: true });
      expect(brief(await search(verbs, users, 3))).toEqual({ found: ['9', '8', '7'], more: false });
    }
    expect(brief(await search(verbs, ['w', 'none']))).toEqual({ found: ['1'], more: false });
  });
});

describe('a search with explain', () => {
  const search = (verbs: Required<Verbs>) =>
    verbs.search({ user_id: 'u', text: 'note', tags: [], limit: 9, explain: true }, call);
  const openWith = (
    capabilities: Partial<ProviderCapabilities>,
    change: (hit: SearchHit) => SearchHit = (hit) => hit,
  ) =>
    openStore((memory) => ({
      capabilities: { ...memory.capabilities, ...capabilities },
      search: async (query, by) => (await memory.search(query, by)).map(change),
    }));
  const withoutParts = ({ parts: _, ...hit }: SearchHit): SearchHit => hit;

  it('[Decision 39] is rejected if the provider cannot explain, but only for who may search', async () => {
    const { verbsOf, since, entries } = await openWith({ explain: false });
    expect(await failure(search(verbsOf(principal(['*:*']))))).toMatchObject({
      code: 'unsupported_capability',
      provider: 'memory',
    });
    expect(await codeOf(search(verbsOf(principal(['*:*'], ['v']))))).toBe('scope_denied');
    expect(since()).toEqual({ asked: [], texts: [] });
    expect((await entries('u')).map(({ outcome }) => outcome)).toEqual(['unsupported_capability']);
  });

  it('[Decision 39] takes the score of a provider that ranks by one part as that part', async () => {
    const half = (hit: SearchHit): SearchHit => ({ ...withoutParts(hit), score: 0.5 });
    const explanations = async (capabilities: Partial<ProviderCapabilities>) => {
      const { verbsOf, add } = await openWith(capabilities, half);
      await add('u', null);
      return (await search(verbsOf(principal(['*:*'])))).items.map(({ explanation }) => explanation);
    };
    expect(await explanations({ keyword_search: false })).toEqual([
      { cosine: 0.5, coverage: null, terms: null, weights: { vector: 1, keyword: 0 } },
    ]);
    expect(await explanations({ vector_search: false })).toEqual([
      { cosine: null, coverage: 0.5, terms: ['note'], weights: { vector: 0, keyword: 1 } },
    ]);
  });

  it('[Decision 39] fails if a provider of both parts returns neither', async () => {
    const { verbsOf, add } = await openWith({}, withoutParts);
    await add('u', null);
    expect(await codeOf(search(verbsOf(principal(['*:*']))))).toBe('provider_error');
  });
});

describe('add', () => {
  const adding = (verbs: Required<Verbs>, user: string, scope: string | null, withKey = false) =>
    verbs.add({ input: memoryOf(user, 'x', { scope }), vector: withKey ? once : undefined }, call);

  it.each([false, true])(
    'outside the grant is refused without asking anybody, with a key or without: %j',
    async (key) => {
      const { verbsOf, since } = await openStore();
      const writer = verbsOf(principal(['write:in/*', 'read:*', 'delete:*'], ['u']));
      expect(await codeOf(adding(writer, 'v', 'in/1', key))).toBe('scope_denied');
      expect(await codeOf(adding(writer, 'u', 'out', key))).toBe('scope_denied');
      expect(await codeOf(adding(writer, 'u', null, key))).toBe('scope_denied');
      expect(since()).toEqual({ asked: [], texts: [] });
      expect(await adding(writer, 'u', 'in/1', key)).toMatchObject({ user_id: 'u', scope: 'in/1' });
    },
  );

  it('with a key belongs to this caller, and is rejected if the provider does not support keys', async () => {
    const { verbsOf, since } = await openStore();
    await adding(verbsOf(principal(['*:*'])), 'u', null, true);
    expect(since().asked).toEqual([['addIdempotent', memoryOf('u', 'x'), { ...once, caller: 'key:1' }]]);
    const { provider, auditQueue } = await openStore();
    const { addIdempotent: _, ...rest } = provider;
    const verbs = verbsFor(principal(['*:*']), {
      provider: rest,
      auditQueue,
      shares: createReadShares(),
    }) as Required<Verbs>;
    expect(await failure(adding(verbs, 'u', null, true))).toMatchObject({
      code: 'unsupported_capability',
      provider: 'memory',
    });
  });
});

describe('records that do not match the query', () => {
  const everywhere = { users: null, within: null };
  /** Each bends every verb in one way. */
  const LIES: Readonly<Record<string, (memory: Full) => Partial<Store>>> = {
    'ignores what the caller may see': ({ get, update, list, search, audit, add, addIdempotent }) => ({
      get: (ref, by) => get({ ...ref, ...everywhere }, by),
      update: (ref, patch, by) => update({ ref: { ...ref, ...everywhere }, patch }, by),
      list: (query, by) => list({ ...query, within: null }, by),
      search: (query, by) => search({ ...query, within: null }, by),
      add: (input, by) => add({ input: { ...input, scope: 'out' } }, by),
      addIdempotent: (input, key, by) => add({ input: { ...input, scope: 'out' }, key }, by),
      audit: { ...audit, read: (query, by) => audit.read({ ...query, within: null }, by) },
    }),
    "mixes in another user's": ({ get, update, list, search, audit, add, addIdempotent }) => {
      const foreign = <Row extends Partial<Memory> | AuditEntry>(row: Row): Row => ({
        ...row,
        user_id: 'v',
        scope: 'in/1',
      });
      return {
        get: async (ref, by) => foreign((await get({ ...ref, ...everywhere }, by)) as Memory),
        update: async (ref, patch, by) =>
          foreign((await update({ ref: { ...ref, ...everywhere }, patch }, by)) as Memory),
        list: async (query, by) => (await list({ ...query, within: null }, by)).map(foreign),
        search: async (query, by) =>
          (await search({ ...query, within: null }, by)).map((hit) => ({ ...hit, memory: foreign(hit.memory) })),
        add: async (input, by) => foreign(await add({ input }, by)),
        addIdempotent: async (input, key, by) => foreign(await add({ input, key }, by)),
        audit: { ...audit, read: async (query, by) => (await audit.read({ ...query, within: null }, by)).map(foreign) },
      };
    },
  };
  const VERBS: Readonly<Record<string, (verbs: Required<Verbs>, id: string) => Promise<unknown>>> = {
    get: (verbs, id) => verbs.get({ id, user_id: 'u' }, call),
    update: (verbs, id) => verbs.update({ ref: { id, user_id: 'u' }, patch: {} }, call),
    list: (verbs) => verbs.list({ user_id: 'u', tags: [], limit: 9 }, call),
    search: (verbs) => verbs.search({ user_id: 'u', text: 'note', tags: [], limit: 9 }, call),
    context: (verbs) => verbs.context({ user_id: 'u', text: 'note', tags: [] }, { budget: 99, min_score: 0 }, call),
    audit: (verbs) => verbs.audit({ user_id: 'u', limit: 9 }, call),
    add: (verbs) => verbs.add({ input: memoryOf('u', 'x', { scope: 'in/2' }), vector: undefined }, call),
    'add with a key': (verbs) => verbs.add({ input: memoryOf('u', 'x', { scope: 'in/2' }), vector: once }, call),
  };

  const cases = Object.keys(LIES).flatMap((lie) => Object.keys(VERBS).map((verb) => [lie, verb] as const));
  it.each(cases)('(%s) are rejected by %s', async (lie, verb) => {
    const perform = VERBS[verb] as (verbs: Required<Verbs>, id: string) => Promise<unknown>;
    const { verbsOf, add, entries } = await openStore(LIES[lie]);
    const { id } = await add('u', 'out', 'hidden note');
    const error = await failure(perform(verbsOf(principal(['*:in/*'])), id));
    expect(error).toMatchObject({ code: 'provider_error', provider: 'memory' });
    expect(error.message).not.toMatch(/hidden|out|\bv\b/);
    // By id nobody knows then whose memory it is.
    if (lie.startsWith('ignores') && !['audit', 'get', 'update'].includes(verb)) {
      expect((await entries('u'))[0]).toMatchObject({ outcome: 'provider_error' });
    }
  });

  it('are the only ones that are rejected', async () => {
    const { verbsOf, add } = await openStore();
    const { id } = await add('u', 'in/1', 'note');
    for (const perform of Object.values(VERBS)) await perform(verbsOf(principal(['*:in/*'], ['u'])), id);
  });

  it('are rejected for every caller if they belong to another user', async () => {
    const { verbsOf, add } = await openStore(LIES["mixes in another user's"]);
    const { id } = await add('u', 'in/1', 'note');
    const everybody = verbsOf(principal(['*:*']));
    for (const [name, perform] of Object.entries(VERBS)) {
      expect(await codeOf(perform(everybody, id)), name).toBe('provider_error');
    }
  });
});

it('the provider limits the candidates of context', async () => {
  const { provider, auditQueue, since } = await openStore();
  const few = { ...provider, capabilities: { ...provider.capabilities, max_search_results: 30 } };
  const verbs = verbsFor(principal(['*:*']), {
    provider: few,
    auditQueue,
    shares: createReadShares(),
  }) as Required<Verbs>;
  await verbs.context({ user_id: 'u', text: 'q', tags: [] }, { budget: 99, min_score: 0 }, call);
  expect(since().asked).toMatchObject([['search', { limit: 30 }]]);
});
