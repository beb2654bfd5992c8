import fc from 'fast-check';
import type { Memory, Source } from '#contract';
import { LIMITS } from '../../src/verbs/fields.ts';

/** Text that the protocol admits: any characters but NUL. */
const text = (minLength: number, maxLength: number) =>
  fc
    .string({
      unit: fc.oneof(fc.constantFrom('a', '"', '\\', '\n', ' ', 'é', '😀', '\u0001', '\u2028', '$'), codePoint),
      minLength,
      maxLength,
    })
    .filter((value) => value.isWellFormed());
const codePoint = fc.string({ unit: 'binary', minLength: 1, maxLength: 1 }).filter((value) => value !== '\0');
const filled = (maxLength: number) => text(1, maxLength).filter((value) => /\S/.test(value));

const distinct = (one: fc.Arbitrary<string>, maxLength: number) => fc.uniqueArray(one, { maxLength, size: 'max' });
const time = fc
  .date({ min: new Date('0001-01-01T00:00:00Z'), max: new Date('9999-12-31T23:59:59.999Z'), noInvalidDate: true })
  .map((date) => date.toISOString());
const source: fc.Arbitrary<Source> = fc.record(
  {
    app: text(0, 20),
    type: fc.constantFrom('extracted' as const, 'explicit' as const, 'imported' as const),
    ref: text(0, 20),
  },
  { requiredKeys: [], noNullPrototype: true },
);
/** JSON knows no -0. */
const json = fc
  .jsonValue()
  .filter((value) => value !== null)
  .map((value): unknown => JSON.parse(JSON.stringify(value)));
const extensions = fc
  .array(fc.tuple(text(0, 8), json), { maxLength: 4 })
  .map((entries) => Object.fromEntries(entries.map(([key, value]) => [`x-${key}`, value])));

const fields = {
  content: filled(40),
  tags: distinct(text(1, 12), LIMITS.tags),
  source: fc.option(source),
  confidence: fc.option(fc.double({ min: 0, max: 1, noNaN: true }).map(Math.abs)),
  valid_from: fc.option(time),
  valid_to: fc.option(time),
  supersedes: distinct(filled(12), LIMITS.supersedes),
  extensions,
};

/** Any memory as the protocol admits it and this provider answers it. */
export const anyMemory: fc.Arbitrary<Memory> = fc
  .record({ ...fields, user_id: filled(20), created_at: time, updated_at: time })
  .map((record) => ({ id: 'mem_1', scope: null, embedding_model: 'model', status: 'done', ...record }));

/** The same one after any changes a patch could make, and more. */
export const changed = (memory: Memory): fc.Arbitrary<Memory> =>
  fc
    .record({ ...fields, updated_at: time }, { requiredKeys: ['updated_at'], noNullPrototype: true })
    .map((changes) => ({ ...memory, ...changes }));
