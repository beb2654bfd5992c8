import { z } from 'zod';
import { AUDIT_ACTIONS, VERBS } from '#contract';
import { ERRORS } from '../errors.ts';
import { sourceType } from '../schemas.ts';

/*
 * The responses, for the OpenAPI document (SPEC, Resources). Objects are open, because a client must accept the responses
 * of newer versions (SPEC, Versioning 4). No limits are stated, because memories may also come from other applications.
 */

const time = (description: string) => z.string().meta({ description, format: 'date-time' });
const score = z.number().min(0).max(1).meta({ description: 'Order of the results; higher means more relevant.' });
const strings = z.array(z.string());

const Source = z.looseObject({
  app: z.string().nullish().meta({ description: 'Application that created the memory.' }),
  type: sourceType.nullish().meta({ description: 'How the memory was created.' }),
  ref: z.string().nullish().meta({ description: 'Opaque reference, such as a session id.' }),
});

export const Memory = z
  .looseObject({
    id: z.string().meta({ description: 'Assigned by the provider; opaque.' }),
    content: z.string().meta({ description: 'The stored text.' }),
    user_id: z.string().meta({ description: 'User the memory belongs to.' }),
    created_at: time('Creation time, UTC.'),
    updated_at: time('Time of the last change, UTC.').nullish(),
    scope: z.string().nullish().meta({ description: 'Slash-delimited hierarchical namespace.' }),
    tags: strings.nullish().meta({ description: 'Free-form labels.' }),
    source: Source.nullish().meta({ description: 'Origin of the memory.' }),
    confidence: z.number().min(0).max(1).nullish().meta({ description: 'Null if omitted at creation.' }),
    valid_from: time('Start of validity.').nullish(),
    valid_to: time('End of validity; null: none.').nullish(),
    supersedes: strings.nullish().meta({ description: 'Ids of the memories that this one replaces.' }),
    embedding_model: z.string().nullish().meta({ description: 'Model of the vector, if any.' }),
    status: z
      .enum(['queued', 'indexing', 'done', 'failed'])
      .nullish()
      .meta({ description: 'Ingestion state; absent or null: not tracked.' }),
  })
  .meta({
    id: 'Memory',
    patternProperties: { '^x-': { description: 'Custom keys, as stored.' } },
  });

const next_cursor = z.string().nullish().meta({ description: '`cursor` of the next page; null: last page.' });

export const MemoryPage = z
  .looseObject({
    items: z.array(Memory).meta({ description: 'Newest first: by `created_at`, then `id`, both descending.' }),
    next_cursor,
  })
  .meta({ id: 'MemoryPage' });

const part = (description: string) => z.number().min(0).max(1).nullable().meta({ description });
const weight = z.number().min(0).max(1);

const Explanation = z
  .looseObject({
    cosine: part('Similarity of the vectors of query and memory; null: has no weight.'),
    coverage: part("Share of the query's rarity that the memory contains; null: has no weight."),
    terms: strings
      .nullable()
      .meta({ description: 'Words of the query that the memory contains; null: have no weight.' }),
    weights: z.looseObject({ vector: weight, keyword: weight }).meta({ description: 'Of `cosine` and of `coverage`.' }),
  })
  .meta({ description: 'With `explain`: `score` is `weights.vector · cosine + weights.keyword · coverage`.' });

const SearchResult = z
  .looseObject({
    memory: Memory,
    score,
    'x-superseded-by': strings.optional().meta({
      description: 'Ids of the hits that supersede this memory; absent: none does, or `current` was asked for.',
    }),
    explanation: Explanation.optional(),
  })
  .meta({ id: 'SearchResult' });

export const SearchResults = z
  .looseObject({
    results: z.array(SearchResult).meta({ description: 'Highest `score` first.' }),
    'x-truncated': z.literal(true).optional().meta({
      description: 'Results within `limit` are omitted, because the response would exceed 4 MiB.',
    }),
  })
  .meta({ id: 'SearchResults' });

const bound = (description: string) => z.int().min(0).nullable().meta({ description });

export const Capabilities = z
  .looseObject({
    omp_version: z
      .string()
      .regex(/^\d+\.\d+$/)
      .meta({ description: 'Version of the protocol.' }),
    provider: z.string().meta({ description: 'Name of the backend.' }),
    verbs: z.array(z.enum(VERBS)).meta({ description: 'Supported verbs.' }),
    embedding: z
      .looseObject({ model: z.string(), dimensions: z.int() })
      .nullish()
      .meta({ description: 'What makes the vectors; null: there are none.' }),
    features: z.looseObject({
      vector_search: z.boolean().meta({ description: 'Similarity search.' }),
      keyword_search: z.boolean().meta({ description: 'Keyword search.' }),
      graph_queries: z.boolean().meta({ description: 'Graph queries.' }),
      temporal: z.boolean().meta({ description: 'Filters by time.' }),
      scopes: z.enum(['native', 'tags', 'none']).meta({ description: 'How scopes are implemented.' }),
      max_content_length: bound('Maximum characters of `content`; null: no limit.'),
      supports_audit: z.boolean().meta({ description: 'An audit log is recorded.' }),
      supports_supersession: z.boolean().meta({ description: '`supersedes` is tracked.' }),
      idempotency: z.boolean().meta({ description: '`POST /memories` supports `Idempotency-Key`.' }),
      batch: z.boolean().meta({ description: '`POST /memories/batch` is supported.' }),
      explain: z.boolean().meta({ description: 'Search explains scores.' }),
      current: z.boolean().meta({ description: 'List and search take `current`.' }),
      multi_user: z.boolean().meta({ description: 'Search and context take several `user_id`.' }),
      tags: z.boolean().meta({ description: 'Memories have tags, and lists filter by them.' }),
      consistency_tokens: z.boolean().meta({
        description: 'Other replicas may show writes late; `X-Consistency-Token` makes them wait.',
      }),
      etags: z.boolean().meta({ description: 'Memories have an `ETag`, and changes support `If-Match`.' }),
      users: z.boolean().meta({ description: '`GET /users` is supported.' }),
      stats: z.boolean().meta({ description: '`GET /stats` is supported.' }),
      map: z.boolean().meta({ description: '`GET /map` is supported.' }),
      erase: z.boolean().meta({ description: '`DELETE /users/{id}/memories` is supported.' }),
      export: z.boolean().meta({ description: '`GET /export` is supported.' }),
      import: z.boolean().meta({ description: '`POST /import` is supported.' }),
      keys: z.boolean().meta({ description: '`/keys` is supported, for keys with the grant `admin:*`.' }),
    }),
    limits: z
      .looseObject({
        rate_limit_per_minute: bound('Maximum requests per minute; null: no limit.'),
        max_search_results: bound('Maximum `limit` of a search; null: no limit.'),
        max_batch_size: z.int().min(1).meta({ description: 'Maximum memories of a batch.' }),
      })
      .optional(),
  })
  .meta({ id: 'Capabilities' });

export const Health = z
  .looseObject({
    status: z.literal('ok').meta({ description: 'The gateway runs and its backend answers.' }),
    provider: z.string().meta({ description: 'Name of the backend.' }),
  })
  .meta({ id: 'Health' });

export const Liveness = z
  .looseObject({ status: z.literal('ok').meta({ description: 'The process answers.' }) })
  .meta({ id: 'Liveness' });

export const Readiness = z
  .looseObject({
    status: z
      .enum(['ready', 'starting', 'draining', 'unavailable'])
      .meta({ description: '`draining`: the gateway is stopping; `unavailable`: the backend does not answer.' }),
  })
  .meta({ id: 'Readiness' });

/** Decision 10. */
export const ContextBlock = z
  .looseObject({
    text: z.string().meta({
      description: 'Numbered lines in a fence, best first, each with its day and source; empty if no memory matches.',
    }),
    citations: z
      .array(z.looseObject({ memory_id: z.string(), score }))
      .meta({ description: 'The memory of each line, in order.' }),
    token_count: z.int().min(0).meta({ description: 'Tokens of `text`, at most the budget.' }),
  })
  .meta({ id: 'ContextBlock' });

/** Decision 11. */
export const AuditLog = z
  .looseObject({
    entries: z
      .array(
        z.looseObject({
          timestamp: time('Time of the request, UTC.'),
          app: z.string().nullable().meta({ description: 'Name of the key or subject of the token; null: anonymous.' }),
          action: z.enum(AUDIT_ACTIONS).meta({ description: 'The verb, or another call of this gateway.' }),
          memory_id: z.string().nullable().meta({ description: 'Null: the verb has no single memory.' }),
          scope: z.string().nullable().meta({ description: 'Scope of the memory, or the requested one.' }),
          request_id: z.string().meta({ description: 'Id of the request, as in the access log.' }),
          outcome: z.enum(['ok', ...Object.keys(ERRORS)]).meta({ description: '`ok`, or the code of the error.' }),
        }),
      )
      .meta({ description: 'Newest first.' }),
    next_cursor,
  })
  .meta({ id: 'AuditLog' });

const count = z.int().min(0).meta({ description: 'Number of memories.' });
const last_write = time('Time of the last change of a memory that is still there.');

/** Decision 37. */
export const UserPage = z
  .looseObject({ items: z.array(z.looseObject({ user_id: z.string(), count, last_write })), next_cursor })
  .meta({ id: 'UserPage' });

/** Decision 37. */
export const UserStats = z
  .looseObject({
    user_id: z.string(),
    count,
    oldest: time('`created_at` of the oldest memory; null: no memories.').nullable(),
    newest: time('`created_at` of the newest memory; null: no memories.').nullable(),
    last_write: last_write.nullable(),
    scopes: z
      .array(z.looseObject({ scope: z.string().nullable(), count }))
      .meta({ description: 'The 100 largest, largest first; `scope` is null for memories without one.' }),
    tags: z.array(z.looseObject({ tag: z.string(), count })).meta({ description: 'The 100 largest, largest first.' }),
    created: z
      .looseObject({
        per: z.enum(['day', 'month']),
        counts: z.array(z.looseObject({ from: z.iso.date(), count })),
      })
      .meta({
        description:
          'By `created_at`, in UTC, oldest first: by day if all are within 92 days, else the newest 120 months.',
      }),
  })
  .meta({ id: 'UserStats' });

const coordinate = z.number().min(0).max(1);
const kept = (most: number) =>
  z
    .number()
    .min(0)
    .max(1)
    .meta({ description: `Share of the 10 nearest by cosine that are among the ${most} nearest on the plane.` });

/** Decision 42. */
export const MemoryMap = z
  .looseObject({
    items: z
      .array(
        z.looseObject({
          id: z.string(),
          scope: z.string().nullable(),
          created_at: time('Creation time, UTC.'),
          text: z.string().meta({ description: 'The first 200 characters of the content.' }),
          x: coordinate,
          y: coordinate,
        }),
      )
      .meta({ description: 'Newest first.' }),
    more: z.boolean().meta({ description: 'Older memories are left out.' }),
    without_vector: z.int().min(0).meta({ description: 'Memories left out because they have no vector.' }),
    among_10: kept(10),
    among_50: kept(50),
  })
  .meta({ id: 'MemoryMap' });

/** Decision 38. */
export const Erased = z.looseObject({ deleted: count }).meta({ id: 'Erased' });

/** Decision 41. */
export const Key = z
  .looseObject({
    id: z.string().meta({ description: 'The public part of the key.' }),
    name: z.string().meta({ description: 'Unique, also among revoked keys.' }),
    grants: strings.meta({ description: '`<action>:<scope glob>`, or `admin:*`.' }),
    users: strings.nullable().meta({ description: 'Users whose memories it may access; null: all.' }),
    created_at: time('Creation time, UTC.'),
    expires_at: time('The key is valid before this time; null: without end.').nullable(),
    revoked_at: time('Time of revocation; null: not revoked.').nullable(),
    last_used_at: time('Time of the last use, to about a minute; null: never.').nullable(),
  })
  .meta({ id: 'Key' });

/** Decision 41. */
export const CreatedKey = z
  .looseObject({
    ...Key.shape,
    key: z.string().meta({ description: 'The key itself. No other answer has it.' }),
  })
  .meta({ id: 'CreatedKey' });

/** Decision 41. */
export const KeyPage = z
  .looseObject({ items: z.array(Key).meta({ description: 'Newest first.' }), next_cursor })
  .meta({ id: 'KeyPage' });

const ErrorFields = z.looseObject({
  code: z.enum(Object.keys(ERRORS)).meta({ description: 'Clients branch on this code.' }),
  message: z.string().meta({ description: 'For logs and people; do not parse it.' }),
  type: z.enum(Object.values(ERRORS).map(({ type }) => type)).meta({ description: 'Category of the code.' }),
  provider: z.string().optional().meta({ description: 'Backend that raised the error.' }),
});

/** SPEC, Errors. */
export const ErrorEnvelope = z
  .looseObject({
    error: ErrorFields.extend({
      request_id: z.string().optional().meta({ description: '`X-Request-Id` of the response.' }),
    }),
  })
  .meta({ id: 'Error' });

/** Decision 43. */
export const ExportPage = z
  .looseObject({
    memories: z.array(
      Memory.extend({
        vector: z.string().optional().meta({ description: 'With `vectors`: base64 of little-endian float32.' }),
      }).meta({ id: 'MovedMemory', patternProperties: { '^x-': { description: 'Custom keys, as stored.' } } }),
    ),
    next_cursor,
  })
  .meta({ id: 'ExportPage' });

/** Decision 43. */
export const ImportResults = z
  .looseObject({
    results: z
      .array(
        z.union([
          z.looseObject({ outcome: z.enum(['stored', 'unchanged', 'exists']) }),
          z.looseObject({ error: ErrorFields }),
        ]),
      )
      .meta({
        description:
          'In the order of the request. `unchanged`: the memory is stored already, as it is; `exists`: its id is, with other fields, or of another user.',
      }),
  })
  .meta({ id: 'ImportResults' });

/** Decision 35. */
export const BatchResults = z
  .looseObject({
    results: z
      .array(z.union([z.looseObject({ memory: Memory }), z.looseObject({ error: ErrorFields })]))
      .meta({ description: 'In the order of the request: the created memory, or why it was not created.' }),
  })
  .meta({ id: 'BatchResults' });
