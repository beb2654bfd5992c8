import { LRUCache } from 'lru-cache';
import type { Call, SearchQuery } from '#contract';
import type { Run } from './client/connections.ts';
import { toBigintArray } from './keywords.ts';
import { part, type Rarity } from './search.ts';
import { conditions, whereWithin, whereWithinRanges } from './tables/conditions.ts';
import type { Names } from './tables/names.ts';

/** What was counted of one user, as one grant sees it. */
interface Counted {
  readonly rows: number;
  readonly holding: Map<number, number>;
}

/**
 * A minute: counting the memories of a user who has a hundred thousand takes 10 ms, and as much for a word that all of
 * them hold. What is added meanwhile makes a word a little less rare than it is; it is found all the same.
 */
const KEPT_MS = 60_000;
const MOST_KEPT = 1_000;
/** Of all users together: each takes some 50 bytes. */
const MOST_KEPT_WORDS = 200_000;
/** Of one user in that minute. */
const MOST_WORDS = 10_000;

/**
 * Counts how rare the words of a query are for a large user, once a minute. Each grant has counts of its own, over what
 * it sees: else scores would tell which words the hidden memories contain.
 */
export function createRarity(names: Names, run: Run) {
  const kept = new LRUCache<string, Counted>({
    max: MOST_KEPT,
    maxSize: MOST_KEPT_WORDS,
    sizeCalculation: ({ holding }) => 1 + holding.size,
    ttl: KEPT_MS,
    // What was counted first would else never be counted again.
    noUpdateTTL: true,
  });

  return async (query: SearchQuery, keys: readonly number[], call: Call): Promise<Rarity> => {
    const whose = JSON.stringify([query.user_id, query.within]);
    let counted = kept.get(whose);
    const missing = keys.filter((key) => !counted?.holding.has(key));
    if (!counted || missing.length > 0) {
      const { text, values } = countStatement(names, query, { keys: missing, all: !counted });
      const [{ rows, holding }] = (await run(text, values, call)) as [{ rows: number; holding: number[] }];
      if (!counted) {
        counted = { rows, holding: new Map() };
      }
      for (const [i, key] of missing.entries()) counted.holding.set(key, holding[i] as number);
      if (counted.holding.size > MOST_WORDS) kept.delete(whose);
      // Another object, or its size would stay what it was.
      else kept.set(whose, { ...counted });
    }
    const { rows, holding } = counted;
    return { rows, holding: keys.map((key) => holding.get(key) as number) };
  };
}

interface Wanted {
  readonly keys: readonly number[];
  /** Whether all memories are to be counted too. */
  readonly all: boolean;
}

export function countStatement(names: Names, query: SearchQuery, { keys, all }: Wanted) {
  const where = conditions();
  const wanted = where.place(toBigintArray(keys));
  const visible = part(where, (own) => whereWithin(own, query.within));
  const whole = () => {
    const ranges = part(where, (own) => whereWithinRanges(own, query));
    return `select count(*) from ${names.memories} where user_id = ${where.place(query.user_id)} and ${visible} and ${ranges}`;
  };
  return {
    text: `select (${all ? whole() : 'select null'})::float8 as rows, array(
        select (select count(*) from ${names.memories} where large and keywords @> array[key] and ${visible})
        from unnest(${wanted}::bigint[]) with ordinality as term (key, n) order by n)::float8[] as holding`,
    values: where.values,
  };
}
