import type { ListQuery, SearchQuery, Visible, Written } from '#contract';
import { hasWildcard, literalPrefix, withinMatcher } from '#toolbox';
import type { Filter, OptionalFilter, PointFields, Traits } from './collection.ts';

/*
 * What a query wants, as filters: those that the database decides, and those that are decided here on what it returns.
 */

/** Tells whether a point is wanted, by its fields. */
type Test = (fields: PointFields) => boolean;

/** What a query wants. `rest`: what the database cannot decide; undefined: nothing. */
export interface Condition {
  readonly filter: Filter;
  readonly rest: Test | undefined;
  /** How many filters the database cannot decide. */
  readonly undecided: number;
  /** Whether all of the query holds. */
  readonly matches: Test;
}

/** What a database decides: these filters, of these fields. */
interface Decided {
  readonly filters: readonly OptionalFilter[];
  readonly fields?: readonly string[] | undefined;
}
export const byQuery = ({ filters, filtered }: Traits): Decided => ({ filters, fields: filtered?.query });
export const byScan = ({ filters, filtered }: Traits): Decided => ({ filters, fields: filtered?.scan });

export const equals = (field: string, value: string | number): Filter => ({ op: 'equals', field, value });
export const between = (field: string, from: number | undefined, to: number | undefined): Filter => ({
  op: 'range',
  field,
  from,
  to,
});
const not = (filter: Filter): Filter => ({ op: 'not', filter });

/** All of these must hold. There is at least one. */
export const both = (...filters: readonly Filter[]): Filter =>
  filters.length === 1 ? (filters[0] as Filter) : { op: 'and', filters };

/** Most values of an `anyOf`. */
const MAX_VALUES = 100;

/** A part of what a query wants: filters, of which all must hold, and what no filter says. */
interface Part {
  readonly filters: readonly Filter[];
  readonly test?: Test;
}

const scopeOf = ({ scope }: PointFields): string | null => (scope === '' ? null : String(scope));
const SCOPED = not(equals('scope', ''));

/** The points whose scope matches one of these globs; the empty one matches those without a scope. */
function globs(wanted: readonly string[] | null): Part {
  if (wanted === null) return { filters: [] };
  if (wanted.length <= MAX_VALUES && !wanted.some(hasWildcard))
    return { filters: [{ op: 'anyOf', field: 'scope', values: wanted }] };
  const matches = withinMatcher(wanted);
  const test: Test = (fields) => matches(scopeOf(fields));
  const [glob, ...more] = wanted;
  if (glob === undefined || more.length > 0) return { filters: [], test };
  const prefix = literalPrefix(glob);
  return { filters: [beginsWith(prefix)], ...(glob !== `${prefix}*` && { test }) };
}

const beginsWith = (value: string): Filter => (value === '' ? SCOPED : { op: 'prefix', field: 'scope', value });

const hidden = (outside: readonly string[] = []): Filter[] =>
  outside.flatMap((scope) => [not(equals('scope', scope)), not({ op: 'prefix', field: 'scope', value: `${scope}/` })]);

/** What is stored of who wrote a memory (`points.ts`), as a query for it. */
const writtenBy = ({ origin, trusted }: Written): string[] => [
  ...(origin ? ['key' in origin ? `key:${origin.key}` : `via:${origin.via}`] : []),
  ...(trusted ? ['trusted'] : []),
];

const all = (field: string, values: readonly string[]): Filter[] =>
  values.length === 0 ? [] : [{ op: 'allOf', field, values: [...new Set(values)] }];

type Query = Partial<Pick<ListQuery, 'tags' | 'written' | 'since' | 'until'>> &
  Pick<SearchQuery, 'user_id' | 'max_content_bytes'> &
  Visible & { readonly scopes?: readonly string[] | null; readonly prefix?: string | undefined };

/**
 * What a query wants of a user's memories. `scopes`: globs of which one must match; `prefix`: of the scope. Undefined: nothing matches. `can`: what
 * the database decides.
 */
export function conditionOf(query: Query, can: Decided): Condition | undefined {
  const {
    user_id,
    tags = [],
    written = {},
    since,
    until,
    max_content_bytes,
    scopes = null,
    prefix,
    within,
    outside,
  } = query;
  if (within?.length === 0) return undefined;
  const inTime = since !== undefined || until !== undefined;
  const parts: Part[] = [
    { filters: [equals('user_id', user_id), ...all('tags', tags), ...all('written', writtenBy(written))] },
    {
      filters: inTime
        ? [
            between(
              'created',
              since === undefined ? undefined : Date.parse(since),
              until === undefined ? undefined : Date.parse(until),
            ),
          ]
        : [],
    },
    { filters: max_content_bytes === undefined ? [] : [between('bytes', 0, max_content_bytes)] },
    { filters: prefix === undefined ? [] : [beginsWith(prefix)] },
    globs(scopes),
    globs(within),
    { filters: hidden(outside) },
  ];
  const filters = parts.flatMap((part) => part.filters);
  const tests = [
    ...parts.flatMap(({ test }) => test ?? []),
    ...filters
      .filter((filter) => !decides(can, filter))
      .map(
        (filter): Test =>
          (fields) =>
            holds(filter, fields),
      ),
  ];
  const filter = both(...filters.filter((one) => decides(can, one)));
  const rest: Test = (fields) => tests.every((test) => test(fields));
  return {
    filter,
    rest: tests.length === 0 ? undefined : rest,
    undecided: tests.length,
    matches: (fields) => holds(filter, fields) && rest(fields),
  };
}

/** Whether a database decides this filter. */
export function decides(can: Decided, filter: Filter): boolean {
  if (filter.op === 'and') return filter.filters.every((part) => decides(can, part));
  if (filter.op === 'not') return can.filters.includes('not') && decides(can, filter.filter);
  const isKnown = filter.op === 'equals' || filter.op === 'range' || can.filters.includes(filter.op);
  return isKnown && (can.fields?.includes(filter.field) ?? true);
}

/** Whether a filter holds for a point with these fields. */
export function holds(filter: Filter, fields: PointFields): boolean {
  if (filter.op === 'and') return filter.filters.every((part) => holds(part, fields));
  if (filter.op === 'not') return !holds(filter.filter, fields);
  const value = fields[filter.field];
  if (filter.op === 'equals') return value === filter.value;
  if (filter.op === 'anyOf') return filter.values.some((one) => one === value);
  if (filter.op === 'allOf') return Array.isArray(value) && filter.values.every((one) => value.includes(one));
  if (filter.op === 'prefix') return typeof value === 'string' && value.startsWith(filter.value);
  const { from = Number.NEGATIVE_INFINITY, to = Number.POSITIVE_INFINITY } = filter;
  return typeof value === 'number' && value >= from && value <= to;
}
