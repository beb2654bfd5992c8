import { createHash } from 'node:crypto';
import type { z } from 'zod';
import { type Call, type Extensions, invalidRequest, MAX_DEPTH, MAX_EXTENSIONS } from '#contract';
import { isStorable } from './fields.ts';

/** Issues that a message names. */
const MAX_ISSUES = 10;

/**
 * Parses the input by the schema. Throws `invalid_request` that names the first ten invalid fields and counts the others;
 * values are never echoed.
 */
export function parse<Schema extends z.ZodType>(schema: Schema, input: unknown): z.output<Schema> {
  const result = schema.safeParse(input);
  if (result.success) return result.data;
  const { issues } = result.error;
  const more = issues.length > MAX_ISSUES ? [`and ${issues.length - MAX_ISSUES} more`] : [];
  throw invalidRequest([...issues.slice(0, MAX_ISSUES).map(describeIssue), ...more].join('; '));
}

function describeIssue(issue: z.core.$ZodIssue): string {
  const subject = issue.path.length === 0 ? 'body' : issue.path.join('.');
  return `${subject}: ${issue.code === 'invalid_type' ? describeType(issue) : issue.message}`;
}

const describeType = ({ message, expected }: z.core.$ZodIssueInvalidType): string =>
  message.endsWith('received undefined') ? 'is required' : `must be of type ${expected}`;

/** Reports the names of an object that the schema does not have; at the top of a body, `x-` keys are no mistake. */
export function reportIgnored(call: Call, { shape }: z.ZodObject, input: object, prefix = ''): void {
  for (const name in input) {
    if (!Object.hasOwn(shape, name) && (prefix !== '' || !isExtensionKey(name))) call.ignored(prefix + name);
  }
}

/**
 * The `x-` keys of a body, checked so that every backend can store them as JSON. The keys of every object are sorted, so
 * that equal values have equal JSON. `keep` keeps null for a patch, where it removes a key.
 */
export function readExtensions(body: object, onNull: 'omit' | 'keep'): Extensions {
  const extensions: Record<`x-${string}`, unknown> = {};
  const given = Object.entries(body).filter(([key]) => isExtensionKey(key));
  if (given.length > MAX_EXTENSIONS) throw invalidRequest(`a memory holds at most ${MAX_EXTENSIONS} x- keys`);
  for (const [key, value] of sorted(given)) {
    if (!isExtensionKey(key) || (value === null && onNull === 'omit')) continue;
    if (!isStorable(key)) throw invalidRequest('a key that begins with x- must not contain NUL or lone surrogates');
    extensions[key] = checked(key, value, 1);
  }
  return extensions;
}

const isExtensionKey = (key: string): key is `x-${string}` => key.startsWith('x-');

const sorted = (entries: [key: string, value: unknown][]) => entries.sort(([a], [b]) => (a < b ? -1 : 1));

/** Copies the value; a key named `__proto__` stays data. */
function checked(key: string, value: unknown, depth: number): unknown {
  const requireStorable = (text: string) => {
    if (!isStorable(text)) throw invalidRequest(`${key}: must not contain NUL or lone surrogates`);
  };
  if (typeof value === 'string') requireStorable(value);
  if (typeof value === 'number' && !Number.isFinite(value))
    throw invalidRequest(`${key}: holds a number too large to store`);
  if (typeof value !== 'object' || value === null) return value;
  if (depth > MAX_DEPTH) throw invalidRequest(`${key}: nested deeper than ${MAX_DEPTH} levels`);
  if (Array.isArray(value)) return value.map((inner) => checked(key, inner, depth + 1));
  const entries = sorted(Object.entries(value)).map(([name, inner]) => {
    requireStorable(name);
    return [name, checked(key, inner, depth + 1)] as const;
  });
  return Object.fromEntries(entries);
}

/** Printable ASCII characters. */
export const IDEMPOTENCY_KEY = /^[\x20-\x7e]{1,255}$/;

/**
 * Reads an idempotency key, unquoted or as a quoted string; both forms name the same key (Decision 20). The fields of `input`
 * must always have the same order, because the fingerprint is a hash of its JSON.
 */
export function readIdempotencyKey(
  text: string | undefined,
  input: unknown,
): { readonly key: string; readonly fingerprint: string } | undefined {
  if (text === undefined) return undefined;
  const quoted = /^"((?:[^"\\]|\\["\\])*)"$/.exec(text)?.[1];
  const key = quoted?.replace(/\\(["\\])/g, '$1') ?? text;
  if (!IDEMPOTENCY_KEY.test(key)) throw invalidRequest('Idempotency-Key: must be 1 to 255 printable ASCII characters');
  return { key, fingerprint: createHash('sha256').update(JSON.stringify(input)).digest('hex') };
}
