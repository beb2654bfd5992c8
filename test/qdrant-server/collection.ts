import { matches, type Point, valueAt, withValueAt } from './filter.ts';
import type { PointId, Request, SparseVector, VectorParams } from './requests.ts';

/** An error that Qdrant answers. */
export class Refusal extends Error {
  readonly status: number;

  constructor(status: number, message: string) {
    super(message);
    this.status = status;
  }
}

type Distance = VectorParams['distance'];

/** One collection, everything in memory and seen at once. */
export function createCollection(created: Request<'create'>) {
  const { vectors, sparse_vectors, metadata, strict_mode_config, replication_factor = 1 } = created;
  const byName = typeof vectors.size === 'number' ? { '': vectors } : vectors;
  // Of several, the others are only described.
  const [[dense, { size, distance }]] = Object.entries(byName) as [[string, VectorParams]];
  const points = new Map<PointId, Point>();
  const indexes = new Map<string, { readonly data_type: string; readonly params?: object }>();
  let operations = 0;

  const all = (filter: Request<'count'>['filter']) =>
    [...points.values()].filter((point) => matches(filter, point)).sort((a, b) => compareIds(a.id, b.id));
  const updated = () => {
    operations += 1;
    return { operation_id: operations, status: 'completed' };
  };
  const checkDimension = (vector: readonly number[]) => {
    if (vector.length === size) return;
    throw new Refusal(400, `Wrong input: Vector dimension error: expected dim: ${size}, got ${vector.length}`);
  };
  const existing = (id: PointId): Point => {
    const point = points.get(id);
    if (!point) throw new Refusal(404, `Not found: No point with id ${id} found`);
    return point;
  };
  /** The vector that is searched, and the others. */
  const split = (every: Request<'upsert'>['points'][number]['vector']) => {
    const { [dense]: vector = [], ...sparse } = Array.isArray(every) ? { '': every } : every;
    return { vector: vector as number[], sparse: sparse as Record<string, SparseVector> };
  };
  const shown = (point: Point, asked: Asked) => shownBy(dense, point, asked);
  /** Index types that a condition or an order needs. */
  const requireIndex = (key: string, types: readonly string[], message: string) => {
    if (!types.includes(indexes.get(key)?.data_type ?? '')) throw new Refusal(400, `Bad request: ${message}`);
  };

  return {
    describe: () => ({
      status: 'green',
      optimizer_status: 'ok',
      indexed_vectors_count: 0,
      points_count: points.size,
      segments_count: 2,
      config: {
        params: {
          ...{ vectors, ...(sparse_vectors && { sparse_vectors }), shard_number: 1, replication_factor },
          ...{ write_consistency_factor: 1, on_disk_payload: true },
        },
        hnsw_config: { m: 16, ef_construct: 100, full_scan_threshold: 10_000 },
        optimizer_config: {
          deleted_threshold: 0.2,
          vacuum_min_vector_number: 1_000,
          default_segment_number: 0,
          flush_interval_sec: 5,
        },
        wal_config: { wal_capacity_mb: 32, wal_segments_ahead: 0 },
        ...(metadata && { metadata }),
        ...(strict_mode_config && { strict_mode_config }),
      },
      payload_schema: Object.fromEntries(
        [...indexes].map(([name, index]) => [name, { ...index, points: points.size }]),
      ),
    }),

    index({ field_name, field_schema }: Request<'index'>) {
      const data_type = typeof field_schema === 'string' ? field_schema : field_schema.type;
      indexes.set(field_name, { data_type, ...(typeof field_schema !== 'string' && { params: field_schema }) });
      return updated();
    },

    /** Replaces vector and payload. All points are checked before any is stored. */
    upsert({ points: given, update_filter, update_mode = 'upsert' }: Request<'upsert'>) {
      for (const { vector } of given) checkDimension(split(vector).vector);
      for (const { id, vector: every, payload } of given) {
        const before = points.get(id);
        if (before ? update_mode === 'insert_only' || !matches(update_filter, before) : update_mode === 'update_only')
          continue;
        const { vector, sparse } = split(every);
        points.set(id, { id, vector: stored(vector, distance), sparse, payload: payload ?? {} });
      }
      return updated();
    },

    /** One after the other: what was done before one that fails stays. */
    batch: ({ operations: wanted }: Request<'batch'>) =>
      wanted.map((operation) => {
        if ('set_payload' in operation) {
          const { payload, points: ids, key } = operation.set_payload;
          for (const point of ids.map(existing)) {
            const at = key === undefined ? point.payload : valueAt(key, point.payload);
            const merged = { ...(Object(at) === at && !Array.isArray(at) ? (at as object) : {}), ...payload };
            const whole = key === undefined ? merged : withValueAt(key, point.payload, merged);
            points.set(point.id, { ...point, payload: whole });
          }
        } else {
          for (const { id, vector } of operation.update_vectors.points) {
            checkDimension(split(vector).vector);
            points.set(id, { ...existing(id), vector: stored(split(vector).vector, distance) });
          }
        }
        return updated();
      }),

    /** A filter without conditions deletes everything. */
    remove(selector: Request<'remove'>) {
      const ids = 'points' in selector ? selector.points : all(selector.filter).map(({ id }) => id);
      for (const id of ids) points.delete(id);
      return updated();
    },

    /** By id, each once, whatever the order of the ids. */
    retrieve: ({ ids, with_payload = false, with_vector }: Request<'retrieve'>) =>
      all({ must: [{ has_id: ids }] }).map((point) => shown(point, { with_payload, with_vector })),

    scroll({ filter, offset, limit = 10, order_by, ...asked }: Request<'scroll'>) {
      if (!order_by) {
        const found = all(filter).filter(({ id }) => offset == null || compareIds(id, offset) >= 0);
        return {
          points: found.slice(0, limit).map((point) => shown(point, asked)),
          next_page_offset: found[limit]?.id ?? null,
        };
      }
      const { key, direction = 'asc', start_from: start } = order_by;
      requireIndex(key, ['integer', 'float', 'datetime'], `No range index for \`order_by\` key: \`${key}\`.`);
      if (offset != null) throw new Refusal(400, 'Bad request: Cannot use an `offset` when using `order_by`.');
      const sign = direction === 'asc' ? 1 : -1;
      const toOrder = (value: unknown) => (typeof value === 'string' ? Date.parse(value) : (value as number));
      // Once for each value of a list; a point without a value is left out.
      const found = all(filter)
        .flatMap((point) => [valueAt(key, point.payload) ?? []].flat().map((value) => ({ point, at: toOrder(value) })))
        .filter(({ at }) => !Number.isNaN(at) && (start == null || sign * (at - toOrder(start)) >= 0))
        .sort((a, b) => sign * (a.at - b.at));
      return {
        points: found.slice(0, limit).map(({ point, at }) => ({ ...shown(point, asked), order_value: at })),
        next_page_offset: null,
      };
    },

    query({
      query,
      filter,
      limit = 10,
      offset = 0,
      score_threshold,
      with_payload = false,
      with_vector,
      using = '',
    }: Request<'query'>) {
      if (using !== dense) throw new Refusal(400, `Wrong input: Not existing vector name error: ${using}`);
      checkDimension(query);
      const asked = stored(query, distance);
      const isDistance = distance === 'Euclid' || distance === 'Manhattan';
      const found = all(filter)
        .map((point) => ({ point, score: scoreOf(asked, point.vector, distance) }))
        .filter(
          ({ score }) =>
            score_threshold === undefined || (isDistance ? score <= score_threshold : score >= score_threshold),
        )
        .sort((a, b) => (isDistance ? a.score - b.score : b.score - a.score));
      return {
        points: found.slice(offset, offset + limit).map(({ point, score }) => ({
          ...{ ...shown(point, { with_payload, with_vector }), version: 0, score },
        })),
      };
    },

    count: ({ filter }: Request<'count'>) => ({ count: all(filter).length }),
  };
}

export type Collection = ReturnType<typeof createCollection>;

/** Numbers before UUIDs. */
const compareIds = (a: PointId, b: PointId): number =>
  typeof a === typeof b ? Number(a > b) - Number(a < b) : typeof a === 'number' ? -1 : 1;

type Asked = Pick<Request<'retrieve'>, 'with_payload' | 'with_vector'>;

/** `name`: of the dense vector. */
function shownBy(name: string, { id, payload, vector, sparse }: Point, asked: Asked): object {
  const { with_payload = true, with_vector = false } = asked;
  const names = Array.isArray(with_payload) ? with_payload : undefined;
  const part = names
    ? names.reduce((found, path) => {
        const value = valueAt(path, payload);
        return value === undefined ? found : withValueAt(path, found, value);
      }, {})
    : payload;
  const every = { [name]: [...vector].map(shortest), ...sparse };
  const wanted = Array.isArray(with_vector)
    ? Object.fromEntries(Object.entries(every).filter(([key]) => with_vector.includes(key)))
    : every;
  return {
    id,
    ...(with_payload !== false && { payload: part }),
    // A point without others shows its vector alone, whatever the collection may hold.
    ...(with_vector && { vector: Object.keys(wanted).join() === '' ? wanted[''] : wanted }),
  };
}

/** As few digits as tell a 32-bit number apart from its neighbours. */
function shortest(number: number): number {
  for (let digits = 6; digits < 9; digits++) {
    const short = Number(number.toPrecision(digits));
    if (Math.fround(short) === number) return short;
  }
  return Number(number.toPrecision(9));
}

const dot = (a: Float32Array, b: Float32Array): number => a.reduce((sum, x, i) => sum + x * (b[i] as number), 0);

/** With cosine a vector gets length 1; one of zeros stays. */
function stored(given: readonly number[], distance: Distance): Float32Array {
  const vector = Float32Array.from(given);
  const squared = dot(vector, vector);
  if (distance !== 'Cosine' || squared < 2 ** -23 || Math.abs(squared - 1) <= 1e-6) return vector;
  return vector.map((x) => x / Math.sqrt(squared));
}

/** A distance for Euclid and Manhattan, where less is nearer. */
function scoreOf(a: Float32Array, b: Float32Array, distance: Distance): number {
  if (distance === 'Euclid') return Math.sqrt(a.reduce((sum, x, i) => sum + (x - (b[i] as number)) ** 2, 0));
  if (distance === 'Manhattan') return a.reduce((sum, x, i) => sum + Math.abs(x - (b[i] as number)), 0);
  return dot(a, b);
}
