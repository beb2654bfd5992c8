import { z } from 'zod';
import { MAX_BATCH_SIZE, VERBS } from '#contract';
import type { Store } from '../core/store.ts';
import { leastSimilar } from './add.ts';
import { score, time } from './fields.ts';
import { VERB_TABLE } from './index.ts';
import { isSupported, type Verb } from './verb.ts';

/** Version of the protocol this gateway speaks (SPEC, Versioning). */
export const OMP_VERSION = '0.1';

/** The largest `limit` of a search in the protocol (SPEC, Limits). */
const MAX_SEARCH_RESULTS = 100;

/** One entry for each flag of a verb that is an extension. */
const flagsOf = <Entry>(entry: (verb: Verb) => Entry): Record<string, Entry> =>
  Object.fromEntries(
    Object.values<Verb>(VERB_TABLE).flatMap((verb) =>
      verb.feature === undefined ? [] : [[verb.feature, entry(verb)]],
    ),
  );

/**
 * The public capability document (SPEC, Capabilities), derived from the methods and capabilities of the store. With several stores it
 * is that of the root store, and `x-stores` describes the others (Decision 48).
 */
export function describe({ mounts, ...store }: Store, rateLimitPerMinute: number | null) {
  if (!mounts) return describeOne(store, rateLimitPerMinute);
  const stores = mounts.stores.map((mounted) => {
    const { name, mount, provider } = mounted;
    const { verbs, embedding, features, limits } = describeOne(mounted.current(), rateLimitPerMinute);
    return { name, mount, provider, verbs, embedding, features, limits };
  });
  return { ...describeOne(mounts.root, rateLimitPerMinute), 'x-stores': stores };
}

function describeOne(store: Store, rateLimitPerMinute: number | null) {
  const { capabilities } = store;
  return {
    omp_version: OMP_VERSION,
    provider: store.name,
    verbs: VERBS.filter((name) => isSupported(VERB_TABLE[name], store)),
    embedding: store.embedding ?? null,
    features: {
      vector_search: capabilities.vector_search,
      keyword_search: capabilities.keyword_search,
      graph_queries: false,
      temporal: capabilities.temporal,
      temporal_search: store.search !== undefined && capabilities.temporal_search === true,
      scopes: capabilities.scopes,
      max_content_length: capabilities.max_content_length,
      supports_audit: store.audit !== undefined,
      supports_supersession: capabilities.supports_supersession,
      idempotency: store.idempotent,
      explain: store.search !== undefined && capabilities.explain === true,
      current: store.list !== undefined || store.search !== undefined,
      distinct: store.search !== undefined,
      similar: store.add !== undefined && store.search !== undefined,
      multi_user: store.search !== undefined,
      tags: capabilities.tags,
      tag_search: store.search !== undefined && capabilities.tags,
      consistency_tokens: capabilities.consistency_tokens,
      etags: capabilities.etags,
      origins: capabilities.origins === true,
      neighbours: store.search !== undefined && store.neighbours !== undefined,
      ...flagsOf((verb) => isSupported(verb, store)),
    },
    limits: {
      rate_limit_per_minute: rateLimitPerMinute,
      max_search_results: Math.min(capabilities.max_search_results ?? MAX_SEARCH_RESULTS, MAX_SEARCH_RESULTS),
      max_batch_size: MAX_BATCH_SIZE,
      similar_score: store.search === undefined ? null : leastSimilar(capabilities),
    },
  };
}

const flag = (description: string) => z.boolean().meta({ description });
const bound = (description: string) => z.int().min(0).nullable().meta({ description });

/** What the capability document says of each store. */
const OfStore = {
  provider: z.string().meta({ description: 'Name of the backend.' }),
  verbs: z.array(z.enum(VERBS)).meta({ description: 'Supported verbs.' }),
  embedding: z
    .looseObject({ model: z.string(), dimensions: z.int() })
    .nullish()
    .meta({ description: 'What makes the vectors; null: there are none.' }),
  features: z.looseObject({
    vector_search: flag('Similarity search.'),
    keyword_search: flag('Keyword search.'),
    graph_queries: flag('Graph queries.'),
    temporal: flag('Filters by time.'),
    temporal_search: flag('`since` and `until` of search and context.'),
    scopes: z.enum(['native', 'tags', 'none']).meta({ description: 'How scopes are implemented.' }),
    max_content_length: bound('Maximum characters of `content`; null: no limit.'),
    supports_audit: flag('An audit log is recorded.'),
    supports_supersession: flag('`supersedes` is tracked.'),
    idempotency: flag('`POST /memories` supports `Idempotency-Key`.'),
    explain: flag('`explain=true` of search explains scores.'),
    current: flag('List and search take `current`.'),
    distinct: flag('Search takes `distinct`.'),
    similar: flag('`POST /memories` takes `similar`.'),
    multi_user: flag('Search and context take several `user_id`.'),
    tags: flag('Memories have tags, and lists filter by them.'),
    tag_search: flag('`tag` of search.'),
    consistency_tokens: flag('Other replicas may show writes late; `X-Consistency-Token` makes them wait.'),
    etags: flag('Memories have an `ETag`, and changes support `If-Match`.'),
    neighbours: flag('Context ranks memories with `source.ref` by their conversation too.'),
    origins: flag('`origin` of list, search and context filters by who wrote a memory.'),
    ...flagsOf(({ method, path }) => flag(`\`${method} ${path}\` is supported.`)),
  }),
  limits: z
    .looseObject({
      rate_limit_per_minute: bound('Maximum requests per minute; null: no limit.'),
      max_search_results: bound('Maximum `limit` of a search; null: no limit.'),
      max_batch_size: z.int().min(1).meta({ description: 'Maximum memories of a batch.' }),
      similar_score: score
        .nullable()
        .meta({ description: 'Least score of a memory that says nearly the same; null: there is no search.' }),
    })
    .optional(),
};

/** The schema of the capability document. */
export const CapabilityFields = z
  .looseObject({
    omp_version: z
      .string()
      .regex(/^\d+\.\d+$/)
      .meta({ description: 'Version of the protocol.' }),
    frozen: z
      .looseObject({ since: time('Since when.') })
      .nullish()
      .meta({
        description:
          'Whether the store takes no changes at the moment, because it is being moved; null: it takes them.',
      }),
    ...OfStore,
    'x-stores': z
      .array(
        z
          .looseObject({
            name: z.string().meta({ description: 'The ids of its memories begin with `~name~`.' }),
            mount: z.string().meta({ description: 'Its memories have this scope, or one below.' }),
            ...OfStore,
          })
          .meta({ id: 'MountedStore' }),
      )
      .optional()
      .meta({ description: 'Stores mounted at scopes; all else is about the root store. Absent: there are none.' }),
  })
  .meta({ id: 'Capabilities' });

export const capabilityExample = {
  omp_version: '0.1',
  provider: 'postgres',
  embedding: { model: 'universal-sentence-encoder-lite-en', dimensions: 512 },
  frozen: null,
  verbs: ['add', 'search', 'get', 'update', 'delete', 'list', 'context', 'audit'],
  features: {
    vector_search: true,
    keyword_search: true,
    graph_queries: false,
    temporal: true,
    temporal_search: true,
    scopes: 'native',
    max_content_length: null,
    supports_audit: true,
    supports_supersession: true,
    idempotency: true,
    batch: true,
    changes: true,
    explain: true,
    current: true,
    distinct: true,
    similar: true,
    multi_user: true,
    tags: true,
    tag_search: true,
    consistency_tokens: false,
    etags: true,
    versions: true,
    origins: true,
    neighbours: true,
    users: true,
    stats: true,
    erase: true,
    rollback: true,
    person_file: true,
    retention: true,
    export: true,
    import: true,
    keys: true,
    embedding_usage: true,
    webhooks: true,
    freeze: true,
  },
  limits: { rate_limit_per_minute: null, max_search_results: 100, max_batch_size: 100, similar_score: 0.5 },
};
