import { type Case, check, idsOf, instant, type Kit, type Need, record, Skip, same, UNKNOWN_ID } from '../kit.ts';

/** Every optional field that can be changed, as far as the provider stores it. */
const FULL: readonly (readonly [Need, Readonly<Record<string, unknown>>])[] = [
  ['scopes', { scope: 'kitchen/drinks' }],
  ['tags', { tags: ['a', 'b'] }],
  ['source', { source: { app: 'editor', type: 'explicit', ref: 'r1' } }],
  ['confidence', { confidence: 0.5 }],
  ['valid_from', { valid_from: '2020-01-01T00:00:00Z' }],
  ['valid_to', { valid_to: '2030-01-01T00:00:00Z' }],
  ['supersession', { supersedes: ['mem_old'] }],
];
async function addFull(kit: Kit) {
  const fields: Record<string, unknown> = { user_id: kit.user(), content: 'likes tea' };
  for (const [need, values] of FULL) if (await kit.stores(need)) Object.assign(fields, values);
  return kit.add(fields);
}
/** The memory with these changes, without `updated_at`, which a change moves. */
const but = (memory: Parameters<typeof record>[0], changes = {}) => {
  const { updated_at: _, ...rest } = record({ ...memory, ...changes });
  return rest;
};

const CHANGES: readonly (readonly [
  id: string,
  need: Need | undefined,
  fields: Readonly<Record<string, unknown>>,
  title: string,
])[] = [
  ['content', undefined, { content: 'prefers ☕' }, 'content is new text'],
  ['scope', 'scopes', { scope: 'kitchen/drinks/hot' }, 'scope is a new path'],
  ['tags', 'tags', { tags: ['c'] }, 'tags replaces the list, and does not merge it'],
  ['tags-empty', 'tags', { tags: [] }, 'an empty list of tags removes all'],
  ['confidence', 'confidence', { confidence: 1 }, 'confidence is a new number'],
  ['valid_to', 'valid_to', { valid_to: '2031-05-06T07:08:09Z' }, 'valid_to is a new expiry'],
  ['valid_to-null', 'valid_to', { valid_to: null }, 'null as valid_to removes the expiry'],
  ['supersedes', 'supersession', { supersedes: ['mem_x', 'mem_y'] }, 'supersedes replaces the list'],
];
const changes = CHANGES.map(([id, need, fields, title]): Case => {
  const [field = ''] = Object.keys(fields);
  return {
    id: `update.${id}`,
    clauses: [`PATCH /memories/{id} ${field}`, 'PATCH /memories/{id}'],
    title: `${title}; everything else stays`,
    needs: need === undefined ? ['update', 'get'] : ['update', 'get', need],
    async run(kit) {
      const before = await addFull(kit);
      const after = await kit.update(before.id, fields);
      same(but(after), but(before, fields), 'the memory');
      same(but(await kit.get(before.id)), but(after), 'the memory of GET');
    },
  };
});

/** Changing, superseding and deleting. */
export const LIFECYCLE: readonly Case[] = [
  ...changes,
  {
    id: 'update.updated_at',
    clauses: ['Memory updated_at', 'Memory created_at'],
    title: 'a change moves updated_at, if there is one, and leaves created_at',
    needs: ['update', 'created_at'],
    async run({ add, update, tick, user }) {
      const before = await add({ user_id: user() });
      await tick(before);
      const after = await update(before.id, { content: 'changed' });
      same(after.created_at, before.created_at, 'created_at');
      if (after.updated_at == null) throw new Skip('there is no updated_at');
      check(
        instant(after.updated_at, 'updated_at') > instant(before.created_at, 'created_at'),
        'updated_at must be later than created_at',
      );
    },
  },
  {
    id: 'update.unknown',
    clauses: ['PATCH /memories/{id} unknown', 'Errors not_found'],
    title: 'an unknown id answers 404',
    needs: ['update'],
    run: ({ tell, path, refused }) => refused(tell('PATCH', path(UNKNOWN_ID), { content: 'x' }), 'not_found'),
  },
  {
    id: 'update.wrong',
    clauses: ['PATCH /memories/{id}', 'Errors invalid_request'],
    title: 'a wrong value answers 400 and changes nothing',
    needs: ['update', 'get'],
    async run(kit) {
      const before = await addFull(kit);
      const wrong = [
        { content: 5 },
        { tags: 'a' },
        { confidence: 1.5 },
        { valid_to: 'soon' },
        { supersedes: 5 },
        { scope: 5 },
      ];
      for (const fields of wrong) {
        const answer = kit.tell('PATCH', kit.path(before.id), { content: 'must not appear', ...fields });
        await kit.refused(answer, 'invalid_request', 'unsupported_capability');
      }
      same(record(await kit.get(before.id)), record(before), 'the memory');
    },
  },
  {
    id: 'update.malformed',
    clauses: ['Errors invalid_request'],
    title: 'a body that is not a JSON object answers 400',
    needs: ['update'],
    async run({ add, raw, path, refused, user }) {
      const { id } = await add({ user_id: user() });
      for (const body of ['{"content"', '[]']) {
        const headers = { 'content-type': 'application/json' };
        await refused(raw(path(id), { method: 'PATCH', headers, body }), 'invalid_request');
      }
    },
  },
  {
    id: 'update.list',
    clauses: ['PATCH /memories/{id} tags', 'GET /memories tag'],
    title: 'lists follow changed tags',
    needs: ['update', 'list', 'tags'],
    async run({ add, update, list, user }) {
      const user_id = user();
      const { id } = await add({ user_id, tags: ['old'] });
      await update(id, { tags: ['new'] });
      same(idsOf((await list({ user_id, tag: 'old' })).items), [], 'the ids with the old tag');
      same(idsOf((await list({ user_id, tag: 'new' })).items), [id], 'the ids with the new tag');
    },
  },
  {
    id: 'update.search',
    clauses: ['PATCH /memories/{id} content', 'GET /memories/search'],
    title: 'search finds the new text',
    needs: ['update', 'search'],
    async run({ add, update, search, user }) {
      const user_id = user();
      const { id } = await add({ user_id, content: 'zanzibar quokka' });
      const other = await add({ user_id, content: 'zanzibar quokka hotel' });
      await update(id, { content: 'marmalade umbrella' });
      same((await search({ user_id, q: 'marmalade umbrella' }))[0]?.memory.id, id, 'the id of the best result');
      same(
        (await search({ user_id, q: 'zanzibar quokka' }))[0]?.memory.id,
        other.id,
        'the id of the best result for the old text',
      );
    },
  },
  {
    id: 'delete.gone',
    clauses: ['DELETE /memories/{id}', 'GET /memories/{id} unknown'],
    title: 'answers 204 with an empty body; GET then answers 404',
    needs: ['delete', 'get'],
    async run({ add, remove, ask, path, refused, user }) {
      const { id } = await add({ user_id: user() });
      same((await remove(id)).text, '', 'the body');
      await refused(ask(path(id)), 'not_found');
    },
  },
  {
    id: 'delete.list',
    clauses: ['DELETE /memories/{id}', 'GET /memories'],
    title: 'no list shows a deleted memory, and others stay',
    needs: ['delete', 'list'],
    async run({ addAll, remove, list, user }) {
      const user_id = user();
      const [doomed = '', remaining] = idsOf(await addAll(user_id, 2));
      await remove(doomed);
      same(idsOf((await list({ user_id })).items), [remaining], 'the ids of the list');
    },
  },
  {
    id: 'delete.search',
    clauses: ['DELETE /memories/{id}', 'GET /memories/search'],
    title: 'no search finds a deleted memory',
    needs: ['delete', 'search'],
    async run({ add, remove, search, user }) {
      const user_id = user();
      const { id } = await add({ user_id, content: 'to be forgotten' });
      await add({ user_id, content: 'to be kept' });
      await remove(id);
      const ids = (await search({ user_id, q: 'to be forgotten' })).map(({ memory }) => memory.id);
      check(!ids.includes(id), 'search must not find a deleted memory');
    },
  },
  {
    id: 'delete.unknown',
    clauses: ['DELETE /memories/{id} unknown', 'Errors not_found'],
    title: 'an unknown id answers 404, also after a delete',
    needs: ['delete'],
    async run({ add, remove, tell, path, refused, user }) {
      await refused(tell('DELETE', path(UNKNOWN_ID)), 'not_found');
      const { id } = await add({ user_id: user() });
      await remove(id);
      await refused(tell('DELETE', path(id)), 'not_found');
    },
  },
  {
    id: 'supersede.history',
    clauses: ['DELETE /memories/{id} history', 'PATCH /memories/{id} supersedes'],
    title: 'a superseded memory stays readable',
    needs: ['update', 'get', 'supersession'],
    async run({ add, update, get, user }) {
      const user_id = user();
      const old = await add({ user_id, content: 'lives in Oslo' });
      const { id } = await add({ user_id, content: 'lives in Bergen' });
      same((await update(id, { supersedes: [old.id] })).supersedes, [old.id], 'supersedes');
      same(record(await get(old.id)), record(old), 'the superseded memory');
    },
  },
];
