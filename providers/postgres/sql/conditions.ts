import type { Visible } from '#provider';
import { inShard, type Shard } from '../scaling/placement.ts';
import { toTextArray } from './values.ts';

/** Builds a WHERE clause: SQL with `$n` parameters, and their values. Values never enter the text. */
export interface Conditions {
  readonly values: unknown[];
  /** Adds a value and returns its parameter. */
  bind(value: unknown): string;
  and(condition: string): void;
  /** SQL that limits a table to the shard of the statement. `alias`: with its dot. */
  inShard(alias?: string): string;
  toString(): string;
}

export function conditions(shard?: Shard): Conditions {
  const values: unknown[] = shard === undefined ? [] : [typeof shard === 'number' ? shard : `{${shard}}`];
  const parts: string[] = [];
  return {
    values,
    bind: (value) => `$${values.push(value)}`,
    and: (condition) => void (condition !== 'true' && parts.push(condition)),
    inShard: (alias = '') => inShard(shard, alias),
    toString: () => parts.join(' and ') || 'true',
  };
}

/** Conditions as a separate SQL text. */
export function conditionOf(where: Conditions, write: (inner: Conditions) => void): string {
  const inner: string[] = [];
  write({ ...where, and: (condition) => void inner.push(condition) });
  return inner.length > 0 ? inner.join(' and ') : 'true';
}

/** What the query may see. `scope`: SQL of the scope. */
export function whereWithin(where: Conditions, { within, outside }: Visible, scope = 'scope'): void {
  if (within !== null) where.and(isWithin(where, within, scope));
  if (outside) {
    const hidden = outside.flatMap((top) => [toLikePattern(top), `${toLikePattern(top)}/%`]);
    where.and(`(${scope} is null or not ${scope} like any(${where.bind(toTextArray(hidden))}::text[]))`);
  }
}

/** SQL that tells whether a scope matches one of the globs. */
export function isWithin(where: Conditions, globs: readonly string[], scope = 'scope'): string {
  const patterns = globs.filter((glob) => glob !== '').map(toLikePattern);
  const matches = `${scope} like any(${where.bind(toTextArray(patterns))}::text[])`;
  return patterns.length < globs.length ? `(${scope} is null or ${matches})` : matches;
}

/** A glob as a pattern for `like`. */
export const toLikePattern = (glob: string): string =>
  glob.replace(/[\\%_*?]/g, (character) => (character === '*' ? '%' : character === '?' ? '_' : `\\${character}`));

/** Takes rows with `bytes` up to the one at which their sum exceeds `most`, at least two, in this order. All arguments are SQL. */
export const firstWithin = (rows: string, order: string, most: string): string =>
  `(select * from (select *, sum(bytes) over place - bytes as bytes_before, row_number() over place as nth
     from (${rows}) as sized window place as (order by ${order})) as placed where bytes_before <= ${most} or nth <= 2)`;
