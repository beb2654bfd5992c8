import { LRUCache } from 'lru-cache';

/** Where the service's list goes on. */
export interface Cut {
  /** It goes on among what begins with these digits of T. */
  readonly digits: string;
  /** As the service gave it; absent: at the beginning of these. */
  readonly token?: string;
  /** Nothing up to here is among what comes. */
  readonly past: string;
}

/** A page of the service's list: everything between `past` and its last id. */
export interface Page {
  readonly past: string;
  readonly ids: readonly string[];
  /** Undefined: nothing comes any more. */
  readonly next: Cut | undefined;
}

/** Pages read lately, so that a list goes on where it was: a token cannot be had otherwise. */
export interface Pages {
  put(userPart: string, page: Page): void;
  /** The latest page that has the beginning of what follows a place. */
  covering(userPart: string, place: string): Page | undefined;
}

/** Over all users; an id takes about a hundred bytes. */
const MOST_IDS = 100_000;
/** Of one user: more than the longest page of the protocol and its refining take. */
const MOST_PAGES = 16;
/** While a page is used, what another gateway made and the service listed late is missing from it. */
const LIFETIME_MS = 5 * 60_000;

/** `clock`: milliseconds, only ever forward. */
export function rememberPages(clock: { now(): number } = performance): Pages {
  const users = new LRUCache<string, readonly Page[]>({
    maxSize: MOST_IDS,
    sizeCalculation: (pages) => pages.reduce((sum, { ids }) => sum + ids.length, 0),
    ttl: LIFETIME_MS,
    // Else the oldest page of a busy user would live on.
    noUpdateTTL: true,
    perf: clock,
    ttlResolution: 0,
  });
  return {
    put: (userPart, page) => {
      if (page.ids.length > 0) users.set(userPart, [page, ...(users.get(userPart) ?? [])].slice(0, MOST_PAGES));
    },
    covering: (userPart, place) =>
      users.get(userPart)?.find(({ past, ids }) => past <= place && (ids.at(-1) as string) >= place),
  };
}
