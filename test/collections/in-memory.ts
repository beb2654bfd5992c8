import { z } from 'zod';
import {
  type Collection,
  defineCollection,
  type Filter,
  type FoundPoint,
  type Point,
  type Selection,
  type Traits,
} from '#provider';

/** Collections by name, so that one is there when it is opened again. */
const STORED = new Map<string, Stored>();

interface Stored {
  readonly dimensions: number;
  readonly points: Map<string, Point>;
}

const TRAITS: Traits = {
  measure: 'cosine',
  exact: true,
  filters: ['anyOf', 'allOf', 'prefix', 'not'],
  order: 'position',
  ids: 'text',
  max_batch: 1_000,
  max_batch_bytes: 100_000_000,
  max_point_bytes: null,
  max_limit: 20_000,
};

/** The filter as its description says, written again beside the kit's own. */
const matches = (filter: Filter, { fields }: Point): boolean => {
  if (filter.op === 'and') return !filter.filters.some((one) => !matches(one, { fields } as Point));
  if (filter.op === 'not') return !matches(filter.filter, { fields } as Point);
  const value = fields[filter.field];
  switch (filter.op) {
    case 'equals':
      return value === filter.value;
    case 'anyOf':
      return new Set<unknown>(filter.values).has(value);
    case 'allOf':
      return filter.values.every((one) => (value as readonly string[]).includes(one));
    case 'prefix':
      return String(value).slice(0, filter.value.length) === filter.value;
    case 'range':
      return !(Number(value) < (filter.from ?? -Infinity)) && !(Number(value) > (filter.to ?? Infinity));
  }
};

const named = (filter: Filter): string[] =>
  filter.op === 'and'
    ? filter.filters.flatMap(named)
    : filter.op === 'not'
      ? ['not', ...named(filter.filter)]
      : [filter.op];

const measures: Readonly<Record<Traits['measure'], (a: Float32Array, b: Float32Array) => number>> = {
  cosine: (a, b) => dot(a, b) / Math.sqrt(dot(a, a) * dot(b, b)),
  'cosine distance': (a, b) => 1 - dot(a, b) / Math.sqrt(dot(a, a) * dot(b, b)),
  product: (a, b) => dot(a, b),
  'product distance': (a, b) => 1 - dot(a, b),
  distance: (a, b) => Math.sqrt(Math.max(0, dot(a, a) + dot(b, b) - 2 * dot(a, b))),
  'squared distance': (a, b) => dot(a, a) + dot(b, b) - 2 * dot(a, b),
};
const dot = (a: Float32Array, b: Float32Array): number => a.reduce((sum, part, i) => sum + part * (b[i] ?? 0), 0);

/** What was asked of a collection, for tests that count it. */
export interface Asked {
  readonly method: string;
  readonly points: number;
  /** What was asked for of each; undefined: all fields. */
  readonly fields?: readonly string[] | undefined;
}

/** Most bytes of an answer, as JSON; a database that has such a limit refuses larger ones. */
interface Limits {
  readonly max_answer_bytes?: number;
}
class AnswerTooLarge extends Error {}

/**
 * A test double of a database. It refuses what the kit promises not to ask: other filters than the traits say, more than their limits, an order
 * that they do not have. With `exact: false` it hides every third point from queries, as an approximate index may.
 */
function openInMemory(
  name: string,
  { max_answer_bytes = Infinity, ...traits }: Traits & Limits,
  asked?: Asked[],
): Collection {
  const stored = (): Stored => {
    const found = STORED.get(name);
    if (!found) throw new Error('there is no such collection');
    return found;
  };
  const require = (holds: boolean, what: string) => {
    if (!holds) throw new Error(`the kit asked for ${what}`);
  };
  const seen = <Found extends FoundPoint>(
    method: string,
    { fields }: Selection,
    found: readonly Found[],
  ): readonly Found[] => {
    asked?.push({ method, points: found.length, fields });
    if (JSON.stringify(found).length > max_answer_bytes) throw new AnswerTooLarge();
    return found;
  };
  const select = <Found extends Point>(
    { fields, vector, ...point }: Found,
    { fields: wanted, vector: withVector }: Selection,
  ) => ({
    ...point,
    fields: wanted ? Object.fromEntries(wanted.map((field) => [field, fields[field] as string])) : fields,
    ...(withVector && { vector }),
  });
  const find = (filter: Filter, limit: number): Point[] => {
    for (const op of named(filter))
      require(['equals', 'range', 'and', ...traits.filters].includes(op), `a filter ${op}`);
    require(limit >= 1 && limit <= traits.max_limit && Number.isInteger(limit), `${limit} points`);
    return [...stored().points.values()].filter((point) => matches(filter, point));
  };
  const write = (points: readonly Point[]) => {
    const { dimensions, points: all } = stored();
    for (const point of points) {
      require(point.vector.length === dimensions && point.vector.some((part) => part !== 0), 'such a vector');
      require(Buffer.byteLength(JSON.stringify(point.fields)) <=
        (traits.max_point_bytes ?? Infinity), 'such a large point');
      require(traits.ids === 'text' ||
        /^[\da-f]{8}-[\da-f]{4}-8[\da-f]{3}-[89ab][\da-f]{3}-[\da-f]{12}$/.test(point.id), 'such an id');
      all.set(point.id, structuredClone(point));
    }
  };
  const batched = (items: readonly unknown[]) => {
    require(items.length >= 1 && items.length <= traits.max_batch, `a batch of ${items.length}`);
  };
  return {
    traits,
    describe: async () => {
      const found = STORED.get(name);
      return found && { dimensions: found.dimensions, empty: found.points.size === 0 };
    },
    prepare: async ({ dimensions }) => void (STORED.has(name) || STORED.set(name, { dimensions, points: new Map() })),
    async upsert(points) {
      batched(points);
      require(new Set(points.map(({ id }) => id)).size === points.length, 'an id twice');
      write(points);
    },
    async fetch(ids, selection) {
      batched(ids);
      return seen(
        'fetch',
        selection,
        ids
          .flatMap((id) => stored().points.get(id) ?? [])
          .map((point) => select(point, selection))
          .reverse(),
      );
    },
    async remove(ids) {
      batched(ids);
      for (const id of ids) stored().points.delete(id);
    },
    async query({ vector, filter, limit, select: selection }) {
      const found = find(filter, limit).filter((_, i) => traits.exact || i % 3 > 0);
      const sign = traits.measure.includes('distance') ? 1 : -1;
      const measured = found.map((point) => ({ ...point, measure: measures[traits.measure](vector, point.vector) }));
      const nearest = measured.sort((a, b) => sign * (a.measure - b.measure)).slice(0, limit);
      return seen(
        'query',
        selection,
        nearest.map((match) => select(match, selection) as typeof match),
      );
    },
    async scan({ filter, order, after, limit, select: selection }) {
      require(order === undefined || traits.order !== 'none', 'an order');
      require(after === undefined || traits.order === 'position', 'a position');
      const found = find(filter, limit);
      if (order) {
        const sign = order.descending ? -1 : 1;
        const compare = (a: Point, value: number, id: string) =>
          sign * (Number(a.fields[order.by]) - value) ||
          (traits.order === 'number'
            ? 0
            : sign * (String(a.fields.memory_id) < id ? -1 : String(a.fields.memory_id) > id ? 1 : 0));
        const beyond = found.filter((point) => !after || compare(point, after.value, after.memory_id) > 0);
        beyond.sort((a, b) => compare(a, Number(b.fields[order.by]), String(b.fields.memory_id)));
        return seen(
          'scan',
          selection,
          beyond.slice(0, limit).map((point) => select(point, selection)),
        );
      }
      return seen(
        'scan',
        selection,
        found.slice(0, limit).map((point) => select(point, selection)),
      );
    },
    async count(filter) {
      asked?.push({ method: 'count', points: 0 });
      return find(filter, 1).length;
    },
    ...(traits.ids === 'text' && {
      async replace(point: Point, updated: number) {
        if (stored().points.get(point.id)?.fields.updated !== updated) return false;
        write([point]);
        return true;
      },
      async removeIf(id: string, updated: number) {
        return stored().points.get(id)?.fields.updated === updated && stored().points.delete(id);
      },
    }),
    ping: async () => void stored(),
    close: async () => {},
  };
}

/** A provider of the kit on such a collection. Each name is a collection of its own. */
export const inMemory = (traits: Partial<Traits> & Limits = {}, asked?: Asked[]) =>
  defineCollection({
    specVersion: 2,
    name: 'in-memory',
    title: 'the test double',
    options: z.strictObject({ collection: z.string() }),
    open: async ({ collection }) => openInMemory(collection, { ...TRAITS, ...traits }, asked),
    failure: (error) =>
      error instanceof AnswerTooLarge ? { code: 'payload_too_large', message: 'the answer is too large' } : undefined,
  });
