import { type Call, countWithin, invalidRequest, type ListQuery, type Memory, upToBytes } from '#contract';
import { MAX_LISTED } from './client/client.ts';
import { listOrder, timeOf, timePart } from './gateway-index/ids.ts';
import { createWalk, type Stretch } from './gateway-index/list-walk.ts';
import { newest } from './overlay.ts';
import type { Own, Written } from './parts.ts';
import { toMemory } from './record.ts';

/** Records read at once where tags decide; the last id of a listed page waits for the next page. */
const CHUNK = MAX_LISTED - 1;

/**
 * A page of a user's list: ids from the service's own list, merged with what this process wrote lately, their records
 * fetched as far as they are needed. Never short of `limit` unless there are no more. Throws `invalid_request` when tags
 * are asked for and `max_scan` records do not hold enough that carry them.
 *
 * Without tags the first page, and every one that follows a page this process read in the last minutes, takes a list for
 * every 99 memories of it and a fetch for every 100; one more at times where memories of it were just deleted elsewhere.
 * Any other place takes a few lists more: of 10,000 memories mostly 2 to 8, whether they were made over a year or within
 * a minute; up to 50 where nothing older follows for weeks.
 */
export function createList(own: Own): (query: ListQuery, call: Call) => Promise<Memory[]> {
  const { service, ids, namespaces, overlay, visibility, model, max_scan } = own;
  const walk = createWalk(service, namespaces);

  return async (query, call) => {
    const { user_id, tags, limit, max_bytes } = query;
    const userPart = ids.userPart(user_id);
    const namespace = namespaces.of(userPart);
    await visibility.caughtUp(namespace, call);

    const filtered = tags.length > 0;
    const range = rangeOf(query);
    const { live, deleted } = overlay.of(user_id);
    const recent = live.filter(({ memory }) => range.has(memory.id));
    const wanted = filtered ? Number.POSITIVE_INFINITY : limit + deleted.size;
    const candidates = merged(walk({ ...range, userPart, wanted }, call), recent, deleted);
    const matching = async (chunk: readonly Candidate[]): Promise<Memory[]> => {
      const chunkIds = chunk.map(({ id }) => id);
      const records = await service.fetch(namespace, chunkIds, call);
      return chunk.flatMap(({ id, written }) => {
        const record = records.get(id);
        // Without a record it was deleted after it was listed, or is not shown by fetch yet.
        const memory = newest(written?.memory, record && toMemory(id, record.metadata, model));
        return memory?.user_id === user_id && tags.every((tag) => memory.tags.includes(tag)) ? [memory] : [];
      });
    };

    const found: Memory[] = [];
    for (let left = max_scan; ; ) {
      const size = filtered ? Math.min(CHUNK, left) : limit - found.length;
      const chunk = await take(candidates, size);
      found.push(...(await matching(chunk)));
      const isFull = found.length >= limit || countWithin(found, max_bytes) < found.length;
      if (isFull || chunk.length < size) return upToBytes(found.slice(0, limit), max_bytes, (memory) => memory);
      left -= chunk.length;
      if (filtered && left === 0) {
        if ((await candidates.next()).done) return found;
        throw invalidRequest(tooMany(max_scan));
      }
    }
  };
}

const tooMany = (max_scan: number): string =>
  `this page takes reading more than ${max_scan} memories, too few of them having the tag or scope; narrow the list by since and until, or lower limit`;

/** Where the query begins and ends, and which ids in between it means: exactly, for the id tells the time of its making. */
function rangeOf({ since, until, after }: ListQuery): Pick<Stretch, 'from' | 'to' | 'has' | 'resumed'> {
  const afterTime = after && timePart(Date.parse(after.created_at));
  const untilTime = timePart(until === undefined ? Number.POSITIVE_INFINITY : Date.parse(until));
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
  /** As this process wrote it lately. */
  readonly written?: Written;
}

/** The listed ids and what was written lately, in the order of lists, without what was deleted. */
async function* merged(
  walked: AsyncIterable<string>,
  recent: readonly Written[],
  deleted: ReadonlySet<string>,
): AsyncGenerator<Candidate, void> {
  const pending = recent.map((written) => ({ id: written.memory.id, written }));
  const known = new Set([...deleted, ...pending.map(({ id }) => id)]);
  let next = pending.shift();
  for await (const id of walked) {
    for (; next && listOrder(next.id, id) <= 0; next = pending.shift()) yield next;
    if (!known.has(id)) yield { id };
  }
  if (next) yield next;
  yield* pending;
}

/** The next few, fewer at the end. */
async function take<Item>(items: AsyncIterator<Item>, count: number): Promise<Item[]> {
  const taken: Item[] = [];
  while (taken.length < count) {
    const { done, value } = await items.next();
    if (done) break;
    taken.push(value);
  }
  return taken;
}
