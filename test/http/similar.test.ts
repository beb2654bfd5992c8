import { expect, it } from 'vitest';
import { OmpError, type Provider } from '#contract';
import { knownCallers } from '../support/known-callers.ts';
import { serverForTest } from '../support/server.ts';
import { freshUser } from '../support/subject.ts';

interface Added {
  readonly id: string;
  readonly 'x-omp-similar'?: readonly { readonly id: string; readonly content: string; readonly score: number }[];
}

/** A gateway, and how to add to it with a question for what is similar. */
async function subject(alter?: (provider: Provider) => Provider) {
  const { authenticator, admit } = knownCallers();
  const { client, lines } = await serverForTest({ authenticator, ...(alter && { alter }) });
  const user_id = freshUser();
  const add = async (content: string, { headers = {}, query = '?similar=true', ...fields }: AddFields = {}) => {
    const reply = await client.tell('POST', `/memories${query}`, { user_id, content, ...fields }, headers);
    expect(reply.status).toBe(201);
    return reply.body as Added;
  };
  return { client, lines, admit, user_id, add };
}

interface AddFields {
  readonly headers?: Record<string, string>;
  readonly query?: string;
  readonly [field: string]: unknown;
}

it('[Decision 58] an add that asks names what says nearly the same, without itself, best first', async () => {
  const { client, add } = await subject();
  expect((await add('Jonas likes chess'))['x-omp-similar']).toEqual([]);
  const { id } = await add('Jonas likes chess a lot', { query: '' });
  await add('Jonas has a dog');
  await client.add({ user_id: freshUser(), content: 'Jonas likes chess a lot' });
  const asked = await add('Jonas likes chess a lot!');
  expect(asked['x-omp-similar']?.[0]).toEqual({ id, content: 'Jonas likes chess a lot', score: 1 });
  expect(asked['x-omp-similar']).toHaveLength(2);
  // It is no key of the memory, and not stored if a client sends it back.
  expect(await client.get(asked.id)).not.toHaveProperty('x-omp-similar');
  await client.tell('PATCH', `/memories/${asked.id}`, { 'x-omp-similar': asked['x-omp-similar'] });
  expect(await client.get(asked.id)).not.toHaveProperty('x-omp-similar');
});

it('[Decision 58] an add that does not ask searches for nothing', async () => {
  let searches = 0;
  const { add } = await subject((provider) => ({
    ...provider,
    search: async (...args) => {
      searches += 1;
      return (await provider.search?.(...args)) ?? [];
    },
  }));
  for (const query of ['', '?similar=false']) {
    expect(await add('likes tea', { query })).not.toHaveProperty('x-omp-similar');
  }
  expect(searches).toBe(0);
  expect(await add('likes tea')).toHaveProperty('x-omp-similar');
  expect(searches).toBe(1);
});

it('[Decision 58] leaves out what is superseded, also by the memory itself, and what untrusted keys wrote', async () => {
  const { admit, add } = await subject();
  const crawler = admit({ untrusted: true });
  const old = await add('likes tea');
  const now = await add('likes tea', { supersedes: [old.id] });
  expect(now['x-omp-similar']).toEqual([]);
  expect((await add('likes tea', { headers: crawler }))['x-omp-similar']).toMatchObject([{ id: now.id }]);
  expect((await add('likes tea'))['x-omp-similar']).toMatchObject([{ id: now.id }]);
});

it('[Decision 58] [Decision 14] names only what the caller may read, and nothing to a key that may not', async () => {
  const { client, user_id, admit, add } = await subject();
  const open = await add('likes tea', { scope: 'open' });
  await add('likes tea', { scope: 'secret' });
  const headers = admit({ app: 'reader', grants: ['read:open', 'write:*'] });
  expect((await add('likes tea', { headers }))['x-omp-similar']).toMatchObject([{ id: open.id }]);
  const writer = admit({ app: 'writer', grants: ['write:*'] });
  expect(await add('likes tea', { headers: writer })).not.toHaveProperty('x-omp-similar');
  // It is a search, which the key that may not read does not begin.
  const audited = async (app: string) =>
    (await client.audit({ user_id, app })).map(({ action, outcome }) => `${action} ${outcome}`).sort();
  expect([await audited('reader'), await audited('writer')]).toEqual([['add ok', 'search ok'], ['add ok']]);
});

it('[Decision 58] a search that fails does not fail the add, and is logged', async () => {
  const { client, user_id, lines, add } = await subject((provider) => ({
    ...provider,
    search: async () => {
      throw new OmpError('provider_error', 'the index is down');
    },
  }));
  const { id, ...added } = await add('likes tea');
  expect(added).not.toHaveProperty('x-omp-similar');
  expect((await client.list({ user_id })).items.map((memory) => memory.id)).toEqual([id]);
  expect(lines.filter(({ message }) => message === 'what is similar to a new memory is not known')).toHaveLength(1);
});

it('[Decision 58] [Decision 20] a repeated add names what is similar by then', async () => {
  const { add } = await subject();
  const headers = { 'idempotency-key': 'one' };
  const first = await add('likes tea', { headers });
  expect(first['x-omp-similar']).toEqual([]);
  const other = await add('likes tea!');
  const repeated = await add('likes tea', { headers });
  expect(repeated).toMatchObject({ id: first.id, 'x-omp-similar': [{ id: other.id }] });
});

it('[Decision 58] a store that cannot search names nothing', async () => {
  const { add } = await subject(({ search: _, ...provider }) => provider);
  expect(await add('likes tea')).not.toHaveProperty('x-omp-similar');
});

it('[Decision 6] parameters of an add that it does not know are ignored, and named', async () => {
  const { client } = await subject();
  const reply = await client.tell('POST', '/memories?likeness=1', { user_id: freshUser(), content: 'x' });
  expect([reply.status, reply.headers.get('x-ignored-fields')]).toEqual([201, 'likeness']);
});
