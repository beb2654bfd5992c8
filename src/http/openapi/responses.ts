import { z } from 'zod';
import { VERBS } from '#contract';
import { ERRORS } from '../errors.ts';
import { sourceType } from '../schemas.ts';

/*
 * What the gateway answers, for its description: SPEC, Resources. Objects are open, because a client of this version
 * has to read the answers of a newer one (SPEC, Versioning 4); no limits are stated, because a backend may hold
 * records that were not written through this gateway.
 */

const time = (description: string) => z.string().meta({ description, format: 'date-time' });
const score = z
  .number()
  .min(0)
  .max(1)
  .meta({ description: 'What the results are ordered by; higher means more relevant.' });
const strings = z.array(z.string());

const Source = z.looseObject({
  app: z.string().nullish().meta({ description: 'Application that created the memory.' }),
  type: sourceType.nullish().meta({ description: 'How the memory was created.' }),
  ref: z.string().nullish().meta({ description: 'Opaque pointer back, such as a session id.' }),
});

export const Memory = z
  .looseObject({
    id: z.string().meta({ description: 'Assigned by the provider; opaque.' }),
    content: z.string().meta({ description: 'The stored text.' }),
    user_id: z.string().meta({ description: 'Owner.' }),
    created_at: time('Creation time, UTC.'),
    updated_at: time('Time of the last change, UTC.').nullish(),
    scope: z.string().nullish().meta({ description: 'Slash-delimited hierarchical namespace.' }),
    tags: strings.nullish().meta({ description: 'Free-form labels.' }),
    source: Source.nullish().meta({ description: 'Where the memory came from.' }),
    confidence: z.number().min(0).max(1).nullish().meta({ description: 'Null when it was omitted at creation.' }),
    valid_from: time('From when the memory is valid.').nullish(),
    valid_to: time('Until when the memory is valid; null: no expiry.').nullish(),
    supersedes: strings.nullish().meta({ description: 'Ids of memories this record replaces.' }),
    embedding_model: z.string().nullish().meta({ description: 'Model the content was indexed with, if any.' }),
    status: z
      .enum(['queued', 'indexing', 'done', 'failed'])
      .nullish()
      .meta({ description: 'Ingestion state; absent or null: not tracked.' }),
  })
  .meta({
    id: 'Memory',
    patternProperties: { '^x-': { description: "The caller's own keys, as they were given." } },
  });

const next_cursor = z.string().nullish().meta({ description: '`cursor` of the next page; null: there is none.' });

export const MemoryPage = z
  .looseObject({
    items: z.array(Memory).meta({ description: 'Newest first: by `created_at`, then `id`, both descending.' }),
    next_cursor,
  })
  .meta({ id: 'MemoryPage' });

const SearchResult = z.looseObject({ memory: Memory, score }).meta({ id: 'SearchResult' });

export const SearchResults = z
  .looseObject({
    results: z.array(SearchResult).meta({ description: 'Highest `score` first.' }),
    'x-truncated': z.literal(true).optional().meta({
      description: 'Results within `limit` are left out, since the answer would take more than 4 MiB.',
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
    features: z.looseObject({
      vector_search: z.boolean().meta({ description: 'Similarity search.' }),
      keyword_search: z.boolean().meta({ description: 'Keyword search.' }),
      graph_queries: z.boolean().meta({ description: 'Graph queries.' }),
      temporal: z.boolean().meta({ description: 'Filters on time.' }),
      scopes: z.enum(['native', 'tags', 'none']).meta({ description: 'How scopes are implemented.' }),
      max_content_length: bound('Maximum characters of `content`; null: no limit.'),
      supports_audit: z.boolean().meta({ description: 'An audit log is recorded.' }),
      supports_supersession: z.boolean().meta({ description: '`supersedes` is tracked.' }),
      idempotency: z.boolean().meta({ description: '`POST /memories` takes an `Idempotency-Key`.' }),
      tags: z.boolean().meta({ description: 'Memories keep tags, and lists filter by them.' }),
      consistency_tokens: z.boolean().meta({
        description: 'Other replicas may show a change late; `X-Consistency-Token` makes them wait for it.',
      }),
    }),
    limits: z
      .looseObject({
        rate_limit_per_minute: bound('Maximum requests a minute; null: no limit.'),
        max_search_results: bound('Maximum `limit` of a search; null: unbounded.'),
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
      .meta({ description: '`draining`: it is being stopped; `unavailable`: its backend does not answer.' }),
  })
  .meta({ id: 'Readiness' });

/** Decision 10. */
export const ContextBlock = z
  .looseObject({
    text: z.string().meta({ description: 'Numbered lines, best first; empty when nothing was found.' }),
    citations: z
      .array(z.looseObject({ memory_id: z.string(), score }))
      .meta({ description: 'The memory behind each line, in order.' }),
    token_count: z.int().min(0).meta({ description: 'Tokens of `text`, at most the budget.' }),
  })
  .meta({ id: 'ContextBlock' });

/** Decision 11. */
export const AuditLog = z
  .looseObject({
    entries: z
      .array(
        z.looseObject({
          timestamp: time('When it happened, UTC.'),
          app: z
            .string()
            .nullable()
            .meta({ description: "Who called: a key's name or a token's subject; null: nobody in particular." }),
          action: z.enum(VERBS).meta({ description: 'The verb.' }),
          memory_id: z.string().nullable().meta({ description: 'Null: the verb concerns no single memory.' }),
          scope: z.string().nullable().meta({ description: 'Of the memory, or the one asked for.' }),
          request_id: z.string().meta({ description: 'Correlates with the access log.' }),
          outcome: z.enum(['ok', ...Object.keys(ERRORS)]).meta({ description: '`ok`, or the code of the error.' }),
        }),
      )
      .meta({ description: 'Newest first.' }),
    next_cursor,
  })
  .meta({ id: 'AuditLog' });

/** SPEC, Errors. */
export const ErrorEnvelope = z
  .looseObject({
    error: z.looseObject({
      code: z.enum(Object.keys(ERRORS)).meta({ description: 'What clients branch on.' }),
      message: z.string().meta({ description: 'For logs and people; not to be parsed.' }),
      type: z.enum(Object.values(ERRORS).map(({ type }) => type)).meta({ description: 'Category of the code.' }),
      provider: z.string().optional().meta({ description: 'The backend that raised the error.' }),
      request_id: z.string().optional().meta({ description: 'The `x-request-id` of the response.' }),
    }),
  })
  .meta({ id: 'Error' });
