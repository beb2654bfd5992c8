import { describe, expect, it } from 'vitest';
import { OmpError } from '#contract';
import { withinMatcher } from '#toolbox';
import { ALL_GRANTS, isGrant, isKeyGrant, toGrants } from '../../src/core/grants.ts';

describe('a grant', () => {
  it.each([
    'read:*',
    'write:coding/*',
    'delete:a',
    '*:*',
    '*:x',
    'read:a:b',
    'read: ',
    'read:?',
    'read:\n',
    `read:${'x'.repeat(512)}`,
    `read:${'😀'.repeat(512)}`,
  ])('is %j', (text) => {
    expect([isGrant(text), isKeyGrant(text)]).toEqual([true, true]);
  });

  it('[Decision 41] of a key alone is admin:*', () => {
    expect([isGrant('admin:*'), isKeyGrant('admin:*')]).toEqual([false, true]);
  });

  it.each([
    '',
    'read',
    'read:',
    ':',
    ':*',
    '*',
    'READ:*',
    'admin:x',
    'admin:**',
    'admin:',
    'ADMIN:*',
    ' read:*',
    'read :*',
    '**:*',
    'read,write:*',
    `read:${'x'.repeat(513)}`,
    `read:${'😀'.repeat(513)}`,
    'read:\0',
    'read:a\0b',
    'read:\ud800',
    'read:\udc00x',
    'x\nread:*',
  ])('is not %j, and then the whole list is refused', (text) => {
    expect([isGrant(text), isKeyGrant(text)]).toEqual([false, false]);
    const refusal = (() => {
      try {
        return toGrants(['read:*', text]);
      } catch (error) {
        return error;
      }
    })();
    expect(refusal).toBeInstanceOf(OmpError);
    expect(refusal).toMatchObject({ code: 'invalid_request' });
  });
});

describe('grants together', () => {
  it.each<[readonly string[], ReturnType<typeof toGrants>]>([
    [[], { read: [], write: [], delete: [], admin: false }],
    [['read:a'], { read: ['a'], write: [], delete: [], admin: false }],
    [['write:a', 'write:b/*', 'delete:c'], { read: [], write: ['a', 'b/*'], delete: ['c'], admin: false }],
    [['*:x'], { read: ['x'], write: ['x'], delete: ['x'], admin: false }],
    [['*:x', 'read:y'], { read: ['x', 'y'], write: ['x'], delete: ['x'], admin: false }],
    [['read:*'], { read: null, write: [], delete: [], admin: false }],
    [['read:a', 'read:*', 'read:b'], { read: null, write: [], delete: [], admin: false }],
    [['*:*'], ALL_GRANTS],
    [['*:*', '*:a'], ALL_GRANTS],
    [['read:**'], { read: ['**'], write: [], delete: [], admin: false }],
    [['admin:*'], { read: [], write: [], delete: [], admin: true }],
    [['admin:*', 'read:a'], { read: ['a'], write: [], delete: [], admin: true }],
    [['read:a:b'], { read: ['a:b'], write: [], delete: [], admin: false }],
  ])('%j allow %j', (texts, allowed) => {
    expect(toGrants(texts)).toEqual(allowed);
  });

  it('cover unscoped memories by the glob * alone', () => {
    const unscoped = (grant: string) => withinMatcher(toGrants([grant]).read)(null);
    expect(unscoped('read:*')).toBe(true);
    expect(unscoped('*:*')).toBe(true);
    for (const narrower of ['read:**', 'read:?*', 'read:null', 'read:coding/*', 'write:*']) {
      expect(unscoped(narrower), narrower).toBe(false);
    }
  });
});
