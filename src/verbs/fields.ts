import { createHash } from 'node:crypto';
import { DateTime } from 'luxon';
import { z } from 'zod';
import {
  type Call,
  ERROR_CODES,
  ERROR_TYPES,
  type Extensions,
  invalidRequest,
  isReserved,
  MAX_DEPTH,
  MAX_EXTENSIONS,
  MAX_SCOPE_LENGTH,
  OmpError,
  WAYS,
  type Way,
  type Written,
} from '#contract';
import { CHANGED_NUMBER, isBeyondExact, isStorableTime, keepsWholeNumbers } from '#toolbox';

/** Limits that SPEC.md leaves to the implementation (Decisions 5, 8 and 11). Texts in characters, lists in elements. */
export const LIMITS = {
  userId: 256,
  users: 16,
  grants: 32,
  keyUsers: 100,
  scope: MAX_SCOPE_LENGTH,
  scopeSegments: 32,
  wildcards: 32,
  tag: 128,
  tags: 64,
  supersedes: 64,
  id: 512,
  sourceField: 1024,
  date: 64,
  number: 32,
} as const;

/** Postgres cannot store NUL, and no encoding of text has lone surrogates. */
export const isStorable = (text: string): boolean => !text.includes('\0') && text.isWellFormed();
const isNotBlank = (text: string): boolean => /\S/.test(text);
const codePoints = (text: string): number => {
  let count = 0;
  for (const _ of text) count++;
  return count;
};
/** Whether a text has at most `max` code points. The length in code units nearly always decides without counting. */
export const fits = (text: string, max: number): boolean =>
  text.length <= max || (text.length <= 2 * max && codePoints(text) <= max);

const text = z.string().refine(isStorable, 'must not contain NUL or lone surrogates');
/** A text that is too long fails here, and no later check reads it. */
export const upTo = (max: number) =>
  text
    .refine((value) => fits(value, max), { error: `must be at most ${max} characters`, abort: true })
    .meta({ maxLength: max });
/** A limit for a text that is never stored, such as a number in a query string. */
export const short = (max: number, error = `must be at most ${max} characters`) =>
  z.string().refine((value) => value.length <= max, { error, abort: true });
/** A list that is too long fails before its elements are checked: a million of them could cause a million issues. */
export const upToMany = <Element extends z.ZodType>(element: Element, max: number, error: string) =>
  z.preprocess((value, context) => {
    if (!Array.isArray(value) || value.length <= max) return value;
    context.addIssue({ code: 'custom', message: error });
    return z.NEVER;
  }, z.array(element).max(max));
const nonBlank = (max: number) => upTo(max).refine(isNotBlank, 'must not be blank').meta({ pattern: '\\S' });

export const content = text.refine(isNotBlank, 'must not be blank').meta({
  description:
    'Text of the memory, stored byte for byte: not blank, without NUL, at most `features.max_content_length` characters.',
  pattern: '\\S',
  examples: ['user prefers pnpm over npm for nodejs projects'],
});
export const userId = nonBlank(LIMITS.userId).meta({ description: 'User the memory belongs to.', examples: ['u1'] });
/** The users of a search (Decision 40). Not `upToMany`: a list that is transformed counts as optional in the OpenAPI document. */
export const userIds = z
  .unknown()
  .refine((ids) => !Array.isArray(ids) || ids.length <= LIMITS.users, {
    error: `must hold at most ${LIMITS.users} users`,
    abort: true,
  })
  .pipe(
    z
      .array(userId)
      .min(1, 'must not be empty')
      .refine((ids) => new Set(ids).size === ids.length, 'must be distinct'),
  )
  .meta({
    type: 'array',
    items: { type: 'string', maxLength: LIMITS.userId, pattern: '\\S' },
    minItems: 1,
    maxItems: LIMITS.users,
    uniqueItems: true,
    description: `The user, or up to ${LIMITS.users} users whose memories are searched together.`,
    examples: [['u1']],
  });
export const memoryId = nonBlank(LIMITS.id).meta({ examples: ['mem_01JD3ZK8Q0V5W9E6T2Y4R7N1XA'] });
export const query = nonBlank(1_048_576).meta({
  description: 'Search query.',
  examples: ['which package manager does the user prefer?'],
});

/** The pattern of a segment in the OpenAPI document, equivalent to the refinements below. */
const SEGMENT = '[^/*?\\u0000-\\u001f\\u007f-\\u009f]+';

/** The grammar of scopes (Decision 5). */
export const scope = upTo(LIMITS.scope)
  .refine((path) => {
    const segments = path.split('/');
    return segments.length <= LIMITS.scopeSegments && segments.every((segment) => segment !== '');
  }, `must be 1 to ${LIMITS.scopeSegments} non-empty segments joined by "/"`)
  // biome-ignore lint/suspicious/noControlCharactersInRegex: the pattern rejects them
  .refine((path) => !/[*?\u0000-\u001f\u007f-\u009f]/.test(path), 'must not contain *, ? or control characters')
  .meta({
    description: `Slash-delimited hierarchical namespace: 1 to ${LIMITS.scopeSegments} non-empty segments without \`*\`, \`?\` or control characters.`,
    pattern: `^${SEGMENT}(?:/${SEGMENT}){0,${LIMITS.scopeSegments - 1}}$`,
    examples: ['coding/preferences'],
  });

const filterText = upTo(LIMITS.scope).min(1, 'must not be empty');
export const scopeGlob = filterText
  .refine(
    (glob) => (glob.match(/[*?]/g) ?? []).length <= LIMITS.wildcards,
    `must hold at most ${LIMITS.wildcards} wildcards`,
  )
  .meta({
    description: 'Glob over the scope: `*` matches any run of characters, `/` included, `?` one character.',
    examples: ['coding/*'],
  });
export const scopePrefix = filterText
  .transform((prefix) => (prefix.endsWith('*') ? prefix.slice(0, -1) : prefix))
  .meta({ description: 'String prefix of the scope; one trailing `*` is accepted and ignored.' });

export const tag = upTo(LIMITS.tag)
  .min(1, 'must not be empty')
  .meta({ examples: ['tooling'] });
export const tags = upToMany(tag, LIMITS.tags, `must hold at most ${LIMITS.tags} tags`).meta({
  description: 'Free-form labels.',
  examples: [['tooling']],
});
export const confidence = z
  .number()
  .min(0, 'must be at least 0')
  .max(1, 'must be at most 1')
  .meta({ description: '0 to 1.', examples: [0.9] });
export const supersedes = upToMany(memoryId, LIMITS.supersedes, `must hold at most ${LIMITS.supersedes} ids`).meta({
  description: 'Ids of the memories that this one replaces.',
});

const DATE_TIME = 'must be an ISO 8601 date or date-time between the years 0001 and 9999';
/**
 * Any ISO 8601 date or date-time, converted to UTC with milliseconds. Without offset it is UTC; a date is its midnight.
 * Years 0001 to 9999, which every backend can store.
 */
export const dateTime = short(LIMITS.date, DATE_TIME)
  .transform((value, context) => {
    // ISO 8601 also has times without a date.
    const date =
      /^\d{4}/.test(value) && !IMPOSSIBLE_OFFSET.test(value) ? DateTime.fromISO(value, { zone: 'utc' }) : undefined;
    const milliseconds = date?.toMillis() ?? Number.NaN;
    if (isStorableTime(milliseconds)) return new Date(milliseconds).toISOString();
    context.addIssue({ code: 'custom', message: DATE_TIME });
    return z.NEVER;
  })
  .meta({
    description: 'ISO 8601 date or date-time; UTC when it has no offset.',
    format: 'date-time',
    type: 'string',
  });
/** Hours above 23 or minutes above 59. The library would add them up. */
const IMPOSSIBLE_OFFSET = /^[^T]*T.*[+-](?:2[4-9]|[3-9]\d|\d{2}:?[6-9])/;

export const sourceType = z.enum(['extracted', 'explicit', 'imported']);
export const sourceText = upTo(LIMITS.sourceField);

/** On creation, null counts as omitted (Decision 7). */
export const optional = <Schema extends z.ZodType>(schema: Schema) => schema.nullish();

/** A parameter of a query string, which is text; other interfaces hand over the value itself. */
const parameter = <Text extends z.ZodType>(schema: Text) =>
  z.preprocess((value) => (typeof value === 'number' || typeof value === 'boolean' ? String(value) : value), schema);

export const wholeNumber = (name: string, min: number, max: number) =>
  parameter(
    short(LIMITS.number)
      .regex(/^\d{1,9}$/, `must be a whole number from ${min} to ${max}`)
      .transform(Number)
      .refine((value) => value >= min && value <= max, `must be from ${min} to ${max}`),
  ).meta({ description: `${name}.`, type: 'integer', minimum: min, maximum: max });

/** An unescaped `+` of an offset arrives as a space in a query string. */
export const queryDate = short(LIMITS.date)
  .transform((value) => value.replace(/ (\d{2}(?::?\d{2})?)$/, '+$1'))
  .pipe(dateTime)
  .meta({
    description: 'ISO 8601 date or date-time, inclusive; UTC when it has no offset.',
    type: 'string',
    format: 'date-time',
  });

/** Below the largest number that PostgreSQL's `integer` holds. */
export const MAX_VERSION = 2_000_000_000;
export const wholeVersion = (max: number) => z.int().min(1, 'must be at least 1').max(max, `must be at most ${max}`);
/** The number of a version in a JSON body. */
export const versionNumber = wholeVersion(MAX_VERSION);

export const cursor = z.string().optional().meta({ description: '`next_cursor` of the previous page.' });

const booleanText = parameter(
  short(LIMITS.number)
    .refine((value) => value === 'true' || value === 'false', 'must be true or false')
    .transform((value) => value === 'true'),
);
export const trueOrFalse = booleanText.default(false);

/** How memories of untrusted keys count (Decision 54). */
export const untrusted = booleanText.optional().meta({
  description:
    'What memories with `x-omp-untrusted` count: false: they are left out; true: like others; absent: they are answered, but supersede nothing.',
  type: 'boolean',
});

const VIAS: readonly string[] = [...WAYS, 'unknown'];
const isOrigin = (text: string): boolean =>
  text.startsWith('key:') ? text.length > 'key:'.length : text.startsWith('via:') && VIAS.includes(text.slice(4));
const originError = `must be key:NAME or via:WAY, which is one of ${VIAS.join(', ')}`;
/** `Written.origin` as a text. */
export const originFilter = z
  .string()
  .refine((text) => fits(text, LIMITS.userId + 'key:'.length) && isOrigin(text), originError)
  .transform((text): Written['origin'] => {
    const value = text.slice('key:'.length);
    return text.startsWith('key:') ? { key: value } : { via: value as Way };
  })
  .meta({
    description:
      'Only memories whose last change is by this key (`key:NAME`) or came this way (`via:WAY`; `via:unknown`: without an origin). Needs `features.origins`.',
    type: 'string',
    pattern: `^(?:key:[^]{1,${LIMITS.userId}}|via:(?:${VIAS.join('|')}))$`,
    examples: ['key:crawler'],
  });

/** A number from 0 to 1. */
export const share = parameter(
  short(LIMITS.number)
    .regex(/^(?:\d+(?:\.\d+)?|\.\d+)(?:[eE]-?\d+)?$/, 'must be a number from 0 to 1')
    .transform(Number)
    .refine((value) => value <= 1, 'must be from 0 to 1'),
).optional();

/*
 * Parts of answers. Objects are open, because a client must accept the answers of newer versions (SPEC, Versioning 4). No
 * limits are stated, because memories may also come from other applications.
 */

export const time = (description: string) => z.string().meta({ description, format: 'date-time' });
export const score = z
  .number()
  .min(0)
  .max(1)
  .meta({ description: 'Order of the results; higher means more relevant.' });
export const strings = z.array(z.string());
export const next_cursor = z.string().nullish().meta({ description: '`cursor` of the next page; null: last page.' });
export const count = z.int().min(0).meta({ description: 'Number of memories.' });

/** The stores that an answer lacks (Decision 49). */
export const leftOut = {
  'x-partial': strings.optional().meta({ description: 'Optional stores that do not answer, as in `X-Partial`.' }),
  'x-without': strings.optional().meta({ description: 'Stores that do not support this, as in `X-Without`.' }),
};

/** An error, without the id of its request. */
export const ErrorFields = z.looseObject({
  code: z.enum(ERROR_CODES).meta({ description: 'Clients branch on this code.' }),
  message: z.string().meta({ description: 'For logs and people; do not parse it.' }),
  type: z.enum(Object.values(ERROR_TYPES)).meta({ description: 'Category of the code.' }),
  provider: z.string().optional().meta({ description: 'Backend that raised the error.' }),
});

/*
 * Reading of input.
 */

/** Values of a JSON body, whatever its size: objects, arrays and what they hold, each counted once. */
const MAX_VALUES = 100_000;
/** Levels of objects and arrays in a body: more than a batch needs for the deepest `x-` key. */
const MAX_LEVELS = 64;

/**
 * Throws `payload_too_large` if the parsed JSON holds more than `maxValues` values, and `invalid_request` if it is nested
 * deeper than 64 levels. Work on a body grows with its values, not with its bytes, so this comes right after the parser.
 * Stops at the limit. `text`: what was parsed; `invalid_request` if the parser has changed a whole number of it.
 */
export function requireBounds(json: unknown, maxValues = MAX_VALUES, text?: string): void {
  let values = 1;
  let isExact = true;
  let outer = [json].filter(isNested);
  for (let level = 1; outer.length > 0; level++) {
    if (level > MAX_LEVELS) throw invalidRequest(`the JSON is nested deeper than ${MAX_LEVELS} levels`);
    const inner: object[] = [];
    for (const one of outer) {
      const held: unknown[] = Array.isArray(one) ? one : Object.values(one);
      values += held.length;
      if (values > maxValues) throw tooManyValues(maxValues);
      for (const value of held) {
        if (isNested(value)) inner.push(value);
        else if (typeof value === 'number' && isBeyondExact(value)) isExact = false;
      }
    }
    outer = inner;
  }
  if (!isExact && text !== undefined && !keepsWholeNumbers(text)) throw invalidRequest(`the JSON ${CHANGED_NUMBER}`);
}

const isNested = (value: unknown): value is object => typeof value === 'object' && value !== null;

const tooManyValues = (max: number) =>
  new OmpError('payload_too_large', `the JSON holds more than ${max} values; send it in several requests`);

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
  const keys = Object.keys(body).filter(isExtensionKey).sort();
  if (keys.length > MAX_EXTENSIONS) throw invalidRequest(`a memory holds at most ${MAX_EXTENSIONS} x- keys`);
  for (const key of keys) {
    const value = (body as Record<string, unknown>)[key];
    if (value === null && onNull === 'omit') continue;
    if (!isStorable(key)) throw invalidRequest('a key that begins with x- must not contain NUL or lone surrogates');
    extensions[key] = checkValue(key, value, 1);
  }
  return extensions;
}

/** Keys of the gateway are ignored like unknown ones, so that a memory can be sent back as it was read. */
const isExtensionKey = (key: string): key is `x-${string}` => key.startsWith('x-') && !isReserved(key);

/** Copies the value; a key named `__proto__` stays data. */
function checkValue(key: string, value: unknown, depth: number): unknown {
  const requireStorable = (text: string) => {
    if (!isStorable(text)) throw invalidRequest(`${key}: must not contain NUL or lone surrogates`);
  };
  if (typeof value === 'string') requireStorable(value);
  if (typeof value === 'number' && !Number.isFinite(value))
    throw invalidRequest(`${key}: holds a number too large to store`);
  if (typeof value !== 'object' || value === null) return value;
  if (depth > MAX_DEPTH) throw invalidRequest(`${key}: nested deeper than ${MAX_DEPTH} levels`);
  if (Array.isArray(value)) return value.map((inner) => checkValue(key, inner, depth + 1));
  const entries = Object.keys(value)
    .sort()
    .map((name) => {
      requireStorable(name);
      return [name, checkValue(key, (value as Record<string, unknown>)[name], depth + 1)] as const;
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
  text: string,
  input: unknown,
): { readonly key: string; readonly fingerprint: string } {
  const quotedKey = /^"((?:[^"\\]|\\["\\])*)"$/.exec(text)?.[1];
  const key = quotedKey?.replace(/\\(["\\])/g, '$1') ?? text;
  if (!IDEMPOTENCY_KEY.test(key)) throw invalidRequest('Idempotency-Key: must be 1 to 255 printable ASCII characters');
  return { key, fingerprint: createHash('sha256').update(JSON.stringify(input)).digest('hex') };
}
