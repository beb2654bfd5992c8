import { MAX_TERMS } from '#provider';
import type { Conditions } from '../sql/conditions.ts';
import { materialized, part, type WithPart } from '../sql/parts.ts';

/** How many memories of a user a caller may see, and how many of those contain each key, in the order of `keysOf`. */
export interface Rarity {
  readonly rows: number;
  readonly holding: readonly number[];
}

interface Known {
  readonly where: Conditions;
  /** SQL of the keys of the query; undefined: there are none. */
  readonly keyArray: string | undefined;
}

/** Counts made beforehand. */
export const countedOf = ({ where, keyArray }: Known, { rows, holding }: Rarity): WithPart<'rows'> =>
  part(
    'counted',
    'rows',
  )`select ${where.bind(rows)}::float8 as rows${keyArray ? `, ${where.bind(`{${holding}}`)}::float8[] as holding` : ''}`;

/** The number of memories that hold each term, from `countedOf`. */
export const HELD = 'unnest(holding) with ordinality as term (held, n)';

/** The rarity of each term, in the order of the query, and of all together. */
export const rarityOf = (counted: WithPart<'rows'>, held: string): WithPart<'idfs' | 'whole'> =>
  materialized('rarity', 'idfs', 'whole')`select array_agg(idf) as idfs, sum(idf) as whole
    from (select ln(1 + (${counted.rows} - held + 0.5::float8) / (held + 0.5::float8)) as idf from ${counted}, ${held} order by n) as term`;

/** Which memories hold which terms, and how rare those are. */
export interface Covering {
  readonly terms: WithPart<'holder' | 'n'>;
  readonly rarity: WithPart<'idfs' | 'whole'>;
}

/** Joins `coverage` to memories. */
export const coverageOf = ({ terms, rarity }: Covering): string => `
      left join (select ${terms.holder}, sum((select ${rarity.idfs} from ${rarity})[${terms.n}]) / (select ${rarity.whole} from ${rarity}) as coverage
        from ${terms} group by ${terms.holder}) as covered on holder = id`;

/** Limit of memories ranked because they contain a rare term of the query; common terms come later. */
const MAX_RARE = 500;

/** The rarest keys, as long as few enough memories contain them. */
export function rarest(keys: readonly number[], holding: readonly number[]): number[] {
  const counted = keys.map((key, i) => ({ key, held: holding[i] as number })).sort((a, b) => a.held - b.held);
  let sum = 0;
  return counted
    .filter(({ held }) => {
      sum += held;
      return sum <= MAX_RARE;
    })
    .map(({ key }) => key);
}

/** Limit of terms that one search reads from the table: about half a second. */
const MAX_READ = 4_000_000;
/** Terms read of each memory in any case: ordinary memories have fewer. */
const MIN_READ = 256;
/** Up to this many comparisons cost less than reading the terms of a memory one by one. */
const FEW_COMPARISONS = 512;
const KEY_BYTES = 8;

/**
 * Which of the memories in `from` contain which of the keys in `keyArray`. In a long memory it reads every
 * term once, for any number of keys; comparing each with each would multiply the two. If the memories together have
 * more than `MAX_READ` terms, it reads only as many first terms of each long one as fit.
 */
export function termsOf(from: WithPart<'id' | 'keywords'>, keyArray: string): Covering['terms'] {
  const readOfEach = `
    select case when sum(pg_column_size(keywords)) <= ${KEY_BYTES * MAX_READ} then ${MAX_TERMS}
      else least(${MAX_TERMS}, greatest(${MIN_READ}, ${MAX_READ} / nullif(count(*), 0))) end
    from ${from}`;
  const isLong = `pg_column_size(keywords) > ${KEY_BYTES * FEW_COMPARISONS} / cardinality(${keyArray})`;
  const terms = `unnest(${keyArray}) with ordinality as term (key, n)`;
  return materialized(
    `${from}_terms`,
    'holder',
    'n',
  )`select id as holder, n from ${from} join ${terms} on key = any(keywords) where not ${isLong}
    union all
    select id, n from (select id, unnest(keywords[1:(${readOfEach})]) as key from ${from} where ${isLong}) as entry join ${terms} using (key)`;
}
