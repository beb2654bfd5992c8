import {
  type BatchOutcome,
  type Call,
  type EraseRequest,
  type Holdings,
  type ImportRequest,
  invalidRequest,
  type Memory,
  type MemoryPatch,
  type NewMemory,
  type NewVector,
  OmpError,
  type ProviderMethods,
  type Ref,
  type UpdateRequest,
  type Vector,
} from '#contract';
import { toUnit } from '#ranking';
import {
  createKeyedMutex,
  effectivePatch,
  mergeExtensions,
  newRecord,
  recordTooLarge,
  requireFits,
  requireVersion,
} from '#toolbox';
import type { FoundPoint, Point, Points } from './collection.ts';
import { equals } from './filters.ts';
import { isBlank, KEYS, pointBytes, pointId, toPoint, toVector, WITH_VECTOR } from './points.ts';
import { find, memoryOf, type Shelf } from './reading.ts';
import { fetchAll } from './walk.ts';

/** Points that are removed at once. */
const ERASED_AT_ONCE = 100;

/**
 * Whether databases measure the vector as it is: they compute with 32 bits, in which the squares of very large components are infinite and those of
 * very small ones 0, and Qdrant scales no vector that is shorter than 0.00034.
 */
const isMeasurable = (vector: Float32Array): boolean => {
  const squares = vector.reduce((sum, component) => sum + component * component, 0);
  return squares > 1e-4 && squares < 1e12;
};

/** Throws `payload_too_large` if the database takes no such point. */
function storablePoint(memory: Memory, vector: Vector, { traits, sizeOf = pointBytes }: Points): Point {
  const { measure, ids, max_point_bytes, max_batch_bytes } = traits;
  // Where the measure does not depend on lengths, what was given stays as it was.
  const point = toPoint(
    memory,
    measure.startsWith('cosine') && vector && isMeasurable(vector) ? vector : toUnit(vector),
    ids,
  );
  const { fields, whole } = sizeOf(point);
  const max = Math.min(max_point_bytes ?? max_batch_bytes, max_batch_bytes);
  if (fields > max || whole > max_batch_bytes) throw recordTooLarge(max);
  return point;
}

/** As few requests as the points fit into. */
function chunksOf(points: readonly Point[], { traits, partOf = () => '', sizeOf = pointBytes }: Points): Point[][] {
  const { max_batch, max_batch_bytes } = traits;
  const chunks: Point[][] = [];
  const open = new Map<string, { readonly chunk: Point[]; bytes: number }>();
  for (const point of points) {
    const part = partOf(String(point.fields.user_id));
    const { whole } = sizeOf(point);
    const last = open.get(part);
    if (last && last.chunk.length < max_batch && last.bytes + whole <= max_batch_bytes) {
      last.chunk.push(point);
      last.bytes += whole;
    } else {
      const chunk = [point];
      chunks.push(chunk);
      open.set(part, { chunk, bytes: whole });
    }
  }
  return chunks;
}

export function createWriting(shelf: Shelf, { max_record_bytes }: { readonly max_record_bytes: number }) {
  const { collection, model, dimensions, kept = (memory) => memory } = shelf;
  const { traits } = collection;
  // Without conditional writes, the last change wins between several gateways.
  const mutex = createKeyedMutex();
  /** Waits for all of these ids. In their order: no two wait for each other. */
  const lock = <Result>(ids: readonly string[], work: () => Promise<Result>): Promise<Result> =>
    [...new Set(ids)].sort().reduceRight((inner, id) => () => mutex(id, inner), work)();

  /** Another application would take any other vector for the meaning of the text. */
  const requireMeaning = (vector: Vector) => {
    if (shelf.kept && vector && isBlank(vector))
      throw invalidRequest('content: the embedding of this text is zero, so it cannot be stored');
  };
  const storable = (memory: Memory, vector: Vector) => storablePoint(memory, vector, collection);

  const create = ({ input, vector }: NewVector) => {
    const memory = kept(newRecord(input, model, collection.identify?.(input.user_id)));
    requireMeaning(vector);
    return { memory, point: storable(memory, vector) };
  };

  async function batch({ items }: { readonly items: readonly NewVector[] }, call: Call): Promise<BatchOutcome[]> {
    const created = items.map((item) => orError(() => create(item)));
    const failures = new Map<Point, OmpError>();
    let stored = 0;
    for (const chunk of chunksOf(
      created.flatMap((one) => (one instanceof OmpError ? [] : [one.point])),
      collection,
    )) {
      try {
        await collection.upsert(chunk, call);
        stored += chunk.length;
      } catch (error) {
        // What was stored before must be reported.
        if (stored === 0 || !(error instanceof OmpError)) throw error;
        for (const point of chunk) failures.set(point, error);
      }
    }
    return created.map((one) => (one instanceof OmpError ? one : (failures.get(one.point) ?? one.memory)));
  }

  /** Reads a memory, and makes the change that `make` wants of it. Begins again if another gateway was quicker. */
  const change = async <Result>(
    ref: Ref,
    call: Call,
    make: (memory: Memory, point: FoundPoint) => Promise<Result | undefined>,
  ): Promise<Result | undefined> =>
    mutex(ref.id, async () => {
      for (;;) {
        call.throwIfAborted();
        const point = await find(shelf, ref, call, WITH_VECTOR);
        const memory = requireVersion(memoryOf(shelf, point), ref);
        if (!point || !memory) return undefined;
        const result = await make(memory, point);
        if (result !== undefined) return result;
      }
    });

  const update = ({ ref, patch: wanted, vector: embedded }: UpdateRequest, call: Call) =>
    change(ref, call, async (before, found) => {
      const patch = effectivePatch(before, wanted);
      if (!patch) return before;
      requireFits(before, patch, max_record_bytes);
      const after = kept(patched(before, patch));
      requireMeaning(embedded);
      const point = storable(after, patch.content === undefined ? toVector(found) : embedded);
      if (collection.patch) await collection.patch(point, found, call);
      else if (!collection.replace) await collection.upsert([point], call);
      else if (!(await collection.replace(point, Date.parse(before.updated_at), call))) return undefined;
      return after;
    });

  const remove = async (ref: Ref, call: Call): Promise<boolean> => {
    const removed = await change(ref, call, async ({ updated_at }, { id }) => {
      if (!collection.removeIf) await collection.remove([id], call);
      else if (!(await collection.removeIf(id, Date.parse(updated_at), call))) return undefined;
      return true;
    });
    return removed === true;
  };

  async function erase({ user_id }: EraseRequest, call: Call): Promise<Holdings> {
    for (let memories = 0; ; ) {
      const request = {
        filter: equals('user_id', user_id),
        limit: Math.min(ERASED_AT_ONCE, traits.max_batch),
        select: KEYS,
      };
      const points = await collection.scan(request, call);
      if (points.length === 0) return { memories, vectors: memories };
      // A patch in between would store the memory again, and an import may have given its id to another user.
      memories += await lock(
        points.map(({ fields }) => String(fields.memory_id)),
        async () => {
          const now = await collection.fetch(
            points.map(({ id }) => id),
            KEYS,
            call,
          );
          const ids = now.filter(({ fields }) => fields.user_id === user_id).map(({ id }) => id);
          if (ids.length > 0) await collection.remove(ids, call);
          return ids.length;
        },
      );
    }
  }

  const importAll = ({ items, replace }: ImportRequest, call: Call): Promise<boolean[]> =>
    lock(
      items.map(({ memory }) => memory.id),
      async () => {
        const ids = items.map(({ memory }) => pointId(memory.id, traits.ids));
        const found = await fetchAll(collection, ids, KEYS, call);
        const owners = new Map(found.map(({ fields }) => [String(fields.memory_id), String(fields.user_id)]));
        const points = new Map<string, Point>();
        const stored = items.map(({ memory, vector }) => {
          const owner = owners.get(memory.id);
          if (owner !== undefined && !(replace && owner === memory.user_id)) return false;
          owners.set(memory.id, memory.user_id);
          points.set(memory.id, storable(memory, vector));
          return true;
        });
        for (const chunk of chunksOf([...points.values()], collection)) await collection.upsert(chunk, call);
        return stored;
      },
    );

  return {
    check: (fields, vector) => void storable(kept({ ...NOTHING, ...fields }), vector ?? new Float32Array(dimensions)),
    async add(item, call) {
      const { memory, point } = create(item);
      await collection.upsert([point], call);
      return memory;
    },
    batch,
    update,
    delete: remove,
    erase,
    import: importAll,
  } satisfies Partial<ProviderMethods>;
}

function orError<Result>(work: () => Result): Result | OmpError {
  try {
    return work();
  } catch (error) {
    if (error instanceof OmpError) return error;
    throw error;
  }
}

const patched = (before: Memory, patch: MemoryPatch): Memory => ({
  ...before,
  ...patch,
  extensions: mergeExtensions(before.extensions, patch.extensions),
  updated_at: new Date(Math.max(Date.now(), Date.parse(before.updated_at) + 1)).toISOString(),
});

const EPOCH = new Date(0).toISOString();
/** A memory without anything, as long as the ids of new ones. */
const NOTHING: Memory = newRecord(
  {
    content: '',
    user_id: '',
    scope: null,
    tags: [],
    source: null,
    confidence: null,
    valid_from: null,
    valid_to: null,
    supersedes: [],
    extensions: {},
  } satisfies NewMemory,
  null,
  { id: 'mem_01JD3ZK8Q0V5W9E6T2Y4R7N1XA', created_at: EPOCH },
);
