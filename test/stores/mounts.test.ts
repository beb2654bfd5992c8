import { describe, expect, it, onTestFinished } from 'vitest';
import type { Memory } from '#contract';
import { expectError } from '../support/expect-error.ts';
import { hashingEmbedder } from '../support/hashing-embedder.ts';
import { callBy, memoryOf } from '../support/requests.ts';
import { freshUser, openSubject } from '../support/subject.ts';
import type { WireHit, WireMemory } from '../support/wire.ts';
import { altered, blindToMounts, CRM, failing, HANDBOOK, memory, once, open, reads, USERS } from './mounts-subject.ts';

const call = callBy();

describe('[Decision 48] the place of a memory', () => {
  it('is the store of its scope, which its id names', async () => {
    const { client, add, root, user_id } = await open();
    const none = await add('a');
    const beside = await add('b', 'docs/handbook-2');
    const at = await add('c', 'docs/handbook');
    const below = await add('d', 'docs/handbook/x/y');
    const other = await add('e', 'crm');
    expect([none, beside].map(({ id }) => id).join(' ')).not.toContain('~');
    expect([at.id, below.id].map((id) => id.slice(0, 14))).toEqual(['~handbook~mem_', '~handbook~mem_']);
    expect(other.id).toMatch(/^~crm~mem_/);
    for (const one of [none, beside, at, below, other]) expect(await client.get(one.id)).toEqual(one);
    expect((await root.list({ user_id, tags: [], within: null, limit: 9, max_bytes: 1e9 }, call)).length).toBe(2);
    const { items } = await client.list({ user_id });
    expect(items.map(({ content }) => content).sort()).toEqual(['a', 'b', 'c', 'd', 'e']);
    expect((await client.list({ user_id, scope: 'docs/handbook' })).items).toEqual([at]);
    expect((await client.list({ user_id, scope: '*handbook*' })).items.length).toBe(3);
    expect((await client.search({ user_id, q: 'd', scope: 'docs/handbook/' })).map((hit) => hit.memory)).toEqual([
      below,
    ]);
  });

  it('a memory is read, changed and deleted by its id; an id that names no store is unknown', async () => {
    const { client, add } = await open();
    const { id, updated_at } = await add('tea', 'crm/x');
    const changed = await client.update(id, { content: 'coffee', scope: 'crm/y' });
    expect(changed).toMatchObject({ id, content: 'coffee', scope: 'crm/y' });
    expect(await client.update(id, { scope: 'crm' })).toMatchObject({ scope: 'crm' });
    const stale = await client.tell('DELETE', client.byId(id), undefined, { 'if-match': `"${updated_at}"` });
    expect(stale.status).toBe(412);
    await client.remove(id);
    for (const unknown of [id, `~nobody~${id}`, id.replace('crm', 'handbook'), '~crm~', '~', '~~x']) {
      expectError(await client.ask(client.byId(unknown)), 'not_found');
    }
  });

  it('a memory does not move to another store; the error says what to do, if the caller may change it', async () => {
    const { client, add, as } = await open();
    const inCrm = await add('tea', 'crm/x');
    const inRoot = await add('tea', 'notes');
    for (const [{ id }, scope] of [
      [inCrm, 'notes'],
      [inCrm, 'docs/handbook'],
      [inRoot, 'crm'],
    ] as const) {
      const { message } = expectError(await client.tell('PATCH', client.byId(id), { scope }), 'invalid_request');
      expect(message).toMatch(/add it there and delete it here/);
      expect(await client.get(id)).toEqual(id === inCrm.id ? inCrm : inRoot);
    }
    const unknown = `${inCrm.id}0`;
    expectError(await client.tell('PATCH', client.byId(unknown), { scope: 'notes' }), 'not_found');
    const stranger = as('*:notes');
    expectError(await stranger.tell('PATCH', stranger.byId(inCrm.id), { scope: 'notes' }), 'not_found');
  });

  it('supersedes may name memories of every store, and means them in every answer', async () => {
    const { client, add, user_id } = await open();
    const old = [await add('tea old', 'crm/a'), await add('tea old', 'docs/handbook/a'), await add('tea old')];
    const ids = [...old.map(({ id }) => id), '~gone~x', '~odd'];
    for (const scope of [null, 'crm', 'docs/handbook/b']) {
      const added = await add('tea new', scope, { supersedes: ids });
      expect(added.supersedes).toEqual(ids);
      expect((await client.get(added.id)).supersedes).toEqual(ids);
      expect((await client.update(added.id, { supersedes: ids.slice(1) })).supersedes).toEqual(ids.slice(1));
      await client.update(added.id, { supersedes: ids });
      const hits = await client.search({ user_id, q: 'tea old', limit: 100 });
      const marked = hits.filter((hit) => hit['x-superseded-by']?.includes(added.id)).map((hit) => hit.memory.id);
      expect(marked.sort()).toEqual(old.map(({ id }) => id).sort());
      expect((await client.list({ user_id, current: 'true' })).items.map(({ id }) => id)).not.toContain(old[0]?.id);
    }
  });

  it('what the root store has below a mount is hidden from everything but erasing', async () => {
    const { client, user_id, root } = await open();
    const addHidden = async (scope: string): Promise<Memory> =>
      root.add({ input: memoryOf(user_id, 'hidden tea', { scope }) }, call);
    const hidden = [await addHidden('crm'), await addHidden('docs/handbook/x')];
    const shown = await addHidden('crm-2');
    expect((await client.list({ user_id })).items.map(({ id }) => id)).toEqual([shown.id]);
    expect((await client.search({ user_id, q: 'hidden tea' })).map((hit) => hit.memory.id)).toEqual([shown.id]);
    expect(await client.stats(user_id)).toMatchObject({ count: 1, scopes: [{ scope: 'crm-2', count: 1 }] });
    expect((await client.users({ prefix: user_id })).items).toMatchObject([{ count: 1 }]);
    for (const { id } of hidden) {
      expectError(await client.ask(client.byId(id)), 'not_found');
      expectError(await client.tell('PATCH', client.byId(id), { content: 'x' }), 'not_found');
      expectError(await client.tell('DELETE', client.byId(id)), 'not_found');
    }
    const { memories } = (await client.ask('/export', { user_id })).body as { memories: WireMemory[] };
    expect(memories.map(({ id }) => id)).toEqual([shown.id]);
    expect(await client.erase(user_id)).toBe(3);
  });

  it('[Decision 48] a root store that shows what a mount hides fails the request', async () => {
    const { client, user_id, root, all } = await open([CRM], { alter: blindToMounts });
    const input = memoryOf(user_id, 'hidden tea', { scope: 'crm/x', source: { ref: 'talk' } });
    const [{ id }] = [await root.add({ input }, call), await root.add({ input }, call)];
    const neighbours = all.neighbours({ user_id, ids: [id], within: null, max_bytes: 1_000 }, call);
    await expect(neighbours).rejects.toMatchObject({ code: 'provider_error' });
    const path = client.byId(id);
    const answers = [
      ...reads(client, user_id).filter((_, at) => at !== USERS),
      client.ask(path),
      client.ask(`${path}/versions`),
      client.tell('PATCH', path, { tags: ['t'] }),
    ];
    for (const answer of answers) expectError(await answer, 'provider_error');
    const { memories } = (await client.ask('/export', { user_id })).body as { memories: WireMemory[] };
    expect(memories).toEqual([]);
  });

  it('the limits are those of the store', async () => {
    const short = once((store) => ({
      ...store,
      capabilities: { ...store.capabilities, max_content_length: 3, etags: false },
    }));
    const { client, add, user_id } = await open([{ ...CRM, current: short }]);
    await add('long enough');
    const reply = await client.tell('POST', '/memories', { user_id, content: 'long', scope: 'crm' });
    expect(expectError(reply, 'invalid_request').message).toBe('content: must be at most 3 characters');
    const { id } = await add('abc', 'crm');
    expectError(await client.tell('PATCH', client.byId(id), { content: 'long' }), 'invalid_request');
    const read = await client.ask(client.byId(id));
    expect(read.headers.get('etag')).toBeNull();
    const change = await client.tell('PATCH', client.byId(id), { content: 'x' }, { 'if-match': '*' });
    expect(expectError(change, 'unsupported_capability')).toMatchObject({ provider: 'crm' });
    const { results } = (
      await client.tell('POST', '/memories/batch', {
        memories: [
          { user_id, content: 'long' },
          { user_id, content: 'long', scope: 'crm' },
        ],
      })
    ).body as { results: { memory?: object; error?: { code: string } }[] };
    expect(results.map(({ error }) => error?.code)).toEqual([undefined, 'invalid_request']);
  });

  it('/capabilities is that of the root store, and lists the others', async () => {
    const { subject } = await open([HANDBOOK, { ...CRM, open: memory('none'), required: false }]);
    const { 'x-stores': stores, ...rest } = (await subject.client.capabilities()) as unknown as Record<
      string,
      object[]
    >;
    const alone = await openSubject({ provider: 'memory', options: {} });
    onTestFinished(alone.close);
    expect(rest).toEqual(await alone.client.capabilities());
    expect(stores).toMatchObject([
      { name: 'handbook', mount: 'docs/handbook', features: { scopes: 'native', supports_audit: false, users: true } },
      { name: 'crm', mount: 'crm', features: { scopes: 'tags', users: false }, limits: { max_batch_size: 100 } },
    ]);
  });
});

describe('[Decision 49] a batch over several stores', () => {
  it('has its outcomes in order, with a key of each store', async () => {
    const { client, user_id } = await open();
    const memories = ['crm', 'notes', 'docs/handbook/x', 'crm/y', 'bad//scope'].map((scope) => ({
      user_id,
      content: `in ${scope}`,
      scope,
    }));
    const first = await client.batch(memories, 'key 1');
    expect(first.map(({ memory: added, error }) => added?.scope ?? error?.code)).toEqual([
      'crm',
      'notes',
      'docs/handbook/x',
      'crm/y',
      'invalid_request',
    ]);
    expect(await client.batch(memories, 'key 1')).toEqual(first);
    expect((await client.list({ user_id })).items).toHaveLength(4);
    const reused = await client.tell(
      'POST',
      '/memories/batch',
      { memories: memories.slice(1) },
      { 'idempotency-key': 'key 1' },
    );
    expectError(reused, 'invalid_request');
  });

  it('a store that fails fails only its own memories, and the batch if nothing was added', async () => {
    const { client, user_id } = await open([HANDBOOK, { ...CRM, current: failing }]);
    const at = (scope: string) => ({ user_id, content: 'x', scope });
    const results = await client.batch([at('crm'), at('notes'), at('docs/handbook')]);
    expect(results.map(({ error }) => [error?.code, error?.provider])).toEqual([
      ['provider_error', 'crm'],
      [undefined, undefined],
      [undefined, undefined],
    ]);
    const reply = await client.tell('POST', '/memories/batch', { memories: [at('crm/1'), at('crm/2')] });
    expect(expectError(reply, 'provider_error').provider).toBe('crm');
  });

  it('a store without adds, or without keys, says so', async () => {
    const readOnly = once(
      altered(
        () => ({ add: undefined, batch: undefined, idempotent: false, read_only: 'it is a table of others' }) as never,
      ),
    );
    const { client, user_id } = await open([{ ...CRM, current: readOnly }]);
    const one = { user_id, content: 'x', scope: 'crm' };
    const error = expectError(await client.tell('POST', '/memories', one), 'unsupported_capability');
    expect(error).toMatchObject({
      provider: 'crm',
      message: 'the store crm does not support add: it is a table of others',
    });
    const [added, rejected] = await client.batch([{ user_id, content: 'x' }, one]);
    expect([added?.error, rejected?.error?.code]).toEqual([undefined, 'unsupported_capability']);
    const keyed = await client.tell('POST', '/memories', one, { 'idempotency-key': 'k' });
    expect(expectError(keyed, 'unsupported_capability')).toMatchObject({
      provider: 'crm',
      message: 'the provider does not support Idempotency-Key',
    });
  });
});

describe('[Decision 49] a search over several stores', () => {
  it('merges by score times weight, and explains it', async () => {
    const { client, add, user_id } = await open([
      { ...HANDBOOK, weight: 0.5 },
      { ...CRM, weight: 3 },
    ]);
    await add('green tea');
    await add('green tea', 'docs/handbook');
    await add('green leaf', 'crm');
    const hits = await client.search({ user_id, q: 'green tea', explain: 'true' });
    const scores = new Map(hits.map((hit) => [hit.memory.scope ?? 'root', hit.score]));
    expect([scores.get('root'), scores.get('docs/handbook')]).toEqual([1, 0.5]);
    expect(hits.map(({ score }) => score)).toEqual([...scores.values()].sort((a, b) => b - a));
    for (const {
      memory: { scope },
      score,
      explanation,
    } of hits) {
      const {
        cosine,
        coverage,
        weights,
        store,
        store_weight: factor = 1,
      } = explanation as NonNullable<WireHit['explanation']> & { store?: string; store_weight?: number };
      const weighted = factor * (weights.vector * (cosine ?? 0) + weights.keyword * (coverage ?? 0));
      expect(score).toBeCloseTo(Math.min(1, weighted), 4);
      expect(store).toBe({ crm: 'crm', 'docs/handbook': 'handbook' }[scope ?? '']);
    }
    expect(await client.search({ user_id, q: 'green tea', min_score: 0.6 })).toHaveLength(
      hits.filter(({ score }) => score >= 0.6).length,
    );
    const { citations } = await client.context({ user_id, query: 'green tea' });
    const distinct = await client.search({ user_id, q: 'green tea', distinct: 'true' });
    expect(citations.map(({ score }) => score)).toEqual(distinct.map(({ score }) => score));
  });

  it('embeds the query once for each embedder, also for several users', async () => {
    const texts: string[] = [];
    const counting = (model: string) => {
      const inner = hashingEmbedder();
      const embed: typeof inner.embed = (given, ...rest) => {
        texts.push(...given.map((text) => `${model}: ${text}`));
        return inner.embed(given, ...rest);
      };
      return { ...inner, model, embed };
    };
    const other = counting('other');
    const { client, user_id } = await open(
      [HANDBOOK, CRM, { name: 'third', mount: 'third', open: (own) => memory()({ ...own, embedder: other }) }],
      { embedder: counting('shared') },
    );
    await client.search({ user_id: [user_id, freshUser()], q: 'tea' });
    expect(texts.sort()).toEqual(['other: tea', 'shared: tea']);
  });
});
