import { invalidRequest, OmpError } from '#contract';

/** Values of a JSON body, whatever its size: objects, arrays and what they hold, each counted once. */
const MAX_VALUES = 100_000;
/** Levels of objects and arrays in a body: more than a batch needs for the deepest `x-` key. */
const MAX_LEVELS = 64;

/**
 * Throws `payload_too_large` if the parsed JSON holds more than `maxValues` values, and `invalid_request` if it is nested
 * deeper than 64 levels. Work on a body grows with its values, not with its bytes, so this comes right after the parser.
 * Stops at the limit.
 */
export function requireBounds(json: unknown, maxValues = MAX_VALUES): void {
  let values = 1;
  let outer = [json].filter(isNested);
  for (let level = 1; outer.length > 0; level++) {
    if (level > MAX_LEVELS) throw invalidRequest(`the JSON is nested deeper than ${MAX_LEVELS} levels`);
    const inner: object[] = [];
    for (const one of outer) {
      const held: unknown[] = Array.isArray(one) ? one : Object.values(one);
      values += held.length;
      if (values > maxValues) throw tooManyValues(maxValues);
      for (const value of held) if (isNested(value)) inner.push(value);
    }
    outer = inner;
  }
}

const isNested = (value: unknown): value is object => typeof value === 'object' && value !== null;

const tooManyValues = (max: number) =>
  new OmpError('payload_too_large', `the JSON holds more than ${max} values; send it in several requests`);
