import { describe, expect, it } from 'vitest';
import { materialized, part, type WithPart, withParts } from '../../providers/postgres/sql/parts.ts';

const read = (memories: WithPart<'id' | 'scope'>): string => `select ${memories.id} from ${memories}`;

describe('a part of a with', () => {
  it('stands for its name, and its columns for theirs', () => {
    const before = materialized('before', 'id', 'scope')`select id, scope from memories for update`;
    const changed = part(
      'changed',
      'id',
      'scope',
      'version',
    )`update memories set scope = null from ${before} returning *`;
    expect(`${withParts([before, false, undefined, changed])} ${read(changed)}`).toBe(
      'with before as materialized (select id, scope from memories for update), ' +
        'changed as (update memories set scope = null from before returning *) select id from changed',
    );
    expect(withParts([undefined])).toBe('');
  });

  it('does not compile where it lacks what is read', () => {
    const claimed = part('claimed', 'id')`select 1 as id`;
    // @ts-expect-error It has no column `scope`.
    expect(read(claimed)).toBe('select id from claimed');
    // @ts-expect-error It has no column of this name.
    expect(claimed.memory_id).toBeUndefined();
    // @ts-expect-error A name is not a part.
    expect(() => read('claimed')).not.toThrow();
  });
});
