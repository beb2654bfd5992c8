import { beforeAll, describe, expect, it } from 'vitest';
import { freshUser } from '../support/gateway.ts';
import { type GetSubject, needs, testOf } from './subject.ts';

/** Similar scopes, and characters that are special in patterns of a store. */
const SCOPES: readonly (string | null)[] = [
  ...['coding', 'coding/preferences', 'coding/preferences/editor', 'coding-secret', 'coding-secret/keys'],
  ...['codingx', 'Coding/preferences', 'a%b', 'a_b', 'axb', 'axxb', 'a[b]', 'ab', 'a\\b', 'a/b', 'a b'],
  ...['e\u0301/decomposed', '\u00e9/composed', 'health/記録', 'health/😀/x', '%41', null],
];
const EVERY = SCOPES.filter((scope) => scope !== null);
const UNDER_CODING = ['coding/preferences', 'coding/preferences/editor'];
const CODING_STAR = ['coding', ...UNDER_CODING, 'coding-secret', 'coding-secret/keys', 'codingx'];

const GLOBS: readonly (readonly [string, readonly string[]])[] = [
  ['coding', ['coding']],
  ['coding/*', UNDER_CODING],
  ['coding/**', UNDER_CODING],
  ['coding*', CODING_STAR],
  ['coding/*/editor', ['coding/preferences/editor']],
  ['coding*editor', ['coding/preferences/editor']],
  ['coding/preferences/*', ['coding/preferences/editor']],
  ['*preferences', ['coding/preferences', 'Coding/preferences']],
  ['*/*', EVERY.filter((scope) => scope.includes('/'))],
  ['*', EVERY],
  ['**', EVERY],
  ['*?', EVERY],
  ['coding-*', ['coding-secret', 'coding-secret/keys']],
  ['coding/preference?', ['coding/preferences']],
  ['coding?preferences', ['coding/preferences']],
  ['coding?*', CODING_STAR.slice(1)],
  ['a?b', ['a%b', 'a_b', 'axb', 'a\\b', 'a/b', 'a b']],
  ['a*b', ['a%b', 'a_b', 'axb', 'axxb', 'ab', 'a\\b', 'a/b', 'a b']],
  ['a?', ['ab']],
  ['a%b', ['a%b']],
  ['a%', []],
  ['a_b', ['a_b']],
  ['a[b]', ['a[b]']],
  ['a[*', ['a[b]']],
  ['[a]b', []],
  ['a\\b', ['a\\b']],
  ['a\\*', ['a\\b']],
  ['a\\?', ['a\\b']],
  ['\\*', []],
  ['health/?/x', ['health/😀/x']],
  ['health/??', ['health/記録']],
  ['\u00e9/*', ['\u00e9/composed']],
  ['%41', ['%41']],
  ['A', []],
  ['CODING/*', []],
  ['coding/', []],
  ['/coding', []],
  ['cod.ng', []],
  ['^coding$', []],
  ['coding|codingx', []],
  ['(coding)', []],
  ['{coding,codingx}', []],
  ['?', []],
];

const PREFIXES: readonly (readonly [string, readonly string[]])[] = [
  ['c', CODING_STAR],
  ['cod', CODING_STAR],
  ['coding', CODING_STAR],
  ['coding*', CODING_STAR],
  ['coding/', UNDER_CODING],
  ['coding/*', UNDER_CODING],
  ['coding/pref', UNDER_CODING],
  ['coding/pref*', UNDER_CODING],
  ['coding/preferences', UNDER_CODING],
  ['coding/preferences/editor', ['coding/preferences/editor']],
  ['coding/preferences/editor/more', []],
  ['coding/**', []],
  ['c*g', []],
  ['cod?ng', []],
  ['Coding', ['Coding/preferences']],
  ['oding', []],
  ['a%', ['a%b']],
  ['a_', ['a_b']],
  ['a[', ['a[b]']],
  ['a\\', ['a\\b']],
  ['a/', ['a/b']],
  ['a ', ['a b']],
  ['%', ['%41']],
  ['\u00e9', ['\u00e9/composed']],
  ['health/記', ['health/記録']],
  ['health/😀', ['health/😀/x']],
  ['*', EVERY],
];

export const scopesSuite = (subject: GetSubject) =>
  describe('scopes', () => {
    const test = testOf(subject);
    const user_id = freshUser();
    const stranger = freshUser();
    const scopesOf = (memories: readonly { scope?: string | null }[]) => memories.map(({ scope }) => scope).sort();

    beforeAll(async () => {
      if (subject().capabilities.features.scopes === 'none') return;
      for (const scope of SCOPES) {
        await subject().client.add({ user_id, content: 'a shared note', scope });
        await subject().client.add({ user_id: stranger, content: 'a shared note', scope });
      }
    });

    it.for(GLOBS)(
      '[SPEC GET /memories scope] [Decision 3] list with %j finds %j',
      async ([scope, expected], { skip }) => {
        needs(skip, subject(), 'list', 'scopes');
        const { items } = await subject().client.list({ user_id, scope });
        expect(scopesOf(items)).toEqual([...expected].sort());
        expect(new Set(items.map((item) => item.user_id))).toEqual(new Set(expected.length > 0 ? [user_id] : []));
      },
    );

    it.for(PREFIXES)(
      '[SPEC GET /memories/search scope] [Decision 4] search with %j finds %j',
      async ([scope, expected], { skip }) => {
        needs(skip, subject(), 'search', 'scopes');
        const hits = await subject().client.search({ user_id, q: 'shared note', scope, limit: 100 });
        expect(scopesOf(hits.map((hit) => hit.memory))).toEqual([...expected].sort());
      },
    );

    test('[Decision 2] [SPEC GET /memories scope] pages of a filtered list are filled from everything that matches', async (need) => {
      need('list', 'scopes');
      const found: unknown[] = [];
      let cursor: string | undefined;
      for (let page = 0; page < CODING_STAR.length; page += 2) {
        const { items, next_cursor } = await subject().client.list({ user_id, scope: 'coding*', limit: 2, cursor });
        expect(items).toHaveLength(2);
        found.push(...items.map((item) => item.scope));
        cursor = next_cursor ?? undefined;
      }
      expect(cursor).toBeUndefined();
      expect(found.sort()).toEqual([...CODING_STAR].sort());
    });
  });
