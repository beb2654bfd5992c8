import { type Call, countWithin, invalidRequest, type ListQuery, type Memory, upToBytes } from '#provider';
import { MAX_LISTED } from '../client/client.ts';
import { newest, type RecentWrite } from '../overlay.ts';
import { type GatewayIndex, toMemory } from './gateway-record.ts';
import { EARLIEST_MS, listOrder, timeOf, timePart } from './ids.ts';
import { createWalk, type Stretch } from './list-walk.ts';

/** Records fetched at once for a list by tags: the last id of a listed page waits for the next page. */
const CHUNK = MAX_LISTED - 1;

/**
 * Lists a page of a user's memories: ids from Pinecone's list, merged with recent writes of this process; then fetches the
 * records that are needed. A page is full unless there are no more memories. Throws `invalid_request` if a list by tags
 * does not find enough within `max_scan` records.
 *
 * Without tags, the first page and every page after one that this process read in the last minutes take one list for every
 * 99 memories and one fetch for every 100; sometimes one more if another gateway just deleted some. Any other position
 * takes a few lists more: of 10,000 memories mostly 2 to 8; up to 50 if nothing older follows for weeks.
 */
export function createIndexList(index: GatewayIndex): (query: ListQuery, call: Call) => Promise<Memory[]> {
  const { service, ids, namespaces, overlay, consistency, model, max_scan } = index;
  const walk = createWalk(service, namespaces);

  return async (query, call) => {
    const { user_id, tags, limit, max_bytes } = query;
    const userPart = ids.userPart(user_id);
    const namespace = namespaces.of(userPart);
    await consistency.caughtUp(namespace, call);

    const isFiltered = tags.length > 0;
    const range = rangeOf(query);
    const { live, deleted } = overlay.of(user_id);
    const recent = live.filter(({ memory }) => range.has(memory.id));
    const count = isFiltered ? Number.POSITIVE_INFINITY : limit + deleted.size;
    const candidates = mergeIds(walk({ ...range, userPart, wanted: count }, call), recent, deleted);
    const matching = async (chunk: readonly Candidate[]): Promise<Memory[]> => {
      const chunkIds = chunk.map(({ id }) => id);
      const records = await service.fetch(namespace, chunkIds, call);
      return chunk.flatMap(({ id, write }) => {
        const record = records.get(id);
        // Without a record it was deleted since, or fetch does not show it yet.
        const memory = newest(write?.memory, record && toMemory(id, record.metadata, model));
        return memory?.user_id === user_id && isInTime(memory) && tags.every((tag) => memory.tags.includes(tag))
          ? [memory]
          : [];
      });
    };

    /** All ids of times before the earliest have the earliest. */
    const isInTime = ({ created_at }: Memory) =>
      (query.since === undefined || created_at >= query.since) &&
      (query.until === undefined || created_at <= query.until);
    const memories: Memory[] = [];
    for (let budget = max_scan; ; ) {
      const size = isFiltered ? Math.min(CHUNK, budget) : limit - memories.length;
      const chunk = await take(candidates, size);
      memories.push(...(await matching(chunk)));
      const isFull = memories.length >= limit || countWithin(memories, max_bytes) < memories.length;
      if (isFull || chunk.length < size) return upToBytes(memories.slice(0, limit), max_bytes, (memory) => memory);
      budget -= chunk.length;
      if (isFiltered && budget === 0) {
        if ((await candidates.next()).done) return memories;
        throw invalidRequest(tooMany(max_scan));
      }
    }
  };
}

const tooMany = (max_scan: number): string =>
  `this page needs more than the ${max_scan} memories that may be read: too few have the tag or scope; narrow the list by since and until, or lower limit`;

/** The range of a query, and which ids in it belong to it: exactly, since ids hold the time of creation. */
function rangeOf({ since, until, after }: ListQuery): Pick<Stretch, 'from' | 'to' | 'has' | 'resumed'> {
  const afterTime = after && timePart(Date.parse(after.created_at));
  const untilTime = timePart(until === undefined ? Number.POSITIVE_INFINITY : Math.max(EARLIEST_MS, Date.parse(until)));
  const from = afterTime !== undefined && afterTime > untilTime ? afterTime : untilTime;
  const to = timePart(since === undefined ? 0 : Date.parse(since));
  const has = (id: string): boolean => {
    const time = timeOf(id);
    return time >= from && time <= to && !(after && time === afterTime && id >= after.id);
  };
  return { from, to, has, resumed: after !== undefined };
}

interface Candidate {
  readonly id: string;
  /** A recent write of this process. */
  readonly write?: RecentWrite;
}

/** The listed ids and the recent writes, in the order of lists, without deleted ones. */
async function* mergeIds(
  ids: AsyncIterable<string>,
  recent: readonly RecentWrite[],
  deleted: ReadonlySet<string>,
): AsyncGenerator<Candidate, void> {
  const pending = recent.map((write) => ({ id: write.memory.id, write }));
  const recentIds = new Set([...deleted, ...pending.map(({ id }) => id)]);
  let next = pending.shift();
  for await (const id of ids) {
    for (; next && listOrder(next.id, id) <= 0; next = pending.shift()) yield next;
    if (!recentIds.has(id)) yield { id };
  }
  if (next) yield next;
  yield* pending;
}

/** The next `count` items, fewer at the end. */
async function take<Item>(items: AsyncIterator<Item>, count: number): Promise<Item[]> {
  const chunk: Item[] = [];
  while (chunk.length < count) {
    const { done, value } = await items.next();
    if (done) break;
    chunk.push(value);
  }
  return chunk;
}
