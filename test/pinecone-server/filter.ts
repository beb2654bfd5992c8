import type { Metadata, MetadataValue } from './record-set.ts';
import { check } from './replies.ts';

type Test = (metadata: Metadata) => boolean;
type Condition = (value: MetadataValue | undefined) => boolean;

/**
 * A metadata filter as a predicate: `$and`, `$eq`, `$in` and `$exists`, by the documented rules. Throws a 400 for everything
 * else, also for what Pinecone would take: the gateway sends no other operators. `filterable`: the only keys allowed.
 */
export function compileFilter(filter: unknown, filterable?: readonly string[]): Test {
  check(isObject(filter), 'a filter must be an object');
  const entries = Object.entries(filter);
  check(entries.length > 0, 'a filter must not be empty');
  const tests = entries.flatMap(([key, condition]): Test[] => {
    if (key === '$and') {
      check(Array.isArray(condition) && condition.length > 0, '$and takes a list of filters');
      return condition.map((part) => compileFilter(part, filterable));
    }
    check(!key.startsWith('$'), `${key} is not an operator of this server`);
    check(filterable?.includes(key) ?? true, `the field ${key} is not filterable`);
    return conditions(condition).map(
      (matches) => (metadata) => matches(Object.hasOwn(metadata, key) ? metadata[key] : undefined),
    );
  });
  return (metadata) => tests.every((test) => test(metadata));
}

function conditions(condition: unknown): Condition[] {
  // A plain value is short for $eq.
  const entries = Object.entries(isObject(condition) ? condition : { $eq: condition });
  check(entries.length > 0, 'a condition must not be empty');
  return entries.map(([operator, operand]) => {
    if (operator === '$eq') {
      check(['string', 'number', 'boolean'].includes(typeof operand), '$eq takes a string, a number or a boolean');
      return (value) => isAmong(value, [operand]);
    }
    if (operator === '$in') {
      check(Array.isArray(operand) && operand.length > 0, '$in takes a list');
      return (value) => isAmong(value, operand);
    }
    check(operator === '$exists' && typeof operand === 'boolean', `${operator} is not an operator of this server`);
    return (value) => (value !== undefined) === operand;
  });
}

/** A list matches if any of its elements does. */
const isAmong = (value: MetadataValue | undefined, wanted: readonly unknown[]): boolean =>
  Array.isArray(value) ? value.some((one) => wanted.includes(one)) : wanted.includes(value);

const isObject = (value: unknown): value is Record<string, unknown> =>
  typeof value === 'object' && value !== null && !Array.isArray(value);
