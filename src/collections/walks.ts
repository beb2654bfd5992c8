import {
  type Call,
  type ExportedMemory,
  type ExportPart,
  type ExportQuery,
  invalidRequest,
  type UserListQuery,
  type UserPart,
  type UserSummary,
} from '#contract';
import { recordBytes } from '#toolbox';
import type { Collection, Filter, FoundPoint } from './collection.ts';
import { between, both, byScan, type Condition, conditionOf, decides, equals } from './filters.ts';
import { LIGHT, PLACES, placeOf, pointId, toMemory, toVector, WHOLE, WITH_VECTOR } from './points.ts';
import type { Shelf } from './reading.ts';
import { fetchAll, findAll, lowestPlace, MAX_SORTED, numberOf, walk } from './walk.ts';

/*
 * All users, and all memories of the store.
 */

/** What counts its points too. */
export type CountingShelf = Shelf & { readonly collection: Pick<Collection, 'count'> };

/** Users that are looked at for one part, if most of them do not match. */
const LOOKED_AT = 200;

/**
 * Users in the order of their places. The next one is found by its place, however many memories the one before has; then its memories are
 * counted. So a page takes some requests for each of its users, and nothing that grows with the store. `after`: a place, and a user there
 * after which it goes on.
 */
export async function listUsers(shelf: CountingShelf, query: UserListQuery, call: Call): Promise<UserPart> {
  const { users, prefix = '', after = '0', limit } = query;
  const items: UserSummary[] = [];
  let { place, last } = readCursor(after);
  for (let looked = 0; looked < LOOKED_AT; looked++) {
    const group = await (users ? namedFrom(users, place) : usersFrom(shelf, { place, prefix }, call));
    if (!group) return { items, next: undefined };
    for (const user_id of group.users) {
      if (!user_id.startsWith(prefix) || (group.place === place && last !== undefined && user_id <= last)) continue;
      const summary = await summaryOf(shelf, user_id, query, call);
      if (summary.count > 0) items.push(summary);
      if (items.length === limit) return { items, next: `${group.place} ${user_id}` };
    }
    place = group.place + 1;
    last = undefined;
  }
  return { items, next: `${place}` };
}

function readCursor(after: string): { place: number; last: string | undefined } {
  const [place = '', ...last] = after.split(' ');
  return { place: Number(place), last: last.length > 0 ? last.join(' ') : undefined };
}

/** Users at one place, in order: nearly always one. */
interface UserGroup {
  readonly place: number;
  readonly users: readonly string[];
}

const inOrder = (users: Iterable<string>): string[] => [...new Set(users)].sort();

function namedFrom(users: readonly string[], from: number): UserGroup | undefined {
  const place = Math.min(...users.map(placeOf).filter((one) => one >= from));
  return place === Number.POSITIVE_INFINITY
    ? undefined
    : { place, users: inOrder(users.filter((user) => placeOf(user) === place)) };
}

async function usersFrom(
  { collection }: CountingShelf,
  { place: from, prefix }: { place: number; prefix: string },
  call: Call,
): Promise<UserGroup | undefined> {
  const begins: Filter = { op: 'prefix', field: 'user_id', value: prefix };
  const narrowed = prefix !== '' && decides(byScan(collection.traits), begins) ? [begins] : [];
  const beyond = both(between('user_place', from, PLACES), ...narrowed);
  const point = await lowestPlace(collection, beyond, call);
  if (!point) return undefined;
  const [place, user] = [numberOf(point, 'user_place'), String(point.fields.user_id)];
  if (collection.traits.filters.includes('not')) {
    // Nearly always one request finds nobody else. Counting what all of them have would grow with it.
    const here = [user];
    for (;;) {
      const others = here.map((one): Filter => ({ op: 'not', filter: equals('user_id', one) }));
      const filter = both(equals('user_place', place), ...others);
      const [other] = await collection.scan({ filter, limit: 1, select: LIGHT }, call);
      if (!other) return { place, users: inOrder(here) };
      here.push(String(other.fields.user_id));
    }
  }
  const [here, own] = await Promise.all([
    collection.count(equals('user_place', place), call),
    collection.count(equals('user_id', user), call),
  ]);
  // Somebody chose names with the same hash, or a memory came or went between both.
  const others = here === own ? [] : await findAll(collection, equals('user_place', place), call);
  return { place, users: inOrder([user, ...others.map(({ fields }) => String(fields.user_id))]) };
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
  return { user_id, count: points.length, last_write: points.map(timeOf).sort().at(-1) ?? '' };
}

/** In the order of places, or that of the collection's pages. `after`: the place and id of the last memory, or what the collection says. */
export async function exportPart(shelf: Shelf, query: ExportQuery, call: Call): Promise<ExportPart> {
  const { ids, user_id, since, vectors, limit, max_bytes } = query;
  const { collection, model } = shelf;
  const select = vectors ? WITH_VECTOR : WHOLE;
  if (collection.pages) {
    const { points, next } = ids
      ? { points: await fetchAll(collection, ids, select, call), next: undefined }
      : await collection.pages({ user_id, after: query.after, limit }, call);
    const wanted = points.filter(
      (point) =>
        (user_id === undefined || point.fields.user_id === user_id) &&
        (since === undefined || numberOf(point, 'updated') >= Date.parse(since)),
    );
    const items = wanted.map((point) => ({ memory: toMemory(point, model), vector: vectors ? toVector(point) : null }));
    return { items, next };
  }
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
    between('place', place, PLACES),
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
