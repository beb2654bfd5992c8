import { type Case, DENIED_SCOPE, Skip, same, UNKNOWN_ID } from '../kit.ts';

/** Who may ask. */
export const GRANTS: readonly Case[] = [
  {
    id: 'grants.open',
    clauses: ['Authentication 4', 'GET /capabilities', 'GET /healthz'],
    title: '/capabilities and /healthz need no credential, and take a wrong one',
    readOnly: true,
    async run({ ask, json }) {
      for (const path of ['/capabilities', '/healthz']) {
        for (const caller of ['anonymous', 'wrong key'] as const) await json(ask(path, {}, caller), 200);
      }
    },
  },
  {
    id: 'grants.missing-key',
    clauses: ['Authentication 2', 'Authentication 3', 'Authentication 5', 'Errors unauthorized'],
    title: 'where a key is needed, a request without one answers 401',
    needs: ['key', 'get'],
    readOnly: true,
    async run({ ask, tell, path, refused, user }) {
      const first = await ask(path(UNKNOWN_ID), {}, 'anonymous');
      if (first.status === 404) throw new Skip('no key is needed');
      await refused(Promise.resolve(first), 'unauthorized');
      await refused(ask('/memories', { user_id: user() }, 'anonymous'), 'unauthorized');
      await refused(ask('/memories/search', { user_id: user(), q: 'x' }, 'anonymous'), 'unauthorized');
      // Without a body it could not add anything either.
      await refused(tell('POST', '/memories', {}, 'anonymous'), 'unauthorized');
    },
  },
  {
    id: 'grants.wrong-key',
    clauses: ['Authentication 5', 'Errors unauthorized'],
    title: 'where a key is needed, an invalid one answers 401',
    needs: ['key', 'get'],
    readOnly: true,
    async run({ ask, path, refused }) {
      if ((await ask(path(UNKNOWN_ID), {}, 'anonymous')).status === 404) throw new Skip('no key is needed');
      await refused(ask(path(UNKNOWN_ID), {}, 'wrong key'), 'unauthorized');
    },
  },
  {
    id: 'grants.scope',
    clauses: ['Authentication 5', 'Errors scope_denied'],
    title: `a key without permission for ${DENIED_SCOPE} gets 403 there, and changes nothing`,
    needs: ['narrow key', 'get', 'scopes'],
    async run({ add, get, tell, ask, path, refused, user, capabilities: { verbs } }) {
      const user_id = user();
      const { id, content } = await add({ user_id, scope: DENIED_SCOPE });
      await refused(
        tell('POST', '/memories', { content: 'x', user_id, scope: DENIED_SCOPE }, 'narrow'),
        'scope_denied',
      );
      await refused(ask(path(id), {}, 'narrow'), 'scope_denied');
      if (verbs.includes('update')) await refused(tell('PATCH', path(id), { content: 'x' }, 'narrow'), 'scope_denied');
      if (verbs.includes('delete')) await refused(tell('DELETE', path(id), undefined, 'narrow'), 'scope_denied');
      same((await get(id)).content, content, 'content');
    },
  },
];
