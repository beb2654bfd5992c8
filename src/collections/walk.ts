import { type Call, invalidRequest } from '#contract';
import type { Filter, FoundPoint, Points, Selection } from './collection.ts';
import { between, both, equals } from './filters.ts';
import { LIGHT, PLACES, placeOf } from './points.ts';

/*
 * Points in order, whatever the database can sort.
 */

export interface Place {
  readonly value: number;
  readonly memory_id: string;
}

export interface Walk {
  /** A number of every point. Points with the same one are in order of `memory_id`, in the same direction. */
  readonly by: 'created' | 'updated' | 'place';
  readonly descending: boolean;
  readonly filter: Filter;
  /** Only points after this. */
  readonly after?: Place | undefined;
  readonly select: Selection;
  /** Points that are read whole at once, about. */
  readonly chunk: number;
}

/** The most that is put in order here at once. */
export const MAX_SORTED = 10_000;
/** Points of a window, without their contents. */
export const WINDOW = 999;
/** An ordered read asks for a few more than wanted: the last ones may have equals that follow. */
const EXTRA = 8;
const DAY_MS = 86_400_000;
/** Years 0001 to 9999. */
const TIMES = [-62_135_596_800_000, 253_402_300_799_999] as const;

export const numberOf = (point: FoundPoint, by: string): number => Number(point.fields[by]);
const idOf = ({ fields }: FoundPoint): string => String(fields.memory_id);

/** Yields points in order, in parts. Reads in proportion to what is taken, not to what there is. */
export function walk(collection: Points, wanted: Walk, call: Call): AsyncGenerator<readonly FoundPoint[], void> {
  const { order } = collection.traits;
  if (order === 'position') return byPosition(collection, wanted, call);
  return order === 'number' ? byNumber(collection, wanted, call) : byWindows(collection, wanted, call);
}

async function* byPosition(collection: Points, { by, descending, filter, select, chunk, ...rest }: Walk, call: Call) {
  for (let after = rest.after; ; ) {
    const points = await collection.scan({ filter, order: { by, descending }, after, limit: chunk, select }, call);
    yield points;
    const last = points.at(-1);
    if (!last || points.length < chunk) return;
    after = { value: numberOf(last, by), memory_id: idOf(last) };
  }
}

/** The order of a walk, and its bounds from the near to the far end. */
function bearings({ by, descending, after }: Walk) {
  const [low, high] = by === 'place' ? [0, PLACES] : TIMES;
  const sign = descending ? -1 : 1;
  const compare = (a: Place, b: Place) =>
    sign * (a.value - b.value) || sign * (a.memory_id < b.memory_id ? -1 : a.memory_id > b.memory_id ? 1 : 0);
  const placeOf = (point: FoundPoint): Place => ({ value: numberOf(point, by), memory_id: idOf(point) });
  return {
    sign,
    near: after?.value ?? (descending ? high : low),
    far: descending ? low : high,
    /** The points of a walk among these, in order. */
    sorted: (points: readonly FoundPoint[]) =>
      points
        .filter((point) => !after || compare(placeOf(point), after) > 0)
        .sort((a, b) => compare(placeOf(a), placeOf(b))),
    within: (near: number, far: number): Filter => between(by, Math.min(near, far), Math.max(near, far)),
  };
}

/** The database sorts by the number: equal ones are put in order here. */
async function* byNumber(collection: Points, wanted: Walk, call: Call) {
  const { by, descending, filter, select, chunk } = wanted;
  const { sign, near: start, far, sorted, within } = bearings(wanted);
  const limit = Math.min(chunk + EXTRA, collection.traits.max_limit);
  for (let near = start; ; ) {
    const request = { filter: both(filter, within(near, far)), order: { by, descending }, limit, select };
    const points = await collection.scan(request, call);
    const last = points.at(-1);
    if (!last || points.length < limit) {
      yield sorted(points);
      return;
    }
    const end = numberOf(last, by);
    const whole = points.filter((point) => numberOf(point, by) !== end);
    if (whole.length > 0) {
      yield sorted(whole);
      near = end;
    } else {
      yield* readInOrder(
        collection,
        sorted(await findAll(collection, both(filter, equals(by, end)), call)),
        wanted,
        call,
      );
      near = end + sign;
    }
  }
}

/**
 * The database sorts nothing. Most lists are short: one read tries all that is left. Then windows of the number are read. Places are spread evenly,
 * so that a window can be as small as what is wanted, and is read whole at once; of times, large ones are read without contents.
 */
async function* byWindows(collection: Points, wanted: Walk, call: Call) {
  const { by, filter, select, chunk } = wanted;
  const { near, far, sorted, within } = bearings(wanted);
  const points = await collection.scan({ filter: both(filter, within(near, far)), limit: chunk + 1, select }, call);
  if (points.length <= chunk) {
    yield sorted(points);
    return;
  }
  const [most, read] = by === 'place' ? [chunk, select] : [WINDOW, { fields: ['memory_id', by], vector: false }];
  for await (const { points, end, isWhole } of windows(
    collection,
    { ...wanted, near, far, most, select: read },
    call,
  )) {
    if (isWhole && by === 'place') yield sorted(points);
    else {
      const found = isWhole ? points : await findAll(collection, both(filter, equals(by, end)), call);
      yield* readInOrder(collection, sorted(found), wanted, call);
    }
  }
}

interface Windows extends Pick<Walk, 'filter' | 'select'> {
  readonly by: Walk['by'] | 'user_place';
  readonly near: number;
  readonly far: number;
  /** Points of a window. */
  readonly most: number;
}

interface Window {
  /** In any order. */
  readonly points: readonly FoundPoint[];
  /** Its last number. */
  readonly end: number;
  /** Whether these are all. If not, all have this number. */
  readonly isWhole: boolean;
}

/**
 * How wide windows were, by what they were read for: the next page begins so. It costs only requests if it is wrong. Beyond so many, the oldest is
 * forgotten.
 */
const WIDTHS = new WeakMap<Points, Map<number, number>>();
const MAX_WIDTHS = 1_000;
function remember(collection: Points, key: number, width: number): void {
  const known = WIDTHS.get(collection) ?? new Map<number, number>();
  WIDTHS.set(collection, known.set(key, width));
  const [oldest] = known.keys();
  if (known.size > MAX_WIDTHS && oldest !== undefined) known.delete(oldest);
}

/** Windows of a number, the nearest first, each about as wide as the one before had to be. Some are empty. */
export async function* windows(
  collection: Points,
  { by, filter, near: start, far, most, select }: Windows,
  call: Call,
): AsyncGenerator<Window, void> {
  const sign = start > far ? -1 : 1;
  const isTime = by === 'created' || by === 'updated';
  const key = placeOf(JSON.stringify([by, filter]));
  const usual = WIDTHS.get(collection)?.get(key) ?? (isTime ? DAY_MS : PLACES / 64);
  // Few memories are of the future.
  let isFuture = isTime && sign < 0 && start > Date.now();
  let width = isFuture ? start - Date.now() + 1 : usual;
  /** Up to here there are too many for one window. */
  let tooFar = start;
  for (let near = start; (far - near) * sign >= 0; ) {
    width = Math.min(width, Math.abs(far - near) + 1);
    const end = near + sign * (width - 1);
    const window = both(filter, between(by, Math.min(near, end), Math.max(near, end)));
    const points = await collection.scan({ filter: window, limit: most + 1, select }, call);
    const isWhole = points.length <= most;
    if (!isWhole && width > 1) {
      // One number may have nearly all of them: then up to there.
      const numbers = points.map((point) => sign * (numberOf(point, by) - near)).sort((a, b) => a - b);
      width = Math.max(1, Math.min(Math.ceil(width / 4), numbers[most >> 2] ?? 0));
      tooFar = end;
      continue;
    }
    if (isFuture || !isWhole) width = usual;
    else width = Math.ceil(width * Math.max(1, Math.min(8, (most * 0.75) / Math.max(1, points.length))));
    isFuture = false;
    // Of what is left at the end, little can be learnt.
    if (isWhole && end !== far) remember(collection, key, width);
    yield { points, end, isWhole };
    near = end + sign;
    const left = sign * (tooFar - near);
    if (left > 1) width = Math.min(width, Math.ceil(left / 2));
  }
}

/** All points that match, without their contents. */
export async function findAll(collection: Points, filter: Filter, call: Call): Promise<readonly FoundPoint[]> {
  const limit = Math.min(MAX_SORTED + 1, collection.traits.max_limit);
  const points = await collection.scan({ filter, limit, select: LIGHT }, call);
  if (points.length < limit) return points;
  throw invalidRequest(
    `${limit} memories or more of one moment cannot be put in order; narrow the request by tags or time`,
  );
}

/** The points with these ids, in any order. */
export async function fetchAll(
  collection: Points,
  ids: Iterable<string>,
  select: Selection,
  call: Call,
): Promise<FoundPoint[]> {
  const rest = [...new Set(ids)];
  const points: FoundPoint[] = [];
  while (rest.length > 0)
    points.push(...(await collection.fetch(rest.splice(0, collection.traits.max_batch), select, call)));
  return points;
}

/** Reads the points whole, `chunk` at once. Leaves out those that are not there any more. */
export async function* readInOrder(
  collection: Points,
  points: readonly FoundPoint[],
  { chunk, select }: Pick<Walk, 'chunk' | 'select'>,
  call: Call,
): AsyncGenerator<FoundPoint[], void> {
  const size = Math.min(chunk, collection.traits.max_batch);
  for (let start = 0; start < points.length; start += size) {
    const ids = points.slice(start, start + size).map(({ id }) => id);
    const found = new Map((await collection.fetch(ids, select, call)).map((point) => [point.id, point]));
    yield ids.flatMap((id) => found.get(id) ?? []);
  }
}
