import {
  type Call,
  invalidRequest,
  type ListQuery,
  type Memory,
  type NeighboursQuery,
  type Position,
  type ProviderMethods,
  type Ref,
  type SearchHit,
  type SearchQuery,
  type Visible,
} from '#contract';
import { roundScore, toUnit } from '#ranking';
import { newestFirst, recordBytes, upToBytes, visibleMatcher, writtenMatcher } from '#toolbox';
import type { Filter, FoundPoint, Match, Measure, Points, Traits } from './collection.ts';
import { both, byQuery, byScan, type Condition, conditionOf, equals } from './filters.ts';
import { conversationField, EVERYTHING, LIGHT, pointId, toMemory, WHOLE } from './points.ts';
import { fetchAll, findAll, MAX_SORTED, numberOf, type Place, readInOrder, walk } from './walk.ts';

/** A collection with memories, as the verbs see it. */
export interface Shelf {
  readonly collection: Points;
  /** Of the vectors; null: it is not known. */
  readonly model: string | null;
  readonly dimensions: number;
  /** Whether the database knows scopes. */
  readonly scoped: boolean;
  /** The most that is read for one page of a list, if the database does not decide what belongs to it. */
  readonly max_scan: number;
  /** The memory as a mapped collection keeps it. Throws `unsupported_capability` for what it cannot store. */
  readonly kept?: (memory: Memory) => Memory;
}

/** Records that one request reads: a page of 100 and one more. However large they are, they fit into memory. */
const CHUNK = 101;
/** The most that is read at once where the size of a point is limited. */
const CHUNK_BYTES = 64 * 1024 * 1024;
const mostAtOnce = ({ max_point_bytes }: Traits): number =>
  max_point_bytes === null ? CHUNK : Math.max(CHUNK, Math.floor(CHUNK_BYTES / max_point_bytes));
/** If the results of a query are not enough, the next one asks for this many times as many. */
const GROWTH = 4;
/** The most that a search ranks. */
export const maxResults = ({ traits }: Points): number => Math.min(MAX_SORTED, traits.max_limit);

const positionOf = ({ created_at, id }: Position): Place => ({ value: Date.parse(created_at), memory_id: id });

export function createReading(shelf: Shelf) {
  const list = (query: ListQuery, call: Call) => {
    const scopes = query.scope === undefined ? null : [query.scope].flat();
    return listPage(
      shelf,
      { condition: conditionOf({ ...query, scopes }, byScan(shelf.collection.traits)), ...query },
      call,
    );
  };
  return {
    get: async (ref: Ref, call: Call) => memoryOf(shelf, await find(shelf, ref, call)),
    list,
    search: (query, call) => search(shelf, query, call),
    ...(shelf.scoped && { neighbours: (query, call) => neighbours(shelf, query, call) }),
  } satisfies Partial<ProviderMethods>;
}

export const memoryOf = ({ model }: Shelf, point: FoundPoint | undefined): Memory | undefined =>
  point && toMemory(point, model);

/** The point of a memory that a caller may see. */
export async function find(
  { collection }: Shelf,
  ref: Ref,
  call: Call,
  select = WHOLE,
): Promise<FoundPoint | undefined> {
  const point = collection.find
    ? await collection.find(ref, call)
    : (await collection.fetch([pointId(ref.id, collection.traits.ids)], select, call))[0];
  if (!point || point.fields.user_id === '') return undefined;
  const { user_id, scope } = point.fields;
  const isVisible = visibleMatcher(ref)(scope === '' ? null : String(scope));
  return isVisible && (ref.users === null || ref.users.includes(String(user_id))) ? point : undefined;
}

interface Page {
  /** Undefined: nothing matches. */
  readonly condition: Condition | undefined;
  readonly after?: Position | undefined;
  readonly limit: number;
  readonly max_bytes: number;
}

/** A page of a list, without some memories. */
async function listPage(shelf: Shelf, page: Page, call: Call, without?: ReadonlySet<string>): Promise<Memory[]> {
  const { condition, after, limit, max_bytes } = page;
  if (!condition) return [];
  const { filter, rest } = condition;
  const { collection, max_scan } = shelf;
  const { scan_batch } = collection.traits;
  const select = rest ? EVERYTHING : WHOLE;
  const wanted = { by: 'created', descending: true, filter, after: after && positionOf(after), select } as const;
  const chunk = rest && scan_batch ? scan_batch : Math.min(limit, mostAtOnce(collection.traits));
  const memories: Memory[] = [];
  let bytes = 0;
  let read = 0;
  for await (const points of walk(collection, { ...wanted, chunk }, call)) {
    for (const point of points) {
      read += 1;
      // A shorter page would be a silently partial answer.
      if (rest && read > max_scan) throw tooMany(max_scan);
      if ((rest && !rest(point.fields)) || without?.has(String(point.fields.memory_id))) continue;
      const memory = toMemory(point, shelf.model);
      memories.push(memory);
      bytes += recordBytes(memory);
      if (memories.length === limit || bytes > max_bytes) return memories;
    }
  }
  return memories;
}

const tooMany = (max: number) =>
  invalidRequest(
    `this page needs more than the ${max} memories that may be read: too few match; begin the scope with whole segments, or narrow the request by tags, since or until`,
  );

/** The cosine, from what the database measured. Vectors have length 1 where it depends on lengths. */
const COSINES: Readonly<Record<Measure, (measure: number) => number>> = {
  cosine: (cosine) => cosine,
  'cosine distance': (distance) => 1 - distance,
  product: (product) => product,
  'product distance': (distance) => 1 - distance,
  distance: (distance) => 1 - distance ** 2 / 2,
  'squared distance': (distance) => 1 - distance / 2,
};

const scoreOf = (cosine: number): number => roundScore(Math.min(1, Math.max(0, cosine)));

/** Ranks by cosine. Equal scores, and those of 0, are newest first. */
async function search(shelf: Shelf, query: SearchQuery, call: Call): Promise<SearchHit[]> {
  const { collection } = shelf;
  const { limit, max_bytes } = query;
  const wanted = { ...query, prefix: query.scope };
  const condition = conditionOf(wanted, byQuery(collection.traits));
  const listed = conditionOf(wanted, byScan(collection.traits));
  if (!condition || !listed) return [];
  const vector = toUnit(query.vector);
  const most = maxResults(collection);
  let found: Hits = { hits: [], bytes: 0 };
  if (vector.some((component) => component !== 0)) {
    const { slow_pages } = collection.traits;
    for (let count = Math.min(slow_pages ? limit : limit + 1, most); ; count = Math.min(count * GROWTH, most)) {
      const { ranked, floor } = await rank(shelf, { vector, condition, count }, call);
      // What was not found has at most the score of the floor: only higher ones are in their final place.
      const final = slow_pages ? ranked : ranked.filter(({ score }) => score > floor);
      const read = await readHits(shelf, { ranked: final, condition }, query, call);
      found = read;
      if (isFull(found, query) || (floor === ALL && !read.hasBlank)) return found.hits;
      // The rest has score 0. A list that decides less than a query reads more in vain.
      if (floor === ALL || (floor === 0 && !slow_pages && (listed.undecided === condition.undecided || count === most)))
        break;
      if (count === most) {
        if (condition.rest) throw tooMany(most);
        // A larger query is impossible. Equal scores at the end are as good as those that were not found.
        return (await readHits(shelf, { ranked, condition }, query, call)).hits;
      }
    }
  }
  // All others have score 0.
  const { hits, bytes } = found;
  const without = new Set(hits.map(({ memory }) => memory.id));
  const page = { condition: listed, limit: limit - hits.length, max_bytes: max_bytes - bytes };
  const others = await listPage(shelf, page, call, without);
  return upToBytes([...hits, ...others.map((memory) => ({ memory, score: 0 }))], max_bytes, ({ memory }) => memory);
}

interface Hits {
  readonly hits: SearchHit[];
  /** Of their memories. */
  readonly bytes: number;
}

const isFull = ({ hits, bytes }: Hits, { limit, max_bytes }: SearchQuery): boolean =>
  hits.length === limit || bytes > max_bytes;

/** The floor of a ranking that found everything. */
const ALL = -1;

interface Ranked {
  readonly point: FoundPoint;
  readonly score: number;
}

/** The best `count` points that match, in order. `floor`: the highest score of those that were not found. */
async function rank(
  shelf: Shelf,
  {
    vector,
    condition,
    count,
  }: { readonly vector: Float32Array; readonly condition: Condition; readonly count: number },
  call: Call,
): Promise<{ ranked: readonly Ranked[]; floor: number }> {
  const { collection } = shelf;
  const { measure, exact } = collection.traits;
  const { filter, rest } = condition;
  const select = count > CHUNK ? LIGHT : rest ? EVERYTHING : WHOLE;
  let matches: readonly { point: FoundPoint; cosine: number }[] = (
    await collection.query({ vector, filter, limit: count, select }, call)
  ).map((point: Match) => ({ point, cosine: COSINES[measure](point.measure) }));
  let all = matches.length < count;
  // An approximate index may not reach some of many vectors that are alike. Then all are compared here.
  if (all && !exact && matches.length < Math.min(count, (await collection.count?.(filter, call)) ?? 0)) {
    matches = await compared(collection, vector, filter, call);
    all = true;
  }
  const ranked = matches
    .filter(({ point }) => !rest || isUnread(point) || rest(point.fields))
    .map(({ point, cosine }) => ({ point, score: point.fields.blank === 1 ? 0 : scoreOf(cosine) }))
    .sort((a, b) => b.score - a.score || newestPoint(a.point, b.point));
  return { ranked, floor: all ? ALL : scoreOf(matches.at(-1)?.cosine ?? 0) };
}

const newestPoint = (a: FoundPoint, b: FoundPoint): number =>
  numberOf(b, 'created') - numberOf(a, 'created') || (String(a.fields.memory_id) > String(b.fields.memory_id) ? -1 : 1);

/** All points that match with their cosines, computed here. */
async function compared(collection: Points, vector: Float32Array, filter: Filter, call: Call) {
  const cosines: { point: FoundPoint; cosine: number }[] = [];
  const points = await findAll(collection, filter, call);
  const select = { ...LIGHT, vector: true };
  for await (const some of readInOrder(collection, points, { chunk: collection.traits.max_batch, select }, call)) {
    for (const point of some) {
      const unit = toUnit(point.vector ?? new Float32Array(vector.length));
      cosines.push({
        point: { id: point.id, fields: point.fields },
        cosine: vector.reduce((sum, part, i) => sum + part * (unit[i] ?? 0), 0),
      });
    }
  }
  return cosines.sort((a, b) => b.cosine - a.cosine);
}

const isUnread = ({ fields }: FoundPoint): boolean => fields.user_id === undefined;
const isWhole = ({ fields }: FoundPoint): boolean => fields.content !== undefined && fields.rest !== undefined;

/**
 * The first of a ranking, up to the limits of the query. Reads what was not read, and leaves out what is gone or does not match.
 * `hasBlank`: whether the score of some turned out to be 0. Then none of score 0 is returned.
 */
async function readHits(
  { collection, model }: Shelf,
  { ranked, condition }: { readonly ranked: readonly Ranked[]; readonly condition: Condition },
  query: SearchQuery,
  call: Call,
): Promise<Hits & { readonly hasBlank: boolean }> {
  const hits: SearchHit[] = [];
  let bytes = 0;
  let hasBlank = false;
  const chunk = Math.min(query.limit, mostAtOnce(collection.traits), collection.traits.max_batch);
  for (let start = 0; start < ranked.length; start += chunk) {
    const part = ranked.slice(start, start + chunk);
    const ids = part.flatMap(({ point }) => (isWhole(point) ? [] : [point.id]));
    const select = part.some(({ point }) => isUnread(point)) ? EVERYTHING : WHOLE;
    const found = ids.length === 0 ? [] : await collection.fetch(ids, select, call);
    const read = new Map(found.map((point) => [point.id, point]));
    for (const { point, score } of part) {
      const whole = isWhole(point) ? point : read.get(point.id);
      if (!whole || (isUnread(point) && !condition.matches(whole.fields))) continue;
      if (whole.fields.blank === 1 && score > 0) {
        hasBlank = true;
        continue;
      }
      // The blank ones are among the rest of score 0, which a list has in order.
      if (hasBlank && score === 0) return { hits, bytes, hasBlank };
      const memory = toMemory(whole, model);
      hits.push({ memory, score });
      bytes += recordBytes(memory);
      if (isFull({ hits, bytes }, query)) return { hits, bytes, hasBlank };
    }
  }
  return { hits, bytes, hasBlank };
}

/** One read for each side of each memory: none grows with the conversation. */
async function neighbours(
  shelf: Shelf,
  { ids, max_bytes, max_content_bytes = Number.POSITIVE_INFINITY, written, ...query }: NeighboursQuery,
  call: Call,
): Promise<Memory[]> {
  const { collection, model } = shelf;
  const isWanted = writtenMatcher(written);
  const admits = visibleMatcher(query satisfies Visible);
  const anchors = (
    await fetchAll(
      collection,
      ids.map((id) => pointId(id, collection.traits.ids)),
      EVERYTHING,
      call,
    )
  )
    .filter(({ fields }) => fields.user_id === query.user_id && fields.conversation !== '')
    .map((point) => toMemory(point, model));
  const near = new Map<string, Memory>();
  for (const anchor of anchors) {
    const filter = both(equals('user_id', query.user_id), equals('conversation', conversationField(anchor)));
    for (const descending of [true, false]) {
      const wanted = { by: 'created', descending, filter, after: positionOf(anchor), select: WHOLE, chunk: 1 } as const;
      for await (const [point] of walk(collection, wanted, call)) {
        if (!point) continue;
        const memory = toMemory(point, model);
        near.set(memory.id, memory);
        break;
      }
    }
  }
  for (const id of ids) near.delete(id);
  const page = [...near.values()].filter(
    (memory) => admits(memory.scope) && Buffer.byteLength(memory.content) <= max_content_bytes && isWanted(memory),
  );
  return upToBytes(page.sort(newestFirst), max_bytes, (memory) => memory);
}
