import { describe, expect, it } from 'vitest';
import type { Memory, OmpError, Provider, ProviderCapabilities, SearchHit } from '#contract';
import { newRecord } from '#toolbox';
import { toGrants } from '../../src/core/grants.ts';
import { MAX_ANSWER_BYTES } from '../../src/core/read-shares.ts';
import type { Session } from '../../src/verbs/gate.ts';
import { VERB_TABLE } from '../../src/verbs/index.ts';
import { hashingEmbedder } from '../support/hashing-embedder.ts';
import { auditOf, call, contextOf, memoryOf, openMemory } from '../support/requests.ts';
import { storeOf } from '../support/stores.ts';
import { gateOn, recordingLog } from '../support/subject.ts';

/*
 * What the access matrix (`test/access`) and the conformance suite do not cover, because no provider of ours behaves like this.
 */

const { add, audit, context, get, list, search, update } = VERB_TABLE;
type Full = Required<Provider>;

/** A gateway on the memory provider with these changes, and the texts that were embedded. */
const openGate = async (change: (provider: Full) => Partial<Provider> = () => ({})) => {
  const texts: string[] = [];
  const inner = hashingEmbedder();
  const embed: typeof inner.embed = (given, ...rest) => {
    texts.push(...given);
    return inner.embed(given, ...rest);
  };
  const embedder = { ...inner, embed };
  const memory = await openMemory('native', contextOf({ embedder, ranking: { mode: 'hybrid', keyword_weight: 0.5 } }));
  const store = storeOf({ ...memory, ...change(memory) }, embedder);
  const { gate, auditQueue } = gateOn(store, recordingLog());
  const sessionOf = (grants: readonly string[], users: readonly string[] | null = null): Session =>
    gate.session({ id: 'key:1', app: 'app', users, grants: toGrants(grants) }, 'http');
  const seed = async (scope: string | null, content = 'note'): Promise<Memory> =>
    (await memory.add({ input: memoryOf('u', content, { scope }), vector: null }, call)) as Memory;
  const entries = async (user: string) =>
    ((await auditQueue.read?.(auditOf(user), call)) ?? []).map(({ action, outcome }) => `${action} ${outcome}`);
  return { memory, texts, sessionOf, seed, entries };
};

const failure = (pending: Promise<unknown>): Promise<OmpError> =>
  pending.then(
    (value) => expect.fail(`it was expected to fail, and returned ${JSON.stringify(value)}`),
    (error: unknown) => error as OmpError,
  );

describe('an update of a caller who may not read all that it may write', () => {
  const RIGHTS = ['read:open/*', 'write:*'];

  it('[Decision 14] shows nothing of a memory that another caller hides meanwhile', async () => {
    const moves: (() => Promise<unknown>)[] = [];
    const { sessionOf, seed, memory } = await openGate((provider) => ({
      async get(ref, by) {
        const found = await provider.get(ref, by);
        await moves.shift()?.();
        return found;
      },
    }));
    const { id } = await seed('open/x');
    const move = (scope: string) => sessionOf(RIGHTS).run(update, { id, patch: { scope } }, call);
    const meanwhile = (patch: object) =>
      moves.push(() => memory.update({ ref: { id, users: null, within: null }, patch, vector: null }, call));
    meanwhile({ tags: ['another'] });
    expect(await move('open/y')).toMatchObject({ tags: ['another'], scope: 'open/y' });
    meanwhile({ scope: 'secret/x' });
    expect(await failure(move('open/x'))).toMatchObject({ code: 'scope_denied' });
  });

  it('[Decision 14] [Decision 36] keeps the condition of the caller', async () => {
    const { sessionOf, seed } = await openGate();
    const { id, updated_at } = await seed('open/x');
    const moveIf = (if_match: string) =>
      sessionOf(RIGHTS).run(update, { id, if_match, patch: { scope: 'open/y' } }, call);
    expect(await failure(moveIf('"2001-01-01T00:00:00.000Z"'))).toMatchObject({ version: updated_at });
    expect(await moveIf(`"2001-01-01T00:00:00.000Z", "${updated_at}"`)).toMatchObject({ scope: 'open/y' });
  });
});

describe('a search of several users', () => {
  const searching = (session: Session, user_id: readonly string[], limit = '9') =>
    session.run(search, { user_id, q: 'note', limit }, call);
  const brief = ({ results, ...rest }: Awaited<ReturnType<typeof searching>>) => ({
    found: results.map(({ memory }) => memory.content),
    truncated: 'x-truncated' in rest,
  });
  const hitOf = (user: string, content: string, score: number, more: Partial<Memory> = {}): SearchHit => ({
    score,
    memory: { ...newRecord(memoryOf(user, content), null), ...more },
  });

  it('[Decision 40] embeds the query once, searches one user after another, and has an audit entry for each', async () => {
    let running = 0;
    const { sessionOf, texts, entries } = await openGate((provider) => ({
      async search(query, by) {
        expect(++running).toBe(1);
        return provider.search(query, by).finally(() => running--);
      },
    }));
    await searching(sessionOf(['read:in/*']), ['u', 'v', 'w']);
    expect(texts).toEqual(['note']);
    for (const user of ['u', 'v', 'w']) expect(await entries(user)).toEqual(['search ok']);
  });

  it('[Decision 40] is rejected if the caller may not access all of them, before any work', async () => {
    const { sessionOf, texts, entries } = await openGate();
    const some = sessionOf(['*:*'], ['u', 'v']);
    expect(await failure(searching(some, ['u', 'w', 'v']))).toMatchObject({ code: 'scope_denied' });
    const both = some.run(context, { user_id: ['u', 'w'], query: 'q' }, call);
    expect(await failure(both)).toMatchObject({ code: 'scope_denied' });
    expect(texts).toEqual([]);
    expect(await entries('u')).toEqual(['context scope_denied', 'search scope_denied']);
    expect(await entries('v')).toEqual(['search scope_denied']);
    expect(await entries('w')).toEqual([]);
  });

  it('[Decision 40] merges by score, then in list order, and keeps the order of each user', async () => {
    const hits = (user: string, ...scores: readonly (readonly [score: number, time: number])[]) =>
      scores.map(([score, time], i) => hitOf(user, `${user}${i}`, score, { created_at: new Date(time).toISOString() }));
    // Of equal scores `v` has the older first: a mapped table may have an order of its own.
    const found: Record<string, SearchHit[]> = {
      u: hits('u', [0.9, 1], [0.5, 4], [0.5, 2]),
      v: hits('v', [0.7, 9], [0.5, 1], [0.5, 3], [0.1, 9]),
    };
    const { sessionOf } = await openGate(() => ({ search: async ({ user_id }) => found[user_id] ?? [] }));
    const all = ['u0', 'v0', 'u1', 'u2', 'v1', 'v2', 'v3'];
    const session = sessionOf(['*:*']);
    expect(brief(await searching(session, ['u', 'none', 'v']))).toEqual({ found: all, truncated: false });
    expect(brief(await searching(session, ['v', 'u'], '4'))).toEqual({ found: all.slice(0, 4), truncated: false });
  });

  it('[Decision 40] [Decision 29] has at most the bytes of one answer, and leaves out only what ranks lower', async () => {
    const tags = ['x'.repeat(MAX_ANSWER_BYTES / 3 - 1_000)];
    // As `max_bytes` of a query requires: up to and including the hit that exceeds it.
    const whole: Record<string, number[]> = { u: [9, 7, 5, 3], v: [8, 6, 4, 2], w: [1] };
    const { sessionOf } = await openGate(() => ({
      search: async ({ user_id }) =>
        (whole[user_id] ?? []).map((score) => hitOf(user_id, `${score}`, score / 10, { tags })),
    }));
    const session = sessionOf(['*:*']);
    for (const users of [
      ['u', 'v', 'w'],
      ['w', 'v', 'u'],
    ]) {
      expect(brief(await searching(session, users))).toEqual({ found: ['9', '8', '7'], truncated: true });
      expect(brief(await searching(session, users, '3'))).toEqual({ found: ['9', '8', '7'], truncated: false });
    }
    expect(brief(await searching(session, ['w', 'none']))).toEqual({ found: ['1'], truncated: false });
  });
});

describe('a search with explain', () => {
  const explained = (session: Session) => session.run(search, { user_id: ['u'], q: 'note', explain: 'true' }, call);
  const openWith = (more: Partial<ProviderCapabilities>) =>
    openGate(({ capabilities, search: find }) => ({
      capabilities: { ...capabilities, ...more },
      search: async (query, by) => (await find(query, by)).map(({ memory }) => ({ memory, score: 0.5 })),
    }));

  it('[Decision 39] is rejected if the provider cannot explain, but only for who may search', async () => {
    const { sessionOf, texts } = await openWith({ explain: false });
    const error = await failure(explained(sessionOf(['*:*'])));
    expect(error).toMatchObject({ code: 'unsupported_capability', provider: 'memory' });
    expect(await failure(explained(sessionOf(['*:*'], ['v'])))).toMatchObject({ code: 'scope_denied' });
    expect(texts).toEqual([]);
  });

  it.each<[Partial<ProviderCapabilities>, object]>([
    [{ keyword_search: false }, { cosine: 0.5, coverage: null, terms: null, weights: { vector: 1, keyword: 0 } }],
    [{ vector_search: false }, { cosine: null, coverage: 0.5, terms: ['note'], weights: { vector: 0, keyword: 1 } }],
  ])('[Decision 39] takes the score of a provider with %j as its part', async (capabilities, explanation) => {
    const { sessionOf, seed } = await openWith(capabilities);
    await seed(null);
    expect(await explained(sessionOf(['*:*']))).toMatchObject({ results: [{ explanation }] });
  });

  it('[Decision 39] fails if a provider of both parts returns neither', async () => {
    const { sessionOf, seed } = await openWith({});
    await seed(null);
    expect(await failure(explained(sessionOf(['*:*'])))).toMatchObject({ code: 'provider_error' });
  });
});

describe('records that do not match the query', () => {
  /** The memory provider without access control, which changes each record that it returns. */
  const lying =
    (bend: <Row extends { user_id: string | null; scope: string | null }>(row: Row) => Row) =>
    (provider: Full): Partial<Provider> => {
      const everywhere = { users: null, within: null };
      const bendAny = (memory: Memory | undefined) => memory && bend(memory);
      return {
        get: async (ref, by) => bendAny(await provider.get({ ...ref, ...everywhere }, by)),
        update: async ({ ref, ...rest }, by) =>
          bendAny(await provider.update({ ...rest, ref: { ...ref, ...everywhere } }, by)),
        list: async (query, by) => (await provider.list({ ...query, within: null }, by)).map(bend),
        search: async (query, by) =>
          (await provider.search({ ...query, within: null }, by)).map((hit) => ({ ...hit, memory: bend(hit.memory) })),
        add: async (request, by) =>
          bendAny(await provider.add({ ...request, input: { ...request.input, scope: 'out' } }, by)),
        audit: {
          ...provider.audit,
          read: async (query, by) => (await provider.audit.read({ ...query, within: null }, by)).map(bend),
        },
      };
    };
  const OUTSIDE = lying((row) => row);
  const FOREIGN = lying((row) => ({ ...row, user_id: 'v', scope: 'in/1' }));
  const memory = { user_id: 'u', content: 'x', scope: 'in/2' };
  const VERBS: Readonly<Record<string, (session: Session, id: string) => Promise<unknown>>> = {
    get: (session, id) => session.run(get, { id, user_id: 'u' }, call),
    update: (session, id) => session.run(update, { id, user_id: 'u', patch: {} }, call),
    list: (session) => session.run(list, { user_id: 'u' }, call),
    search: (session) => session.run(search, { user_id: ['u'], q: 'note' }, call),
    context: (session) => session.run(context, { user_id: 'u', query: 'note', min_score: 0 }, call),
    audit: (session) => session.run(audit, { user_id: 'u' }, call),
    add: (session) => session.run(add, { memory }, call),
    'add with a key': (session) => session.run(add, { memory, idempotency_key: 'k' }, call),
  };

  it.each(Object.entries(VERBS))('are rejected by %s, and no others', async (_, perform) => {
    for (const [lie, grants] of [
      [OUTSIDE, ['*:in/*']],
      [FOREIGN, ['*:*']],
    ] as const) {
      const { sessionOf, seed } = await openGate(lie);
      const { id } = await seed('out', 'hidden note');
      const error = await failure(perform(sessionOf(grants), id));
      expect(error).toMatchObject({ code: 'provider_error', provider: 'memory' });
      expect(error.message).not.toMatch(/hidden|out|\bv\b/);
    }
    const { sessionOf, seed } = await openGate();
    const { id } = await seed('in/1');
    await perform(sessionOf(['*:in/*'], ['u']), id);
  });
});

it('[Decision 10] the provider limits the candidates of context', async () => {
  const limits: number[] = [];
  const { sessionOf } = await openGate(({ capabilities }) => ({
    capabilities: { ...capabilities, max_search_results: 30 },
    search: async ({ limit }) => {
      limits.push(limit);
      return [];
    },
  }));
  await sessionOf(['*:*']).run(context, { user_id: 'u', query: 'q' }, call);
  expect(limits).toEqual([30]);
});

it('[Decision 54] an import that replaces reads what is stored together, as a backend may be far away', async () => {
  const asked: (readonly string[] | undefined)[] = [];
  const { sessionOf, seed } = await openGate((memory) => ({
    get: () => Promise.reject(new Error('one by one')),
    export(query, call) {
      asked.push(query.ids);
      // Every part may be short.
      return memory.export({ ...query, limit: 1 }, call);
    },
  }));
  const { extensions: _, ...stored } = await seed(null, 'one');
  const memories = [stored, { ...stored, id: 'mem_new' }];
  const { results } = await sessionOf(['*:*']).run(VERB_TABLE.import, { memories, on_conflict: 'replace' }, call);
  expect(results).toEqual([{ outcome: 'unchanged' }, { outcome: 'stored' }]);
  expect(asked.map((ids) => ids?.length)).toEqual([2, 2, 1, 1]);
});
