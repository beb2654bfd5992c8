import { LRUCache } from 'lru-cache';
import type { Call } from '#provider';
import { MAX_LISTED, type Service } from '../client/client.ts';
import { failureBehind } from '../client/pinecone-errors.ts';
import { EARLIEST_MS, type Namespaces, timeOf, timePart, userPrefix } from './ids.ts';

/** A range of a user's list. */
export interface Stretch {
  readonly userPart: string;
  /** First and last T of ids (`ids.ts`), both inclusive. */
  readonly from: string;
  readonly to: string;
  /** Whether an id in between belongs to the range. */
  readonly has: (id: string) => boolean;
  /** Whether this continues an earlier range: then remembered pages may be used. */
  readonly resumed: boolean;
  /** Number of ids that will probably be read. */
  readonly wanted: number;
}

/** Yields ids in the order of lists: newest first; in the same millisecond by id, descending. */
export type Walk = (stretch: Stretch, call: Call) => AsyncGenerator<string, void>;

const START = timePart(Number.POSITIVE_INFINITY);
const END = timePart(EARLIEST_MS);
/** Each page takes one request; each longer prefix may take up to 15 requests once it is read to its end. */
const NEAR_PAGES = 4;

/**
 * Reads Pinecone's list of ids from any position, without reading what lies before. Pinecone can start a list only at a
 * prefix, or continue it with a token from the page before:
 *
 * - Recent pages are remembered with the token that follows them, so the next page of a client mostly takes one request.
 * - Otherwise prefixes of the position are tried, each longer than the last, until one starts within a few pages of it.
 *   From there the following prefixes are read; they get shorter as their digits carry.
 *
 * Without this, a page in the middle of 10,000 memories would take up to a hundred requests.
 */
export function createWalk(service: Pick<Service, 'list'>, namespaces: Namespaces): Walk {
  const pages = rememberPages();

  return (stretch, call) => {
    const { userPart, from, has, resumed, wanted: count } = stretch;
    const namespace = namespaces.of(userPart);
    const base = userPrefix(userPart);
    const to = stretch.to < END ? stretch.to : END;
    let yieldedCount = 0;

    /** One more than needed, which shows whether the last one shares its millisecond with others. */
    const pageSize = (): number => {
      const rest = count + 1 - yieldedCount;
      return rest > 0 ? Math.min(rest, MAX_LISTED) : MAX_LISTED;
    };
    const startOf = (digits: string): Next => ({ digits, past: base + digits });
    const after = (digits: string): Next | undefined => {
      const next = following(digits);
      return next === undefined ? undefined : startOf(next);
    };
    const readPage = async ({ digits, token, past }: Next, limit: number): Promise<Page> => {
      const { ids, next } = await service.list(namespace, { prefix: base + digits, limit, token }, call);
      const last = ids.at(-1);
      const hasMore = next !== undefined && last !== undefined;
      const page = { past, ids, next: hasMore ? { digits, token: next, past: last } : after(digits) };
      pages.put(userPart, page);
      return page;
    };
    /** A page that holds the first id beyond a position, or ends right before it. */
    const enter = async (beyond: string): Promise<Page> => {
      const position = timeOf(beyond);
      const limit = position === START ? pageSize() : MAX_LISTED;
      for (let start = startOf(''); ; ) {
        const page = await readPage(start, limit);
        const last = page.ids.at(-1) ?? '';
        if (last > beyond || page.next?.token === undefined) return page;
        // A prefix that `last` shares starts before `last` too: only a longer one starts nearer to the position.
        start = isNear(page.ids, beyond)
          ? page.next
          : startOf(position.slice(0, sharedDigits(timeOf(last), position) + 1));
      }
    };
    async function* ascending(): AsyncGenerator<string, void> {
      let page = (resumed ? pages.covering(userPart, base + from) : undefined) ?? (await enter(base + from));
      let past = '';
      for (;;) {
        for (const id of page.ids) {
          if (timeOf(id) > to) return;
          if (id <= past || !has(id)) continue;
          yieldedCount += 1;
          yield id;
        }
        const { next } = page;
        if (!next || next.digits > to.slice(0, next.digits.length)) return;
        page = await readPage(next, pageSize()).catch((error) => {
          // How Pinecone rejects a token is not documented: after any rejection the list is entered again.
          if (next.token === undefined || failureBehind(error)?.kind !== 'rejected') throw error;
          return enter(next.past);
        });
        past = next.past;
      }
    }
    return newestFirst(ascending());
  };
}

/** The shortest digits after all that start with these. Undefined: there are none. */
function following(digits: string): string | undefined {
  const digitsToRaise = digits.replace(/(?<!f)f+$/, '');
  if (digitsToRaise === '') return undefined;
  return digitsToRaise.slice(0, -1) + (Number.parseInt(digitsToRaise.slice(-1), 16) + 1).toString(16);
}

/** Whether reading on reaches a position within a few pages, if ids are as dense up to there. */
function isNear(ids: readonly string[], position: string): boolean {
  const [first = 0, last = 0, target = 0] = [ids[0] ?? '', ids.at(-1) ?? '', position].map((id) =>
    Number(`0x${timeOf(id)}`),
  );
  return target - last <= NEAR_PAGES * (last - first);
}

/** Number of leading digits that two times share. */
function sharedDigits(a: string, b: string): number {
  let count = 0;
  while (count < a.length && a[count] === b[count]) count += 1;
  return count;
}

/** Byte order has the ids of one millisecond ascending; lists have them descending. */
async function* newestFirst(ascending: AsyncIterable<string>): AsyncGenerator<string, void> {
  let sameTime: string[] = [];
  for await (const id of ascending) {
    if (sameTime[0] !== undefined && timeOf(sameTime[0]) !== timeOf(id)) {
      yield* sameTime.reverse();
      sameTime = [];
    }
    sameTime.push(id);
  }
  yield* sameTime.reverse();
}

/** Where the next page starts. */
interface Next {
  /** It lists ids whose T starts with these digits. */
  readonly digits: string;
  /** From the page before; absent: at the first of these ids. */
  readonly token?: string;
  /** All ids of the page come after this. */
  readonly past: string;
}

/** A page of Pinecone's list: all ids between `past` and its last one. */
export interface Page {
  readonly past: string;
  readonly ids: readonly string[];
  /** Undefined after the last page. */
  readonly next: Next | undefined;
}

/** Recent pages: the only way to get a token again. */
export interface Pages {
  put(userPart: string, page: Page): void;
  /** The latest page that holds the ids right after a position. */
  covering(userPart: string, position: string): Page | undefined;
}

/** For all users together; an id takes about a hundred bytes. */
const MAX_REMEMBERED_IDS = 100_000;
/** For one user: more than the longest page of the protocol needs, with a refined scope. */
const MAX_REMEMBERED_PAGES = 16;
/** A remembered page may lack what another gateway created and Pinecone listed late. */
const REMEMBERED_MS = 5 * 60_000;

/** `clock`: monotonic milliseconds. */
export function rememberPages(clock: { now(): number } = performance): Pages {
  const users = new LRUCache<string, readonly Page[]>({
    maxSize: MAX_REMEMBERED_IDS,
    sizeCalculation: (pages) => pages.reduce((sum, { ids }) => sum + ids.length, 0),
    ttl: REMEMBERED_MS,
    // Otherwise the oldest page of a busy user would never expire.
    noUpdateTTL: true,
    perf: clock,
    ttlResolution: 0,
  });
  return {
    put: (userPart, page) => {
      if (page.ids.length > 0) {
        users.set(userPart, [page, ...(users.get(userPart) ?? [])].slice(0, MAX_REMEMBERED_PAGES));
      }
    },
    covering: (userPart, position) =>
      users.get(userPart)?.find(({ past, ids }) => past <= position && (ids.at(-1) as string) >= position),
  };
}
