import { type Call, invalidRequest } from '#contract';
import type { Filter, FoundPoint, Points, Selection } from './collection.ts';
import { between, both, equals } from './filters.ts';
import { LIGHT, PLACES } from './points.ts';

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
const WINDOW = 999;
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
 * The database sorts nothing: windows of the number are read whole, the nearest first, each about as large as the one before had to be. At
 * first all that is left is tried, which is enough for most users.
 */
async function* byWindows(collection: Points, wanted: Walk, call: Call) {
  const { filter } = wanted;
  const { sign, near: start, far, sorted, within } = bearings(wanted);
  let width = Number.POSITIVE_INFINITY;
  let isFuture = false;
  for (let near = start; (far - near) * sign >= 0; ) {
    const reach = Math.min(width, Math.abs(far - near) + 1);
    const end = near + sign * (reach - 1);
    const window = both(filter, within(near, end));
    const points = await collection.scan({ filter: window, limit: WINDOW + 1, select: LIGHT }, call);
    if (points.length > WINDOW && near !== end) {
      const isFirst = reach > Math.abs(far - near);
      isFuture = isFirst && wanted.by !== 'place' && sign < 0 && near > Date.now();
      if (isFuture) width = near - Date.now() + 1;
      else width = isFirst ? await firstWidth(collection, wanted, call) : Math.ceil(reach / 4);
      continue;
    }
    const found = points.length > WINDOW ? await findAll(collection, window, call) : points;
    yield* readInOrder(collection, sorted(found), wanted, call);
    near = end + sign;
    if (isFuture) width = DAY_MS;
    else if (found.length < WINDOW / 8) width *= 8;
    isFuture = false;
  }
}

/** About how much of the number half a window takes: places are spread evenly. */
const firstWidth = async (collection: Points, { by, filter }: Walk, call: Call): Promise<number> =>
  by !== 'place'
    ? DAY_MS
    : Math.ceil((PLACES * WINDOW) / 2 / Math.max(1, (await collection.count?.(filter, call)) ?? 0));

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

/** The point of the user with the lowest place. */
export async function lowestPlace(collection: Points, filter: Filter, call: Call): Promise<FoundPoint | undefined> {
  const by = 'user_place';
  if (collection.traits.order !== 'none') {
    const request = { filter, order: { by, descending: false }, limit: 1, select: LIGHT };
    return (await collection.scan(request, call))[0];
  }
  // Any points, then those below the lowest of them, and so on: places are hashes, so few are left each time.
  for (let best: FoundPoint | undefined; ; ) {
    const below: Filter[] = best ? [between(by, undefined, numberOf(best, by) - 1)] : [];
    const points = await collection.scan({ filter: both(filter, ...below), limit: WINDOW, select: LIGHT }, call);
    for (const point of points) if (!best || numberOf(point, by) < numberOf(best, by)) best = point;
    if (points.length < WINDOW) return best;
  }
}
