import { z } from 'zod';
import * as field from './fields.ts';

/** On creation null counts as omitted (Decision 7). */
const optional = <Schema extends z.ZodType>(schema: Schema) => schema.nullish();

const source = z.object({
  app: optional(field.sourceText).meta({ description: 'Application that created the memory.' }),
  type: optional(field.sourceType).meta({ description: 'How the memory was created.' }),
  ref: optional(field.sourceText).meta({ description: 'Opaque pointer back, such as a session id.' }),
});

/** For the description: the keys that `readExtensions` checks. */
const OWN_KEYS = '^x-';

/** SPEC, POST /memories. */
export const CreateBody = z
  .object({
    content: field.content,
    user_id: field.userId,
    scope: optional(field.scope),
    tags: optional(field.tags),
    source: optional(source),
    confidence: optional(field.confidence),
    valid_from: optional(field.dateTime),
    valid_to: optional(field.dateTime),
    supersedes: optional(field.supersedes),
  })
  .meta({
    id: 'NewMemory',
    patternProperties: { [OWN_KEYS]: { description: 'Keys of your own, kept and returned.' } },
  });

/** SPEC, PATCH /memories/{id}. Only `valid_to` and `x-` keys may be null. */
export const PatchBody = z
  .object({
    content: field.content.optional(),
    scope: field.scope.optional(),
    tags: field.tags.optional(),
    confidence: field.confidence.optional(),
    valid_to: field.dateTime.nullish().meta({ description: 'New expiry; null removes it.' }),
    supersedes: field.supersedes.optional(),
  })
  .meta({
    id: 'MemoryPatch',
    description: 'Only the fields given are changed.',
    patternProperties: { [OWN_KEYS]: { description: 'Keys of your own, merged one by one; null removes one.' } },
  });

const wholeNumber = (name: string, least: number, most: number) =>
  field
    .short(field.LIMITS.number)
    .regex(/^\d{1,9}$/, `must be a whole number from ${least} to ${most}`)
    .transform(Number)
    .refine((value) => value >= least && value <= most, `must be from ${least} to ${most}`)
    .meta({ description: `${name}.`, type: 'integer', minimum: least, maximum: most });

/** In a query string an unescaped `+` of an offset arrives as a space. */
const queryDate = field
  .short(field.LIMITS.date)
  .transform((value) => value.replace(/ (\d{2}(?::?\d{2})?)$/, '+$1'))
  .pipe(field.dateTime)
  .meta({
    description: 'ISO 8601 date or date-time, inclusive; UTC when it has no offset.',
    type: 'string',
    format: 'date-time',
  });

const cursor = z.string().optional().meta({ description: '`next_cursor` of the previous page.' });

/** SPEC, GET /memories. */
export const ListParameters = z.object({
  user_id: field.userId,
  scope: field.scopeGlob.optional(),
  tag: field.tag.optional().meta({ description: 'Only memories having this tag.' }),
  since: queryDate.optional(),
  until: queryDate.optional(),
  limit: wholeNumber('Maximum results per page', 1, 500).default(50),
  cursor,
});

/** SPEC, GET /memories/search. */
export const SearchParameters = z.object({
  q: field.query,
  user_id: field.userId,
  scope: field.scopePrefix.optional(),
  limit: wholeNumber('Maximum results', 1, 100).default(10),
  min_score: field
    .short(field.LIMITS.number)
    .regex(/^(?:\d+(?:\.\d+)?|\.\d+)(?:[eE]-?\d+)?$/, 'must be a number from 0 to 1')
    .transform(Number)
    .refine((value) => value <= 1, 'must be from 0 to 1')
    .optional()
    .meta({ description: 'Results scoring lower are left out.', type: 'number', minimum: 0, maximum: 1 }),
});

/** Decision 11. */
export const AuditParameters = z.object({
  user_id: field.userId,
  app: field.sourceText
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
    query: field.query,
    user_id: field.userId,
    scope: optional(field.scopePrefix),
    token_budget: optional(z.int().min(1).max(1_000_000)).meta({
      description: 'Most tokens `text` may have (o200k_base).',
      default: DEFAULT_TOKEN_BUDGET,
    }),
    min_score: optional(z.number().min(0, 'must be at least 0').max(1, 'must be at most 1')).meta({
      description: 'Memories scoring lower are left out; by default 0.1 where vectors are searched, else 0.',
    }),
  })
  .meta({ id: 'ContextRequest' });
