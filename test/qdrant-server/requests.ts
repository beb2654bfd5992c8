import { z } from 'zod';

/**
 * Requests as Qdrant's OpenAPI file of 1.18 describes them, as far as the gateway sends them. Closed: what it does not send is refused here,
 * so that nothing is used that the test server does not implement.
 */
const UUID = /^(urn:uuid:)?\{?[0-9a-f]{8}-?([0-9a-f]{4}-?){3}[0-9a-f]{12}\}?$/i;
const id = z.union([
  z.int().nonnegative(),
  z
    .string()
    .regex(UUID, 'value is not a valid point ID, valid values are either an unsigned integer or a UUID')
    // All spellings of a UUID are one id.
    .transform((text) => {
      const digits = text.toLowerCase().replace(/^urn:uuid:|[{}-]/g, '');
      return digits.replace(/^(.{8})(.{4})(.{4})(.{4})/, '$1-$2-$3-$4-');
    }),
]);
export type PointId = z.output<typeof id>;

const vector = z.array(z.number());
const sparse = z.strictObject({ indices: z.array(z.int()), values: z.array(z.number()) });
export type SparseVector = z.output<typeof sparse>;
/** By name, the one without under the empty name. */
const vectorsByName = z.record(z.string(), z.union([vector, sparse]));
const payload = z.record(z.string(), z.unknown());
const integer = z.int();
const number = z.number();

const match = z.union([
  z.strictObject({ value: z.union([z.string(), integer, z.boolean()]) }),
  z.strictObject({ any: z.union([z.array(z.string()), z.array(integer)]) }),
  z.strictObject({ except: z.union([z.array(z.string()), z.array(integer)]) }),
]);
export type Match = z.output<typeof match>;
const bound = z.union([number, z.string()]).nullish();
const range = z.strictObject({ lt: bound, lte: bound, gt: bound, gte: bound });
export type Range = z.output<typeof range>;

/** Only letters, digits, `_` and `-` stand for themselves; all others are in quotation marks. */
const path = z
  .string()
  .regex(/^(?:[\p{L}\d_-]+|"[^"\\]*")(?:\[\d*\]|\.(?:[\p{L}\d_-]+|"[^"\\]*"))*$/u, 'Invalid json path');
const field = z
  .strictObject({ key: path, match: match.optional(), range: range.optional() })
  .refine((one) => one.match ?? one.range, 'At least one field condition must be specified');
const named = z.strictObject({ key: path });

export type Condition =
  | z.output<typeof field>
  | { readonly is_empty: { readonly key: string } }
  | { readonly is_null: { readonly key: string } }
  | { readonly has_id: readonly PointId[] }
  | Filter;
export interface Filter {
  readonly must?: readonly Condition[] | Condition | undefined;
  readonly must_not?: readonly Condition[] | Condition | undefined;
  readonly should?: readonly Condition[] | Condition | undefined;
}

const condition: z.ZodType<Condition> = z.lazy(() =>
  z.union([
    field,
    z.strictObject({ is_empty: named }),
    z.strictObject({ is_null: named }),
    z.strictObject({ has_id: z.array(id) }),
    filter,
  ]),
);
const conditions = z.union([z.array(condition), condition]).optional();
const filter: z.ZodType<Filter> = z.strictObject({ must: conditions, must_not: conditions, should: conditions });

const limit = z.int().min(1, 'value 0 invalid, must be 1 or larger').optional();
const withPayload = z.union([z.boolean(), z.array(path)]).optional();
const withVector = z.union([z.boolean(), z.array(z.string())]).optional();
const selected = { filter: filter.optional(), with_payload: withPayload, with_vector: withVector };

const unnamed = z.strictObject({
  size: z.int().min(1).max(65_536),
  distance: z.enum(['Cosine', 'Dot', 'Euclid', 'Manhattan']),
  on_disk: z.boolean().optional(),
});
export type VectorParams = z.output<typeof unnamed>;

export const REQUESTS = {
  create: z.strictObject({
    vectors: z.union([unnamed, z.record(z.string(), unnamed)]),
    sparse_vectors: z.record(z.string(), z.strictObject({ modifier: z.enum(['idf']).optional() })).optional(),
    hnsw_config: z.strictObject({ m: z.int(), payload_m: z.int() }).optional(),
    metadata: payload.optional(),
    replication_factor: z.int().optional(),
    strict_mode_config: z.strictObject({ enabled: z.boolean() }).optional(),
  }),
  index: z.strictObject({
    field_name: z.string(),
    field_schema: z.union([
      z.enum(['keyword', 'integer', 'float', 'bool', 'datetime', 'uuid']),
      z.strictObject({
        type: z.enum(['keyword', 'integer', 'float', 'bool', 'datetime', 'uuid']),
        is_tenant: z.boolean().optional(),
        lookup: z.boolean().optional(),
        range: z.boolean().optional(),
        is_principal: z.boolean().optional(),
      }),
    ]),
  }),
  upsert: z.strictObject({
    points: z.array(z.strictObject({ id, vector: z.union([vector, vectorsByName]), payload: payload.nullish() })),
    update_filter: filter.optional(),
    update_mode: z.enum(['upsert', 'insert_only', 'update_only']).optional(),
  }),
  batch: z.strictObject({
    operations: z.array(
      z.union([
        z.strictObject({ set_payload: z.strictObject({ payload, points: z.array(id), key: path.optional() }) }),
        z.strictObject({
          update_vectors: z.strictObject({
            points: z.array(z.strictObject({ id, vector: z.union([vector, vectorsByName]) })),
          }),
        }),
      ]),
    ),
  }),
  remove: z.union([z.strictObject({ points: z.array(id) }), z.strictObject({ filter })]),
  retrieve: z.strictObject({ ids: z.array(id), with_payload: withPayload, with_vector: withVector }),
  scroll: z.strictObject({
    ...selected,
    offset: id.nullish(),
    limit,
    order_by: z
      .strictObject({
        key: z.string(),
        direction: z.enum(['asc', 'desc']).optional(),
        start_from: z.union([number, z.string()]).nullish(),
      })
      .optional(),
  }),
  query: z.strictObject({
    ...selected,
    query: vector,
    using: z.string().optional(),
    limit,
    offset: z.int().nonnegative().optional(),
    params: z.strictObject({ exact: z.boolean().optional(), hnsw_ef: z.int().optional() }).optional(),
    score_threshold: number.optional(),
  }),
  count: z.strictObject({ filter: filter.optional(), exact: z.boolean().optional() }),
} as const;

export type Request<Name extends keyof typeof REQUESTS> = z.output<(typeof REQUESTS)[Name]>;
