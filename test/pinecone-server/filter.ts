import type { Metadata, MetadataValue } from './record-set.ts';
import { check } from './refusal.ts';

/** Undefined: what the service would say is documented nowhere. */
type Verdict = boolean | undefined;
type Test = (metadata: Metadata) => Verdict;
type Scalar = string | number | boolean;

/**
 * A metadata filter as a predicate, by the documented rules. Throws a 400 for what they do not allow, be it when it is
 * made or, where the outcome hangs on what they leave open (`$ne` and `$nin` on lists and missing keys), when it is used.
 * `filterable`: the only keys it may name.
 */
export function compileFilter(filter: unknown, filterable?: ReadonlySet<string>): (metadata: Metadata) => boolean {
  const test = expression(filter, filterable);
  return (metadata) => {
    const verdict = test(metadata);
    check(verdict !== undefined, '$ne and $nin are not established on lists and on missing keys');
    return verdict;
  };
}

function expression(filter: unknown, filterable?: ReadonlySet<string>): Test {
  check(isObject(filter), 'a filter must be an object');
  const entries = Object.entries(filter);
  check(entries.length > 0, 'a filter must not be empty');
  return every(
    entries.map(([key, condition]) => {
      if (key === '$and' || key === '$or') {
        check(Array.isArray(condition) && condition.length > 0, `${key} takes a list of filters`);
        const tests = condition.map((part) => expression(part, filterable));
        return key === '$and' ? every(tests) : some(tests);
      }
      check(!key.startsWith('$'), `${key} is not a valid operator, only $and and $or are allowed here`);
      check(filterable?.has(key) ?? true, `the field ${key} is not filterable`);
      return every(conditions(condition).map((matches) => (metadata) => matches(own(metadata, key))));
    }),
  );
}

type Condition = (value: MetadataValue | undefined) => Verdict;

function conditions(condition: unknown): Condition[] {
  if (isScalar(condition)) return [equal(condition)];
  check(isObject(condition), 'a condition must be a string, a number, a boolean or an object of operators');
  const entries = Object.entries(condition);
  check(entries.length > 0, 'a condition must not be empty');
  return entries.map(([operator, operand]) => {
    const make = own(OPERATORS, operator);
    check(make !== undefined, `${operator} is not a valid operator`);
    return make(operand, operator);
  });
}

/** A list matches when any of its elements does. */
const equal =
  (wanted: Scalar): Condition =>
  (value) =>
    Array.isArray(value) ? value.includes(wanted) : value === wanted;

/** Undefined where the documentation does not say what a negation finds. */
const negated =
  (condition: Condition): Condition =>
  (value) =>
    value === undefined || Array.isArray(value) ? undefined : !condition(value);

const scalar = (operand: unknown, operator: string): Scalar => {
  check(isScalar(operand), `${operator} takes a string, a number or a boolean`);
  return operand;
};

const MOST_OPERANDS = 10_000;

const anyOf = (operand: unknown, operator: string): Condition => {
  check(Array.isArray(operand), `${operator} takes a list`);
  check(operand.length > 0 && operand.length <= MOST_OPERANDS, `${operator} takes 1 to ${MOST_OPERANDS} values`);
  check(
    operand.every((one) => typeof one === 'string' || typeof one === 'number'),
    `${operator} takes strings and numbers`,
  );
  const wanted = new Set<unknown>(operand);
  return (value) => (Array.isArray(value) ? value.some((one) => wanted.has(one)) : wanted.has(value));
};

const compared =
  (holds: (value: number, operand: number) => boolean) =>
  (operand: unknown, operator: string): Condition => {
    check(typeof operand === 'number', `${operator} takes a number`);
    return (value) => typeof value === 'number' && holds(value, operand);
  };

const exists = (operand: unknown, operator: string): Condition => {
  check(typeof operand === 'boolean', `${operator} takes a boolean`);
  return (value) => (value !== undefined) === operand;
};

const OPERATORS: Readonly<Record<string, (operand: unknown, operator: string) => Condition>> = {
  $eq: (operand, operator) => equal(scalar(operand, operator)),
  $ne: (operand, operator) => negated(equal(scalar(operand, operator))),
  $in: anyOf,
  $nin: (operand, operator) => negated(anyOf(operand, operator)),
  $gt: compared((value, operand) => value > operand),
  $gte: compared((value, operand) => value >= operand),
  $lt: compared((value, operand) => value < operand),
  $lte: compared((value, operand) => value <= operand),
  $exists: exists,
};

/** Unknown only if no part decides: what is not established does not matter to a record that another part leaves out. */
function every<Asked>(tests: readonly ((asked: Asked) => Verdict)[]): (asked: Asked) => Verdict {
  return (asked) => {
    const verdicts = tests.map((test) => test(asked));
    if (verdicts.includes(false)) return false;
    return verdicts.includes(undefined) ? undefined : true;
  };
}

function some<Asked>(tests: readonly ((asked: Asked) => Verdict)[]): (asked: Asked) => Verdict {
  return (asked) => {
    const verdicts = tests.map((test) => test(asked));
    if (verdicts.includes(true)) return true;
    return verdicts.includes(undefined) ? undefined : false;
  };
}

/** Not what every object inherits. */
const own = <Value>(object: Readonly<Record<string, Value>>, key: string): Value | undefined =>
  Object.hasOwn(object, key) ? object[key] : undefined;

const isScalar = (value: unknown): value is Scalar => ['string', 'number', 'boolean'].includes(typeof value);
const isObject = (value: unknown): value is Record<string, unknown> =>
  typeof value === 'object' && value !== null && !Array.isArray(value);
