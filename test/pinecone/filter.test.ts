import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { userFilter } from '../../providers/pinecone/filter.ts';
import { compileFilter } from '../pinecone-server/filter.ts';

const user = fc.constantFrom('u', 'v', '', '$eq');
const tags = fc.uniqueArray(fc.constantFrom('a', 'b', 'c', '$and', 'u', ''), { maxLength: 4 });

describe('the filter of a user', () => {
  it('finds exactly the records of that user that carry all of the tags', () => {
    fc.assert(
      fc.property(user, tags, user, tags, (asked, wanted, user_id, carried) => {
        const found = compileFilter(userFilter(asked, wanted))({
          user_id,
          ...(carried.length > 0 && { tags: carried }),
        });
        expect(found).toBe(asked === user_id && wanted.every((tag) => carried.includes(tag)));
      }),
      { numRuns: 1000 },
    );
  });

  it('finds no record without an owner, and none whose owner is no text', () => {
    for (const asked of ['', 'u', 'undefined', 'null', 'true']) {
      const finds = compileFilter(userFilter(asked, []));
      expect(finds({ content: 'text' })).toBe(false);
      expect(finds({ user_id: true })).toBe(false);
    }
  });

  it('uses no operator but $and and $eq, whatever user and tags are called', () => {
    fc.assert(
      fc.property(fc.string(), fc.array(fc.string()), (asked, wanted) => {
        const operators = new Set<string>();
        const walk = (value: unknown): void => {
          if (typeof value !== 'object' || value === null) return;
          for (const [key, inner] of Object.entries(value)) {
            if (key.startsWith('$')) operators.add(key);
            walk(inner);
          }
        };
        walk(userFilter(asked, wanted));
        expect([...operators].filter((operator) => operator !== '$and' && operator !== '$eq')).toEqual([]);
      }),
    );
  });

  it('may name the fields of an index that somebody else fills', () => {
    expect(userFilter('u', ['a'], { user: 'owner', tags: 'labels' })).toEqual({
      $and: [{ owner: { $eq: 'u' } }, { labels: { $eq: 'a' } }],
    });
  });
});
