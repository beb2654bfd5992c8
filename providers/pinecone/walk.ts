import { type Call, OmpError } from '#contract';
import { Failure } from './failure.ts';
import { EARLIEST_MS, timeOf, timePart, userPrefix } from './ids.ts';
import { type Cut, type Page, rememberPages } from './pages.ts';
import type { Namespaces } from './parts.ts';
import { MAX_LISTED, type Service } from './service.ts';

/** A part of a user's list. */
export interface Stretch {
  readonly userPart: string;
  /** Where it begins and ends: T of ids, both inclusive. */
  readonly from: string;
  readonly to: string;
  /** Whether an id in between belongs to it. */
  readonly has: (id: string) => boolean;
  /** Whether it goes on where an earlier one ended: then what was listed ahead may be used. */
  readonly resumed: boolean;
  /** How many ids are likely to be needed. */
  readonly wanted: number;
}

/** Gives ids in the order of lists: newest first, of one millisecond by id descending. */
export type Walk = (stretch: Stretch, call: Call) => AsyncGenerator<string, void>;

const START = timePart(Number.POSITIVE_INFINITY);
const END = timePart(EARLIEST_MS);
/** Reading on takes a request a page; each digit more may take up to 15 of them once its prefix is read to the end. */
const NEAR_PAGES = 4;

/**
 * Walks the service's own list from any place on, without reading what lies before. The service lets a list begin at a
 * prefix, or go on with a token that it gave:
 *
 * - pages read lately are remembered with the token behind them, so that the usual next page takes one request;
 * - otherwise ever longer prefixes of the place are tried, until one begins so near that a few pages reach the place.
 *   From there the prefixes that follow are read, ever shorter ones as their digits carry.
 */
export function createWalk(service: Pick<Service, 'list'>, namespaces: Namespaces): Walk {
  const pages = rememberPages();

  return (stretch, call) => {
    const { userPart, from, has, resumed, wanted } = stretch;
    const namespace = namespaces.of(userPart);
    const base = userPrefix(userPart);
    const to = stretch.to < END ? stretch.to : END;
    let given = 0;

    /** One more than needed shows whether the last one shares its millisecond with others. */
    const fitting = (): number => {
      const needed = wanted + 1 - given;
      return needed > 0 ? Math.min(needed, MAX_LISTED) : MAX_LISTED;
    };
    const atFirst = (digits: string): Cut => ({ digits, past: base + digits });
    const after = (digits: string): Cut | undefined => {
      const next = following(digits);
      return next === undefined ? undefined : atFirst(next);
    };
    const read = async ({ digits, token, past }: Cut, limit: number): Promise<Page> => {
      const { ids, next } = await service.list(namespace, { prefix: base + digits, limit, token }, call);
      const last = ids.at(-1);
      const goesOn = next !== undefined && last !== undefined;
      const page = { past, ids, next: goesOn ? { digits, token: next, past: last } : after(digits) };
      pages.put(userPart, page);
      return page;
    };
    /** A page that has the first id beyond, or ends right before it. */
    const enter = async (beyond: string): Promise<Page> => {
      const place = timeOf(beyond);
      const limit = place === START ? fitting() : MAX_LISTED;
      for (let cut = atFirst(''); ; ) {
        const page = await read(cut, limit);
        const last = page.ids.at(-1) ?? '';
        if (last > beyond || page.next?.token === undefined) return page;
        // What the digits of both begin with begins before `last` too: only a longer prefix begins nearer.
        cut = isNear(page.ids, beyond) ? page.next : atFirst(place.slice(0, shared(timeOf(last), place) + 1));
      }
    };
    async function* ascending(): AsyncGenerator<string, void> {
      let page = (resumed ? pages.covering(userPart, base + from) : undefined) ?? (await enter(base + from));
      let past = '';
      for (;;) {
        for (const id of page.ids) {
          if (timeOf(id) > to) return;
          if (id <= past || !has(id)) continue;
          given += 1;
          yield id;
        }
        const { next } = page;
        if (!next || next.digits > to.slice(0, next.digits.length)) return;
        page = await read(next, fitting()).catch((error) => {
          if (next.token === undefined || !isRefusal(error)) throw error;
          return enter(next.past);
        });
        past = next.past;
      }
    }
    return tiesReversed(ascending());
  };
}

/** The next digits after all that begin with these, as few as that takes. */
function following(digits: string): string | undefined {
  const kept = digits.replace(/(?<!f)f+$/, '');
  if (kept === '') return undefined;
  return kept.slice(0, -1) + (Number.parseInt(kept.slice(-1), 16) + 1).toString(16);
}

/** Whether a place behind these ids is to be reached by reading on, if what lies between is as dense. */
function isNear(ids: readonly string[], place: string): boolean {
  const [first = 0, last = 0, there = 0] = [ids[0] ?? '', ids.at(-1) ?? '', place].map((id) =>
    Number(`0x${timeOf(id)}`),
  );
  return there - last <= NEAR_PAGES * (last - first);
}

/** How many digits two times have in common, from the first on. */
function shared(a: string, b: string): number {
  let count = 0;
  while (count < a.length && a[count] === b[count]) count += 1;
  return count;
}

/** How the service says that it does not take a token is not established: whatever it has against one, the list is entered anew. */
const isRefusal = (error: unknown): boolean =>
  error instanceof OmpError && error.cause instanceof Failure && error.cause.kind === 'refused';

/** From byte order, in which those of one millisecond ascend. */
async function* tiesReversed(ascending: AsyncIterable<string>): AsyncGenerator<string, void> {
  let tied: string[] = [];
  for await (const id of ascending) {
    if (tied[0] !== undefined && timeOf(tied[0]) !== timeOf(id)) {
      yield* tied.reverse();
      tied = [];
    }
    tied.push(id);
  }
  yield* tied.reverse();
}
