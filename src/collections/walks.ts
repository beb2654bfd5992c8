import {
  type Call,
  type EraseRequest,
  type ExportedMemory,
  type ExportPart,
  type ExportQuery,
  type Holdings,
  invalidRequest,
  type UserListQuery,
  type UserPart,
  type UserSummary,
} from '#contract';
import { recordBytes, visibleMatcher } from '#toolbox';
import type { Collection, Filter, FoundPoint, Points, Selection } from './collection.ts';
import { between, both, byScan, type Condition, conditionOf, decides, equals, holds } from './filters.ts';
import { KEYS, LIGHT, PLACES, placeOf, pointId, toMemory, toVector, WHOLE } from './points.ts';
import type { Shelf } from './reading.ts';
import { fetchAll, findAll, MAX_SORTED, numberOf, WINDOW, walk, windows } from './walk.ts';

/*
 * All users, and all memories of the store.
 */

/** What counts its points too. */
export type CountingShelf = Shelf & { readonly collection: Pick<Collection, 'count'> };

/** Reads for one part, and users that are asked for one by one, if most do not match. */
const [MAX_READS, LOOKED_AT] = [20, 200];
/** What a summary is made of. */
const SUMMARISED: Selection = { fields: ['user_id', 'user_place', 'scope', 'updated'], vector: false };

/**
 * Users in the order of their places. One read has the points of many users, whole; who has more than a read returns is counted. So a page takes
 * some requests, and for a user with very many memories two more. `after`: a place, and a user there after which it goes on.
 */
export async function listUsers(shelf: CountingShelf, query: UserListQuery, call: Call): Promise<UserPart> {
  const { users, prefix = '', after = '0', limit } = query;
  const isVisible = visibleMatcher(query);
  const items: UserSummary[] = [];
  let { place, last } = readCursor(after);
  for (let reads = 0; reads < MAX_READS; reads++) {
    const part = users ? namedFrom(users, place) : await usersFrom(shelf, { place, prefix }, call);
    for (const { place: at, user_id, points } of part.users) {
      if (!user_id.startsWith(prefix) || (at === place && last !== undefined && user_id <= last)) continue;
      const summary = points ? summarised(user_id, points, isVisible) : await summaryOf(shelf, user_id, query, call);
      if (summary.count > 0) items.push(summary);
      if (items.length === limit) return { items, next: `${at} ${user_id}` };
    }
    if (part.next === undefined) return { items, next: undefined };
    place = part.next;
    last = undefined;
  }
  return { items, next: `${place}` };
}

function readCursor(after: string): { place: number; last: string | undefined } {
  const [place = '', ...last] = after.split(' ');
  return { place: Number(place), last: last.length > 0 ? last.join(' ') : undefined };
}

interface FoundUser {
  readonly place: number;
  readonly user_id: string;
  /** All it has. Undefined: they were not read. */
  readonly points?: readonly FoundPoint[];
}

/** Users in order. `next`: the place after them; undefined: there are no more. */
interface Users {
  readonly users: readonly FoundUser[];
  readonly next: number | undefined;
}

const inOrder = (users: readonly FoundUser[]): FoundUser[] =>
  users.toSorted((a, b) => a.place - b.place || (a.user_id < b.user_id ? -1 : 1));

function namedFrom(names: readonly string[], from: number): Users {
  const all = [...new Set(names)].map((user_id) => ({ place: placeOf(user_id), user_id }));
  const users = inOrder(all.filter(({ place }) => place >= from));
  // Names may have the same place.
  const next = users[LOOKED_AT]?.place;
  return { users: next === undefined ? users : users.filter(({ place }) => place < next), next };
}

function grouped(points: readonly FoundPoint[]): FoundUser[] {
  const groups = new Map<string, FoundPoint[]>();
  for (const point of points) {
    const user_id = String(point.fields.user_id);
    const group = groups.get(user_id);
    if (group) group.push(point);
    else groups.set(user_id, [point]);
  }
  return inOrder([...groups].map(([user_id, group]) => ({ place: placeOf(user_id), user_id, points: group })));
}

async function usersFrom(
  { collection }: CountingShelf,
  { place: from, prefix }: { place: number; prefix: string },
  call: Call,
): Promise<Users> {
  const by = 'user_place';
  const begins: Filter = { op: 'prefix', field: 'user_id', value: prefix };
  const narrowed = prefix !== '' && decides(byScan(collection.traits), begins) ? [begins] : [];
  if (collection.traits.order !== 'none') {
    const filter = both(between(by, from, PLACES), ...narrowed);
    const order = { by, descending: false };
    const points = await collection.scan({ filter, order, limit: WINDOW + 1, select: SUMMARISED }, call);
    const last = points.at(-1);
    if (!last || points.length <= WINDOW) return { users: grouped(points), next: undefined };
    const end = numberOf(last, by);
    const whole = points.filter((point) => numberOf(point, by) !== end);
    if (whole.length > 0) return { users: grouped(whole), next: end };
    return { users: await usersAt(collection, end, String(last.fields.user_id), call), next: end + 1 };
  }
  const filter = both(between(by, 0, PLACES), ...narrowed);
  const wanted = { by, filter, near: from, far: PLACES, most: WINDOW, select: SUMMARISED } as const;
  for await (const { points, end, isWhole } of windows(collection, wanted, call)) {
    const [first] = points;
    if (!first) continue;
    const users = isWhole ? grouped(points) : await usersAt(collection, end, String(first.fields.user_id), call);
    return { users, next: end < PLACES ? end + 1 : undefined };
  }
  return { users: [], next: undefined };
}

/** All users at a place, of whom one is known: nearly always there is nobody else. */
async function usersAt(
  collection: CountingShelf['collection'],
  place: number,
  user: string,
  call: Call,
): Promise<FoundUser[]> {
  const names = [user];
  if (collection.traits.filters.includes('not')) {
    // Counting what all of them have would grow with it.
    for (;;) {
      const others = names.map((one): Filter => ({ op: 'not', filter: equals('user_id', one) }));
      const filter = both(equals('user_place', place), ...others);
      const [other] = await collection.scan({ filter, limit: 1, select: KEYS }, call);
      if (!other) break;
      names.push(String(other.fields.user_id));
    }
  } else {
    const [here, own] = await Promise.all([
      collection.count(equals('user_place', place), call),
      collection.count(equals('user_id', user), call),
    ]);
    // Somebody chose names with the same hash, or a memory came or went between both.
    const others = here === own ? [] : await findAll(collection, equals('user_place', place), call);
    names.push(...others.map(({ fields }) => String(fields.user_id)));
  }
  return inOrder([...new Set(names)].map((user_id) => ({ place, user_id })));
}

function summarised(
  user_id: string,
  points: readonly FoundPoint[],
  isVisible: (scope: string | null) => boolean,
): UserSummary {
  const visible = points.filter(({ fields: { scope } }) => isVisible(scope === '' ? null : String(scope)));
  return { user_id, count: visible.length, last_write: visible.map(timeOf).sort().at(-1) ?? '' };
}

async function summaryOf(
  shelf: CountingShelf,
  user_id: string,
  { within, outside }: UserListQuery,
  call: Call,
): Promise<UserSummary> {
  const { collection } = shelf;
  const condition = conditionOf({ user_id, within, outside }, byScan(collection.traits));
  if (!condition) return { user_id, count: 0, last_write: '' };
  if (condition.rest) return counted(shelf, user_id, condition, call);
  const { filter } = condition;
  const [count, latest] = await Promise.all([collection.count(filter, call), latestOf(shelf, filter, call)]);
  return latest
    ? { user_id, count: Math.max(1, count), last_write: timeOf(latest) }
    : { user_id, count: 0, last_write: '' };
}

/** The memory that was changed last. */
async function latestOf({ collection }: Shelf, filter: Filter, call: Call): Promise<FoundPoint | undefined> {
  if (collection.traits.order !== 'none') {
    // Any of those of one moment will do, however many there are.
    const order = { by: 'updated', descending: true };
    return (await collection.scan({ filter, order, limit: 1, select: LIGHT }, call))[0];
  }
  const wanted = { by: 'updated', descending: true, filter, select: LIGHT, chunk: 1 } as const;
  for await (const [point] of walk(collection, wanted, call)) if (point) return point;
  return undefined;
}

const timeOf = (point: FoundPoint): string => new Date(numberOf(point, 'updated')).toISOString();

/** The database cannot decide which memories count. */
async function counted(
  { collection }: CountingShelf,
  user_id: string,
  { filter, rest }: Condition,
  call: Call,
): Promise<UserSummary> {
  if ((await collection.count(filter, call)) > MAX_SORTED)
    throw invalidRequest('a user has too many memories to count those in the allowed scopes');
  const points = (await findAll(collection, filter, call)).filter(({ fields }) => rest?.(fields));
  return summarised(user_id, points, () => true);
}

export async function holdingsOf(
  { collection }: CountingShelf,
  { user_id }: EraseRequest,
  call: Call,
): Promise<Holdings> {
  const memories = await collection.count(equals('user_id', user_id), call);
  return { memories, vectors: memories };
}

/** What has pages in an order of its own. */
export type PagedShelf = Pick<Shelf, 'model'> & { readonly collection: Points & Required<Pick<Points, 'page'>> };

/** Whether exports go by these: places cannot order them. */
const isPaged = (shelf: Shelf): shelf is Shelf & PagedShelf =>
  shelf.collection.page !== undefined && !decides(byScan(shelf.collection.traits), between('place', 0, PLACES));

/** A page of the database's own order. One that is too large is read again by half. */
export async function exportPage(
  { collection, model }: PagedShelf,
  { ids, user_id, since, vectors, limit, max_bytes, after }: ExportQuery,
  call: Call,
): Promise<ExportPart> {
  const wanted: Filter[] = [
    ...(user_id === undefined ? [] : [equals('user_id', user_id)]),
    ...(since === undefined ? [] : [between('updated', Date.parse(since), undefined)]),
  ];
  const asked = wanted.filter((one) => decides(byScan(collection.traits), one));
  const filter = asked.length === 0 ? undefined : both(...asked);
  const select = { vector: vectors };
  for (let count = limit; ; count = Math.ceil(count / 2)) {
    const { points, next } = ids
      ? { points: await fetchAll(collection, ids, select, call), next: undefined }
      : await collection.page({ filter, after, limit: count, select }, call);
    const items = points
      .filter(({ fields }) => wanted.every((one) => holds(one, fields)))
      .map((point) => ({ memory: toMemory(point, model), vector: vectors ? toVector(point) : null }));
    const bytes = items.reduce((sum, { memory }) => sum + recordBytes(memory), 0);
    // Ids come as one page.
    if (ids || bytes <= max_bytes || count === 1) return { items, next };
  }
}

/** In the order of places, or that of the collection's pages. `after`: the place and id of the last memory, or what the collection says. */
export async function exportPart(shelf: Shelf, query: ExportQuery, call: Call): Promise<ExportPart> {
  const { ids, user_id, since, vectors, limit, max_bytes } = query;
  const { collection, model } = shelf;
  if (isPaged(shelf)) return exportPage(shelf, query, call);
  const select = { fields: [...(WHOLE.fields ?? []), 'place'], vector: vectors };
  const { place, last } = readCursor(query.after ?? '0');
  const items: ExportedMemory[] = [];
  let bytes = 0;
  let cursor: string | undefined;
  /** Whether there is room for more. */
  const take = (point: FoundPoint): boolean => {
    const memory = toMemory(point, model);
    bytes += recordBytes(memory);
    if (items.length > 0 && bytes > max_bytes) return false;
    items.push({ memory, vector: vectors ? toVector(point) : null });
    cursor = `${numberOf(point, 'place')} ${memory.id}`;
    return items.length < limit;
  };
  if (ids) {
    const found = await fetchAll(
      collection,
      ids.map((id) => pointId(id, collection.traits.ids)),
      select,
      call,
    );
    const wanted = found
      .filter(({ fields }) => fields.user_id !== '' && (user_id === undefined || fields.user_id === user_id))
      .filter((point) => since === undefined || numberOf(point, 'updated') >= Date.parse(since))
      .filter((point) => isAfter(point, place, last))
      .sort((a, b) => (isAfter(a, numberOf(b, 'place'), String(b.fields.memory_id)) ? 1 : -1));
    return { items, next: wanted.every(take) ? undefined : cursor };
  }
  const filter = both(
    between('place', 0, PLACES),
    ...(user_id === undefined ? [] : [equals('user_id', user_id)]),
    ...(since === undefined ? [] : [between('updated', Date.parse(since), undefined)]),
  );
  const after = { value: place, memory_id: last ?? '' };
  for await (const points of walk(
    collection,
    { by: 'place', descending: false, filter, after, select, chunk: Math.min(limit, 101) },
    call,
  )) {
    if (!points.every(take)) return { items, next: cursor };
  }
  return { items, next: undefined };
}

const isAfter = (point: FoundPoint, place: number, last = ''): boolean =>
  numberOf(point, 'place') > place || (numberOf(point, 'place') === place && String(point.fields.memory_id) > last);
