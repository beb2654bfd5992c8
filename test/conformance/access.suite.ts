import { beforeAll, describe, expect, it } from 'vitest';
import type { Client, Fields, Query, Reply } from '../support/client.ts';
import { contextLines } from '../support/context.ts';
import { expectError } from '../support/expect-error.ts';
import { freshUser, laterMoment } from '../support/gateway.ts';
import type { WireHit, WireMemory } from '../support/wire.ts';
import { expectExplained } from './search.suite.ts';
import { type Admit, type GetSubject, needs, testOf } from './subject.ts';

/** Scopes similar to `coding/*`, which a wrong comparison would include. */
const SCOPES = [null, 'coding', 'coding/x', 'coding/x/y', 'coding-secret', 'coding-secret/x', 'codingx', 'CODING/x'];
const UNDER_CODING = ['coding/x', 'coding/x/y'];
const WORD = 'coffee';
const UNKNOWN_ID = 'mem_01HZZZZZZZZZZZZZZZZZZZZZZZ';

/** Providers apply the allowed users and scopes to every query. Core decides what is allowed: see test/access. */
export const accessSuite = (subject: GetSubject, admit: Admit) =>
  describe('access', () => {
    const test = testOf(subject);
    const [ana, ben] = [freshUser(), freshUser()];
    const records = new Map<string, WireMemory>();
    const idOf = (user: string, scope: string | null): string => records.get(`${user} ${scope}`)?.id ?? '';
    beforeAll(async () => {
      if (subject().capabilities.features.scopes === 'none') return;
      for (const user_id of [ana, ben]) {
        for (const scope of SCOPES) {
          await laterMoment();
          // The same for all users: random names would make the similarity to a query random too.
          const content = `${WORD} in ${scope}`;
          records.set(`${user_id} ${scope}`, await subject().client.add({ user_id, scope, content }));
        }
      }
    });
    const fresh = (fields: Fields) => subject().client.add({ user_id: ana, content: 'temporary', ...fields });

    /** The scopes a caller finds by each way of asking for one user's memories, which have to agree. */
    const found = async (client: Client, user_id: string, prefix?: string): Promise<unknown[]> => {
      const scope = prefix === undefined ? undefined : `${prefix}*`;
      const scopesOf = (memories: readonly WireMemory[]) => memories.map(({ scope = null }) => scope).sort();
      const listed = scopesOf((await client.list({ user_id, scope })).items);
      const hits = await client.search({ user_id, scope, q: WORD, limit: 100 });
      const { citations, text } = await client.context({
        user_id,
        scope,
        query: WORD,
        token_budget: 5000,
        min_score: 0,
      });
      const cited = citations.map(({ memory_id }) => [...records.values()].find(({ id }) => id === memory_id));
      expect(scopesOf(hits.map(({ memory }) => memory))).toEqual(listed);
      expect(scopesOf(cited as WireMemory[])).toEqual(listed);
      expect(contextLines(text)).toHaveLength(listed.length);
      return listed;
    };
    const byId = ({ ask, tell, byId: path }: Client, id: string): Promise<Reply>[] => [
      ask(path(id)),
      tell('PATCH', path(id), { content: 'changed' }),
      tell('DELETE', path(id)),
    ];
    const verbs = ['list', 'search', 'context', 'update', 'delete'] as const;

    test('[Decision 39] [Decision 14] [Decision 21] scores are explained within the allowed scopes and a scope', async (need) => {
      need('search', 'scopes');
      const { features } = subject().capabilities;
      for (const client of [admit({ grants: ['read:coding/*'] }), admit({ grants: ['read:coding/*', 'read:code*'] })]) {
        for (const scope of [undefined, 'coding/x/']) {
          const query: Query = { user_id: [ana, ben], q: `${WORD} null CODING`, scope, limit: 100 };
          const plain = await client.search(query);
          expect(plain.length).toBeGreaterThan(0);
          expectExplained(await client.search({ ...query, explain: 'true' }), plain, features);
        }
      }
    });

    test('[Decision 14] [SPEC Errors not_found] by id, the memory of another user does not exist for a caller bound to users', async (need) => {
      need(...verbs, 'scopes');
      for (const grants of [['*:*'], ['*:coding/*'], []]) {
        const bound = admit({ users: [ana], grants });
        for (const id of [idOf(ben, 'coding/x'), UNKNOWN_ID]) {
          for (const reply of await Promise.all(byId(bound, id))) expectError(reply, 'not_found');
        }
      }
      expect(await subject().client.get(idOf(ben, 'coding/x'))).toEqual(records.get(`${ben} coding/x`));
    });

    test('[Decision 14] [SPEC Authentication 5] by id, a memory outside the allowed scopes answers 403 and stays unchanged', async (need) => {
      need(...verbs, 'scopes');
      const narrow = admit({ users: [ana], grants: ['*:coding/*'] });
      for (const scope of SCOPES.filter((one) => !UNDER_CODING.includes(one ?? ''))) {
        for (const reply of await Promise.all(byId(narrow, idOf(ana, scope)))) expectError(reply, 'scope_denied');
        expect(await subject().client.get(idOf(ana, scope))).toEqual(records.get(`${ana} ${scope}`));
      }
      for (const scope of UNDER_CODING) {
        const { id } = await fresh({ scope });
        const [read, changed] = [await narrow.get(id), await narrow.update(id, { content: 'changed' })];
        expect([read.content, changed.content]).toEqual(['temporary', 'changed']);
        await narrow.remove(id);
      }
    });

    it.for<readonly [readonly string[], readonly (string | null)[]]>([
      [['read:*'], SCOPES],
      [['*:*'], SCOPES],
      [['read:**'], SCOPES.filter((scope) => scope !== null)],
      [['read:coding/*'], UNDER_CODING],
      [['read:coding'], ['coding']],
      [
        ['read:coding', 'read:coding/*'],
        ['coding', ...UNDER_CODING],
      ],
      [['read:coding*'], SCOPES.filter((scope) => scope?.startsWith('coding'))],
      [['read:coding-secret/*'], ['coding-secret/x']],
      [['read:*/x'], ['coding/x', 'coding-secret/x', 'CODING/x']],
      [['read:codin?'], ['coding']],
      [['read:coding?x'], ['coding/x']],
      [['*:coding/x/*', 'write:*'], ['coding/x/y']],
      [['read:elsewhere'], []],
    ])('[Decision 14] %j finds exactly %j', async ([grants, scopes], { skip }) => {
      needs(skip, subject(), ...verbs, 'scopes');
      expect(await found(admit({ grants }), ana)).toEqual([...scopes].sort());
    });

    test('[Decision 14] [Decision 3] [Decision 4] a filter and the allowed scopes apply together', async (need) => {
      need(...verbs, 'scopes');
      const narrow = admit({ grants: ['read:coding/*'] });
      for (const prefix of ['', 'c', 'coding', 'coding/', 'coding/x']) {
        expect(await found(narrow, ana, prefix), prefix).toEqual(UNDER_CODING);
      }
      expect(await found(narrow, ana, 'coding/x/')).toEqual(['coding/x/y']);
      expect(await found(narrow, ana, 'coding/nothing')).toEqual([]);
    });

    test('[Decision 14] [SPEC GET /memories pagination] hidden memories leave no gaps in pages', async (need) => {
      need(...verbs, 'scopes');
      const user_id = freshUser();
      for (let i = 0; i < 12; i++) await fresh({ user_id, scope: i % 4 === 0 ? `open/${i}` : 'closed' });
      const narrow = admit({ grants: ['read:open/*'] });
      const first = await narrow.list({ user_id, limit: 2 });
      expect(first.items.map(({ scope }) => scope)).toEqual(['open/8', 'open/4']);
      const second = await narrow.list({ user_id, limit: 2, cursor: first.next_cursor ?? undefined });
      expect(second.items.map(({ scope }) => scope)).toEqual(['open/0']);
      expect(second.next_cursor).toBeNull();
      expect((await narrow.search({ user_id, q: 'temporary', limit: 3 })).map(({ memory }) => memory.scope)).toEqual([
        'open/8',
        'open/4',
        'open/0',
      ]);
    });

    it('[Decision 21] hidden memories do not influence scores', async ({ skip }) => {
      needs(skip, subject(), 'search', 'scopes');
      const { scopes, keyword_search } = subject().capabilities.features;
      skip(scopes !== 'native' && keyword_search, 'counts rarity over memories whose scope the backend does not know');
      const [alone, among] = [freshUser(), freshUser()];
      for (const content of ['green tea', 'black coffee', 'green coffee']) {
        for (const user_id of [alone, among]) await fresh({ user_id, content, scope: 'open/x' });
      }
      for (const content of ['green', 'green', 'green house', 'something else', 'tea']) {
        await fresh({ user_id: among, content, scope: 'closed' });
        await fresh({ user_id: among, content });
      }
      const narrow = admit({ grants: ['read:open/*'] });
      const scored = (hits: readonly WireHit[]) => hits.map(({ memory, score }) => [memory.content, score]);
      const query = { q: 'green tea', limit: 10 };
      expect(scored(await narrow.search({ ...query, user_id: among }))).toEqual(
        scored(await narrow.search({ ...query, user_id: alone })),
      );
    });

    test('[Decision 14] [Decision 11] the audit log shows entries whose scope is granted, to who may read', async (need) => {
      need('audit', ...verbs, 'scopes');
      const user_id = freshUser();
      for (const scope of SCOPES) await fresh({ user_id, scope });
      const scopesSeen = async (...grants: readonly string[]) =>
        (await admit({ grants }).audit({ user_id, app: 'seeder' })).map(({ scope }) => scope);
      const seeder = admit({ app: 'seeder' });
      for (const scope of SCOPES) await seeder.add({ user_id, scope, content: 'x' });
      expect((await scopesSeen('read:*')).sort()).toEqual([...SCOPES].sort());
      expect((await scopesSeen('read:coding/*')).sort()).toEqual(UNDER_CODING);
      expect(await scopesSeen('read:elsewhere')).toEqual([]);
      expectError(await admit({ grants: ['write:*', 'delete:*'] }).ask('/audit', { user_id }), 'scope_denied');
    });
  });
