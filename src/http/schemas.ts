import { DateTime } from 'luxon';
import { z } from 'zod';
import { MAX_BATCH_SIZE } from '#contract';
import { expirySchema, keyGrantSchema, keyNameSchema, keyUserSchema } from '../auth/configured-keys.ts';

/** Limits that SPEC.md leaves to the implementation (Decisions 5, 8 and 11). Texts in characters, lists in elements. */
export const LIMITS = {
  userId: 256,
  users: 16,
  grants: 32,
  keyUsers: 100,
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

/** Without NUL, which Postgres cannot store, and without lone surrogates, which no encoding of text has. */
export const isStorable = (text: string): boolean => !text.includes('\0') && text.isWellFormed();
const isNotBlank = (text: string): boolean => /\S/.test(text);
const codePoints = (text: string): number => {
  let count = 0;
  for (const _ of text) count++;
  return count;
};
/** At most `max` code points. The length in code units nearly always decides without counting. */
export const fits = (text: string, max: number): boolean =>
  text.length <= max || (text.length <= 2 * max && codePoints(text) <= max);

const text = z.string().refine(isStorable, 'must not contain NUL or lone surrogates');
/** A text that is too long fails here, and no later check reads it. */
const upTo = (max: number) =>
  text
    .refine((value) => fits(value, max), { error: `must be at most ${max} characters`, abort: true })
    .meta({ maxLength: max });
/** The same for a text that is never stored, such as a number in a query string. */
const short = (max: number, error = `must be at most ${max} characters`) =>
  z.string().refine((value) => value.length <= max, { error, abort: true });
/** A list that is too long fails before its elements are checked: a million of them could cause a million issues. */
export const upToMany = <Element extends z.ZodType>(element: Element, max: number, error: string) =>
  z.preprocess((value, context) => {
    if (!Array.isArray(value) || value.length <= max) return value;
    context.addIssue({ code: 'custom', message: error });
    return z.NEVER;
  }, z.array(element).max(max));
const filled = (max: number) => upTo(max).refine(isNotBlank, 'must not be blank').meta({ pattern: '\\S' });

export const content = text.refine(isNotBlank, 'must not be blank').meta({
  description:
    'Text of the memory, stored byte for byte: not blank, without NUL, at most `features.max_content_length` characters.',
  pattern: '\\S',
  examples: ['user prefers pnpm over npm for nodejs projects'],
});
export const userId = filled(LIMITS.userId).meta({ description: 'User the memory belongs to.', examples: ['u1'] });
/** The users of a search (Decision 40). Not `upToMany`: a list that is transformed counts as optional in the OpenAPI document. */
const userIds = z
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
    ...{ minItems: 1, maxItems: LIMITS.users, uniqueItems: true },
    description: `The user, or up to ${LIMITS.users} users whose memories are searched together.`,
    examples: [['u1']],
  });
export const memoryId = filled(LIMITS.id).meta({ examples: ['mem_01JD3ZK8Q0V5W9E6T2Y4R7N1XA'] });
export const query = filled(1_048_576).meta({
  description: 'Search query.',
  examples: ['which package manager does the user prefer?'],
});

/** For the OpenAPI document: one segment of a scope, equivalent to the refinements below. */
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
/** Hours above 23 or minutes above 59. The library would add them up. */
const IMPOSSIBLE_OFFSET = /^[^T]*T.*[+-](?:2[4-9]|[3-9]\d|\d{2}:?[6-9])/;
const FIRST_MOMENT = Date.parse('0001-01-01T00:00:00Z');
const LAST_MOMENT = Date.parse('9999-12-31T23:59:59.999Z');

export const sourceType = z.enum(['extracted', 'explicit', 'imported']);
export const sourceText = upTo(LIMITS.sourceField);

/** On creation, null counts as omitted (Decision 7). */
const optional = <Schema extends z.ZodType>(schema: Schema) => schema.nullish();

export const SourceFields = z.object({
  app: optional(sourceText).meta({ description: 'Application that created the memory.' }),
  type: optional(sourceType).meta({ description: 'How the memory was created.' }),
  ref: optional(sourceText).meta({ description: 'Opaque reference, such as a session id.' }),
});

/** For the OpenAPI document: the keys that `readExtensions` checks. */
const EXTENSION_KEYS = '^x-';

/** SPEC, POST /memories. */
export const CreateBody = z
  .object({
    content: content,
    user_id: userId,
    scope: optional(scope),
    tags: optional(tags),
    source: optional(SourceFields),
    confidence: optional(confidence),
    valid_from: optional(dateTime),
    valid_to: optional(dateTime),
    supersedes: optional(supersedes),
  })
  .meta({
    id: 'NewMemory',
    patternProperties: { [EXTENSION_KEYS]: { description: 'Custom keys, stored and returned.' } },
  });

const memoriesError = `must hold 1 to ${MAX_BATCH_SIZE} memories`;

/** Decision 35. Each memory is parsed by itself, so that an invalid one does not fail the others. */
export const BatchBody = z.object({
  memories: upToMany(z.unknown(), MAX_BATCH_SIZE, memoriesError).refine((all) => all.length > 0, memoriesError),
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
    description: 'Only the given fields are changed.',
    patternProperties: { [EXTENSION_KEYS]: { description: 'Custom keys, merged one by one; null removes a key.' } },
  });

const wholeNumber = (name: string, min: number, max: number) =>
  short(LIMITS.number)
    .regex(/^\d{1,9}$/, `must be a whole number from ${min} to ${max}`)
    .transform(Number)
    .refine((value) => value >= min && value <= max, `must be from ${min} to ${max}`)
    .meta({ description: `${name}.`, type: 'integer', minimum: min, maximum: max });

/** An unescaped `+` of an offset arrives as a space in a query string. */
const queryDate = short(LIMITS.date)
  .transform((value) => value.replace(/ (\d{2}(?::?\d{2})?)$/, '+$1'))
  .pipe(dateTime)
  .meta({
    description: 'ISO 8601 date or date-time, inclusive; UTC when it has no offset.',
    type: 'string',
    format: 'date-time',
  });

const cursor = z.string().optional().meta({ description: '`next_cursor` of the previous page.' });

const trueOrFalse = short(LIMITS.number)
  .refine((value) => value === 'true' || value === 'false', 'must be true or false')
  .transform((value) => value === 'true')
  .default(false);

/** SPEC, GET /memories. */
export const ListParameters = z.object({
  user_id: userId,
  scope: scopeGlob.optional(),
  tag: tag.optional().meta({ description: 'Only memories with this tag.' }),
  since: queryDate.optional(),
  until: queryDate.optional(),
  limit: wholeNumber('Maximum results per page', 1, 500).default(50),
  current: trueOrFalse.meta({
    description: 'Leaves out what is not valid now, or superseded by another memory of the page.',
    type: 'boolean',
  }),
  cursor,
});

/** SPEC, GET /memories/search. */
export const SearchParameters = z.object({
  q: query,
  user_id: userIds.meta({ param: { style: 'form', explode: true } }),
  scope: scopePrefix.optional(),
  limit: wholeNumber('Maximum results', 1, 100).default(10),
  current: trueOrFalse.meta({
    description: 'Leaves out what is not valid now, or superseded by another of the 100 best hits.',
    type: 'boolean',
  }),
  explain: trueOrFalse.meta({ description: 'Whether each result has an `explanation` of its score.', type: 'boolean' }),
  min_score: short(LIMITS.number)
    .regex(/^(?:\d+(?:\.\d+)?|\.\d+)(?:[eE]-?\d+)?$/, 'must be a number from 0 to 1')
    .transform(Number)
    .refine((value) => value <= 1, 'must be from 0 to 1')
    .optional()
    .meta({ description: 'Omits results with a lower score.', type: 'number', minimum: 0, maximum: 1 }),
});

/** Decision 11. */
export const AuditParameters = z.object({
  user_id: userId,
  app: sourceText
    .optional()
    .meta({ description: 'Only entries of this caller: the name of a key or the subject of a token.' }),
  since: queryDate.optional(),
  until: queryDate.optional(),
  limit: wholeNumber('Maximum entries per page', 1, 1000).default(100),
  cursor,
});

/** Decision 37. */
export const UsersParameters = z.object({
  prefix: upTo(LIMITS.userId).optional().meta({ description: 'Only users whose id begins with this text.' }),
  limit: wholeNumber('Maximum users per page', 1, 500).default(50),
  cursor,
});

/** Decision 37. */
export const StatsParameters = z.object({ user_id: userId });

/** Decision 43. */
export const ExportParameters = z.object({
  user_id: userId.optional().meta({ description: 'Only memories of this user.' }),
  since: queryDate.optional().meta({ description: 'Only memories changed at or after this time.' }),
  vectors: trueOrFalse.meta({ description: 'Whether each memory has its `vector`.', type: 'boolean' }),
  limit: wholeNumber('Maximum memories per page', 1, 500).default(100),
  cursor,
});
/** Decision 42. */
export const MapParameters = ListParameters.pick({ user_id: true, scope: true, tag: true });

/** Decision 41. */
export const KeysParameters = z.object({ limit: wholeNumber('Maximum keys per page', 1, 100).default(50), cursor });

const grantsError = `must hold 1 to ${LIMITS.grants} grants`;
const keyUsersError = `must hold 1 to ${LIMITS.keyUsers} users; leave it out to allow all`;

/** Decision 41. Strict: a key with a misspelt `users` would be for every user. */
export const KeyBody = z
  .strictObject({
    name: keyNameSchema.meta({ description: 'Unique, also among revoked keys.', examples: ['editor'] }),
    grants: upToMany(keyGrantSchema, LIMITS.grants, grantsError)
      .refine((all) => all.length > 0, grantsError)
      .meta({ description: '`<action>:<scope glob>`, or `admin:*`.', examples: [['read:coding/*']] }),
    users: optional(
      upToMany(keyUserSchema, LIMITS.keyUsers, keyUsersError).refine((all) => all.length > 0, keyUsersError),
    ).meta({ description: 'Users whose memories it may access; null: all.' }),
    expires_at: optional(
      expirySchema
        .transform((value) => new Date(value).toISOString())
        .refine((value) => Date.parse(value) > Date.now(), 'must be in the future'),
    ).meta({
      description: 'Date, from 00:00 UTC on, or date-time with offset; null: never.',
      type: ['string', 'null'],
    }),
  })
  .meta({ id: 'NewKey' });

/** Scopes, and tags, in the response of `GET /stats`. */
export const MAX_COUNTED = 100;

export const DEFAULT_TOKEN_BUDGET = 500;

/** Decision 10. */
export const ContextBody = z
  .object({
    query: query,
    user_id: z
      .union([userId, userIds], { error: `must be a user id, or a list of 1 to ${LIMITS.users} distinct ones` })
      .meta({ description: `The user, or up to ${LIMITS.users} users whose memories are searched together.` }),
    scope: optional(scopePrefix),
    token_budget: optional(z.int().min(1).max(1_000_000)).meta({
      description: 'Maximum tokens of `text` (o200k_base).',
      default: DEFAULT_TOKEN_BUDGET,
    }),
    min_score: optional(z.number().min(0, 'must be at least 0').max(1, 'must be at most 1')).meta({
      description: 'Omits memories with a lower score; default 0.1 with vector search, else 0.',
    }),
  })
  .meta({ id: 'ContextRequest' });
