import { LRUCache } from 'lru-cache';
import type { Call, RankingOptions, SearchQuery } from '#contract';
import type { Database, Row, Run } from '../client/connections.ts';
import { conditions, whereWithin, whereWithinRanges } from './conditions.ts';
import type { LargeUsers } from './large-users.ts';
import type { Statements } from './memory-statements.ts';
import type { Names } from './names.ts';
import { indexSettings, keysOf, MAX_INDEXED_LIMIT, part, type Rarity, searchStatement } from './search-statement.ts';
import { toBigintArray } from './search-terms.ts';

export interface SearchOptions {
  readonly db: Database;
  readonly names: Names;
  readonly statements: Statements;
  readonly ranking: RankingOptions;
  readonly largeUsers: LargeUsers;
}

/** Runs a search the faster way: exactly over all memories of the user, or through the indexes. Returns rows, best first. */
export function createSearch({ db, names, statements, ranking, largeUsers }: SearchOptions) {
  const heavy = (text: string) => ({ ...statements.query(text, []).statement, heavy: true });
  const run: Run = (text, values, call) => db.query(heavy(text), values, call);
  const rarityOf = createRarity(names, run);

  return async (query: SearchQuery, call: Call): Promise<Row[]> => {
    const indexable = query.limit <= MAX_INDEXED_LIMIT && (query.vector?.some((part) => part !== 0) ?? true);
    if (indexable && largeUsers.has(query.user_id)) {
      const rarity = await rarityOf(query, keysOf(ranking, query), call);
      if (largeUsers.indexPays(rarity.rows)) {
        const { text, values } = searchStatement(names, ranking, { query, rarity });
        return db.queryWith(indexSettings(rarity.rows), heavy(text), values, call);
      }
    }
    const { text, values } = searchStatement(names, ranking, { query });
    const rows = await run(text, values, call);
    largeUsers.observe(query.user_id, Number(rows[0]?.total ?? 0));
    return rows;
  };
}

/** Counts of one user, within the allowed scopes of one grant. */
interface Counted {
  readonly rows: number;
  readonly holding: Map<number, number>;
}

/**
 * A minute: counting a hundred thousand memories takes 10 ms, and as much again for a term that all of them contain.
 * Memories added meanwhile make the counts slightly wrong; they are found all the same.
 */
const CACHE_MS = 60_000;
const MAX_CACHED = 1_000;
/** Terms of all users together, about 50 bytes each. */
const MAX_CACHED_TERMS = 200_000;
/** Terms of one user in that minute. */
const MAX_TERMS_OF_USER = 10_000;

/**
 * Counts how rare the terms of a query are for a large user, at most once a minute. Each grant has its own counts, over
 * the memories it allows: otherwise scores would reveal the terms of hidden memories.
 */
export function createRarity(names: Names, run: Run) {
  const kept = new LRUCache<string, Counted>({
    max: MAX_CACHED,
    maxSize: MAX_CACHED_TERMS,
    sizeCalculation: ({ holding }) => 1 + holding.size,
    ttl: CACHE_MS,
    // Otherwise the first counts would never expire.
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
      if (counted.holding.size > MAX_TERMS_OF_USER) kept.delete(whose);
      // A new object, because the cache computes the size of an object only once.
      else kept.set(whose, { ...counted });
    }
    const { rows, holding } = counted;
    return { rows, holding: keys.map((key) => holding.get(key) as number) };
  };
}

interface CountRequest {
  readonly keys: readonly number[];
  /** Whether to count all memories too. */
  readonly all: boolean;
}

export function countStatement(names: Names, query: SearchQuery, { keys, all }: CountRequest) {
  const where = conditions();
  const wanted = where.bind(toBigintArray(keys));
  const visible = part(where, (inner) => whereWithin(inner, query.within));
  const whole = () => {
    const ranges = part(where, (inner) => whereWithinRanges(inner, query));
    return `select count(*) from ${names.memories} where user_id = ${where.bind(query.user_id)} and ${visible} and ${ranges}`;
  };
  return {
    text: `select (${all ? whole() : 'select null'})::float8 as rows, array(
        select (select count(*) from ${names.memories} where large and keywords @> array[key] and ${visible})
        from unnest(${wanted}::bigint[]) with ordinality as term (key, n) order by n)::float8[] as holding`,
    values: where.values,
  };
}
