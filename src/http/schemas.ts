import { DateTime } from 'luxon';
import { z } from 'zod';

/** Limits on fields that SPEC.md leaves to the implementation (Decisions 5, 8 and 11). */
export const LIMITS = {
  userId: 256,
  scope: 512,
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

/** Neither NUL nor lone surrogates: the one cannot be stored by Postgres, the other is not text in any encoding. */
export const isStorable = (text: string): boolean => !text.includes('\0') && text.isWellFormed();
const isNotBlank = (text: string): boolean => /\S/.test(text);
const codePoints = (text: string): number => {
  let count = 0;
  for (const _ of text) count++;
  return count;
};
/** At most `most` code points; the cheap test decides nearly always. */
export const fits = (text: string, most: number): boolean =>
  text.length <= most || (text.length <= 2 * most && codePoints(text) <= most);

const text = z.string().refine(isStorable, 'must not contain NUL or lone surrogates');
/** A text that is too long fails here: no further check looks at it. */
const upTo = (most: number) =>
  text
    .refine((value) => fits(value, most), { error: `must be at most ${most} characters`, abort: true })
    .meta({ maxLength: most });
/** The same for what is never stored, such as a number in a query string. */
export const short = (most: number, error = `must be at most ${most} characters`) =>
  z.string().refine((value) => value.length <= most, { error, abort: true });
/** A list that is too long fails before its elements are looked at: a million of them would make a million mistakes. */
const upToMany = <Element extends z.ZodType>(element: Element, most: number, error: string) =>
  z.preprocess((value, context) => {
    if (!Array.isArray(value) || value.length <= most) return value;
    context.addIssue({ code: 'custom', message: error });
    return z.NEVER;
  }, z.array(element).max(most));
const filled = (most: number) => upTo(most).refine(isNotBlank, 'must not be blank').meta({ pattern: '\\S' });

export const content = text.refine(isNotBlank, 'must not be blank').meta({
  description:
    'Text of the memory, kept byte for byte: not blank, without NUL, at most `features.max_content_length` characters.',
  pattern: '\\S',
  examples: ['user prefers pnpm over npm for nodejs projects'],
});
export const userId = filled(LIMITS.userId).meta({ description: 'Owner.', examples: ['u1'] });
export const memoryId = filled(LIMITS.id).meta({ examples: ['mem_01JD3ZK8Q0V5W9E6T2Y4R7N1XA'] });
export const query = filled(1_048_576).meta({
  description: 'Search query.',
  examples: ['which package manager does the user prefer?'],
});

/** For the description: one segment of a scope as the refinements below accept it. */
const SEGMENT = '[^/*?\\u0000-\\u001f\\u007f-\\u009f]+';

/** Scope grammar: Decision 5. */
export const scope = upTo(LIMITS.scope)
  .refine((path) => {
    const segments = path.split('/');
    return segments.length <= LIMITS.scopeSegments && segments.every((segment) => segment !== '');
  }, `must be 1 to ${LIMITS.scopeSegments} non-empty segments joined by "/"`)
  // biome-ignore lint/suspicious/noControlCharactersInRegex: refusing them is the point
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
  .meta({ description: 'String prefix of the scope; one trailing `*` is accepted and dropped.' });

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
  description: 'Ids of memories this record replaces.',
});

const DATE_TIME = 'must be an ISO 8601 date or date-time between the years 0001 and 9999';
/**
 * Any ISO 8601 date or date-time, answered in UTC with milliseconds. No offset means UTC; a date alone is its
 * midnight. Years 0001 to 9999, what every backend can hold.
 */
export const dateTime = short(LIMITS.date, DATE_TIME)
  .transform((value, context) => {
    // A time alone is ISO 8601 too, but names no moment.
    const parsed =
      /^\d{4}/.test(value) && !IMPOSSIBLE_OFFSET.test(value) ? DateTime.fromISO(value, { zone: 'utc' }) : undefined;
    const milliseconds = parsed?.toMillis() ?? Number.NaN;
    if (milliseconds >= FIRST_MOMENT && milliseconds <= LAST_MOMENT) return new Date(milliseconds).toISOString();
    context.addIssue({ code: 'custom', message: DATE_TIME });
    return z.NEVER;
  })
  .meta({
    description: 'ISO 8601 date or date-time; UTC when it has no offset.',
    format: 'date-time',
    type: 'string',
  });
/** Beyond a day, or minutes beyond an hour; the library would just add them up. */
const IMPOSSIBLE_OFFSET = /^[^T]*T.*[+-](?:2[4-9]|[3-9]\d|\d{2}:?[6-9])/;
const FIRST_MOMENT = Date.parse('0001-01-01T00:00:00Z');
const LAST_MOMENT = Date.parse('9999-12-31T23:59:59.999Z');

export const sourceType = z.enum(['extracted', 'explicit', 'imported']);
export const sourceText = upTo(LIMITS.sourceField);

/** On creation null counts as omitted (Decision 7). */
const optional = <Schema extends z.ZodType>(schema: Schema) => schema.nullish();

const source = z.object({
  app: optional(sourceText).meta({ description: 'Application that created the memory.' }),
  type: optional(sourceType).meta({ description: 'How the memory was created.' }),
  ref: optional(sourceText).meta({ description: 'Opaque pointer back, such as a session id.' }),
});

/** For the description: the keys that `readExtensions` checks. */
const OWN_KEYS = '^x-';

/** SPEC, POST /memories. */
export const CreateBody = z
  .object({
    content: content,
    user_id: userId,
    scope: optional(scope),
    tags: optional(tags),
    source: optional(source),
    confidence: optional(confidence),
    valid_from: optional(dateTime),
    valid_to: optional(dateTime),
    supersedes: optional(supersedes),
  })
  .meta({
    id: 'NewMemory',
    patternProperties: { [OWN_KEYS]: { description: 'Keys of your own, kept and returned.' } },
  });

/** SPEC, PATCH /memories/{id}. Only `valid_to` and `x-` keys may be null. */
export const PatchBody = z
  .object({
    content: content.optional(),
    scope: scope.optional(),
    tags: tags.optional(),
    confidence: confidence.optional(),
    valid_to: dateTime.nullish().meta({ description: 'New expiry; null removes it.' }),
    supersedes: supersedes.optional(),
  })
  .meta({
    id: 'MemoryPatch',
    description: 'Only the fields given are changed.',
    patternProperties: { [OWN_KEYS]: { description: 'Keys of your own, merged one by one; null removes one.' } },
  });

const wholeNumber = (name: string, least: number, most: number) =>
  short(LIMITS.number)
    .regex(/^\d{1,9}$/, `must be a whole number from ${least} to ${most}`)
    .transform(Number)
    .refine((value) => value >= least && value <= most, `must be from ${least} to ${most}`)
    .meta({ description: `${name}.`, type: 'integer', minimum: least, maximum: most });

/** In a query string an unescaped `+` of an offset arrives as a space. */
const queryDate = short(LIMITS.date)
  .transform((value) => value.replace(/ (\d{2}(?::?\d{2})?)$/, '+$1'))
  .pipe(dateTime)
  .meta({
    description: 'ISO 8601 date or date-time, inclusive; UTC when it has no offset.',
    type: 'string',
    format: 'date-time',
  });

const cursor = z.string().optional().meta({ description: '`next_cursor` of the previous page.' });

/** SPEC, GET /memories. */
export const ListParameters = z.object({
  user_id: userId,
  scope: scopeGlob.optional(),
  tag: tag.optional().meta({ description: 'Only memories having this tag.' }),
  since: queryDate.optional(),
  until: queryDate.optional(),
  limit: wholeNumber('Maximum results per page', 1, 500).default(50),
  cursor,
});

/** SPEC, GET /memories/search. */
export const SearchParameters = z.object({
  q: query,
  user_id: userId,
  scope: scopePrefix.optional(),
  limit: wholeNumber('Maximum results', 1, 100).default(10),
  min_score: short(LIMITS.number)
    .regex(/^(?:\d+(?:\.\d+)?|\.\d+)(?:[eE]-?\d+)?$/, 'must be a number from 0 to 1')
    .transform(Number)
    .refine((value) => value <= 1, 'must be from 0 to 1')
    .optional()
    .meta({ description: 'Results scoring lower are left out.', type: 'number', minimum: 0, maximum: 1 }),
});

/** Decision 11. */
export const AuditParameters = z.object({
  user_id: userId,
  app: sourceText
    .optional()
    .meta({ description: 'Only what was done under this name of a key or subject of a token.' }),
  since: queryDate.optional(),
  until: queryDate.optional(),
  limit: wholeNumber('Maximum entries per page', 1, 1000).default(100),
  cursor,
});

export const DEFAULT_TOKEN_BUDGET = 500;

/** Decision 10. */
export const ContextBody = z
  .object({
    query: query,
    user_id: userId,
    scope: optional(scopePrefix),
    token_budget: optional(z.int().min(1).max(1_000_000)).meta({
      description: 'Most tokens `text` may have (o200k_base).',
      default: DEFAULT_TOKEN_BUDGET,
    }),
    min_score: optional(z.number().min(0, 'must be at least 0').max(1, 'must be at most 1')).meta({
      description: 'Memories scoring lower are left out; by default 0.1 where vectors are searched, else 0.',
    }),
  })
  .meta({ id: 'ContextRequest' });
