import type { Condition, Filter, Match, PointId, Range, SparseVector } from './requests.ts';

export interface Point {
  readonly id: PointId;
  readonly vector: Float32Array;
  readonly payload: Readonly<Record<string, unknown>>;
  /** Sparse vectors, by name. They are only kept. */
  readonly sparse: Readonly<Record<string, SparseVector>>;
}

/** Whether a point passes. A filter without conditions passes all. */
export function matches(filter: Filter | undefined, point: Point): boolean {
  const [must, mustNot, should] = [filter?.must, filter?.must_not, filter?.should].map((part) => [part ?? []].flat());
  const holds = (condition: Condition) => check(condition, point);
  return (
    (must as Condition[]).every(holds) &&
    !(mustNot as Condition[]).some(holds) &&
    ((should as Condition[]).length === 0 || (should as Condition[]).some(holds))
  );
}

function check(condition: Condition, point: Point): boolean {
  if ('has_id' in condition) return condition.has_id.includes(point.id);
  if ('is_empty' in condition) {
    const value = valueAt(condition.is_empty.key, point.payload);
    return value === undefined || value === null || (Array.isArray(value) && value.length === 0);
  }
  if ('is_null' in condition) {
    return valueAt(condition.is_null.key, point.payload) === null;
  }
  if (!('key' in condition)) return matches(condition as Filter, point);
  const value = valueAt(condition.key, point.payload);
  // Any element of a list. A field that is missing passes no condition, and two conditions on one field are joined by or.
  return (Array.isArray(value) ? value : [value]).some(
    (one) =>
      (condition.match !== undefined && passesMatch(condition.match, one)) ||
      (condition.range !== undefined && passesRange(condition.range, one)),
  );
}

/** A dot in a name goes into an object, unless the name stands in quotation marks. */
const stepsOf = (key: string): string[] => (key.match(/"[^"]*"|[^.]+/g) ?? []).map((name) => name.replaceAll('"', ''));

/** The payload with a value at a place; what is no object on the way becomes one. */
export function withValueAt(key: string, payload: unknown, value: unknown): Record<string, unknown> {
  const [first = '', ...rest] = stepsOf(key);
  const before: Record<string, unknown> =
    typeof payload === 'object' && payload !== null && !Array.isArray(payload) ? { ...payload } : {};
  return { ...before, [first]: rest.length === 0 ? value : withValueAt(rest.join('.'), before[first], value) };
}

export function valueAt(key: string, payload: unknown): unknown {
  let value = payload;
  for (const name of stepsOf(key)) {
    if (typeof value !== 'object' || value === null || Array.isArray(value)) return undefined;
    value = (value as Record<string, unknown>)[name];
  }
  return value;
}

function passesMatch(match: Match, value: unknown): boolean {
  if (value === undefined || value === null) return false;
  if ('value' in match) return value === match.value;
  if ('any' in match) return (match.any as unknown[]).includes(value);
  return !(match.except as unknown[]).includes(value);
}

/** Numbers against numbers; texts as times. */
function passesRange(range: Range, value: unknown): boolean {
  const bounds = Object.values(range).filter((bound) => bound != null);
  const isTime = bounds.some((bound) => typeof bound === 'string');
  const toNumber = (one: unknown) => (isTime ? Date.parse(String(one)) : one);
  if (typeof value !== (isTime ? 'string' : 'number')) return false;
  const at = toNumber(value) as number;
  const { lt, lte, gt, gte } = range;
  const holds = (bound: unknown, test: (bound: number) => boolean) => bound == null || test(toNumber(bound) as number);
  return (
    holds(lt, (bound) => at < bound) &&
    holds(lte, (bound) => at <= bound) &&
    holds(gt, (bound) => at > bound) &&
    holds(gte, (bound) => at >= bound)
  );
}
