import { backgroundCall, type ChangeFilter, type Log, OmpError } from '#contract';
import { changeMatcher } from '#toolbox';
import type { Store } from './store.ts';

/** Lets requests wait for changes (Decision 51). One reader serves all of them, so waiting costs the backend nothing. */
export interface ChangeFeed {
  /** A change was made by this gateway. */
  changed(): void;
  /**
   * Begins to wait for matching changes, at most `ms`. What is read after this resolves need not be waited for. Rejects if the feed
   * cannot be read.
   */
  follow(filter: ChangeFilter, ms: number): Promise<Follower>;
  /** Requests that wait. */
  followers(): number;
  /** Whether the gateway is stopping. */
  readonly draining: boolean;
  /** Ends all waiting, because the gateway is stopping. */
  drain(): void;
}

export interface Follower {
  /** True: there may be a matching change since the last call. False: the time is over, or the gateway is stopping. */
  next(): Promise<boolean>;
  close(): void;
}

/** How often the feed is read for changes of other gateways, in milliseconds. */
const EVERY_MS = 1_000;
/** When it is read after a change of this gateway, in milliseconds: one read for the changes of this time. */
const SOON_MS = 20;
/** Changes of one read. If there are more, every follower looks by itself. */
const LIMIT = 500;
/** The longest wait while the gateway is stopping, in milliseconds. Answered at once, clients would ask again and again. */
const DRAINING_MS = 1_000;

interface Waiting {
  readonly matches: ReturnType<typeof changeMatcher>;
  /** Whether there was a change that `next` has not told yet. */
  woken: boolean;
  /** Whether the time is over. */
  ended: boolean;
  /** Lets `next` look at both, if it waits. */
  wake: () => void;
}

export function openChangeFeed({ changes }: Pick<Store, 'changes'>, log: Log): ChangeFeed {
  const waiting = new Set<Waiting>();
  /** Where the reader stands; undefined: it has not begun. */
  let position: string | undefined;
  let beginning: Promise<void> | undefined;
  let timer: NodeJS.Timeout | undefined;
  let reading = false;
  let dueSoon = false;
  let draining = false;

  const wake = (matches: (one: Waiting) => boolean) => {
    for (const one of [...waiting].filter(matches)) {
      one.woken = true;
      one.wake();
    }
  };
  const read = (after: string) =>
    changes?.({ after, users: null, within: null, limit: LIMIT }, backgroundCall('changes'));
  /** At most once at a time. */
  const begin = (): Promise<void> => {
    beginning ??= (async () => {
      position = (await read('now'))?.next;
    })().finally(() => {
      beginning = undefined;
    });
    return beginning;
  };
  const look = async () => {
    reading = true;
    dueSoon = false;
    try {
      if (position === undefined) {
        await begin();
        wake(() => true);
      } else {
        const part = await read(position);
        // If there is more, all look by themselves, and the reader goes on at the end.
        position = part?.more ? undefined : part?.next;
        wake(({ matches }) => position === undefined || part?.changes.some(matches) === true);
      }
    } catch (error) {
      // Each follower gets the error of its own cursor. Of any other failure, the next look may find the end.
      if (error instanceof OmpError && error.gone) position = undefined;
      else log.debug?.({ err: error }, 'the changes could not be read');
    }
    reading = false;
    schedule();
  };
  const schedule = () => {
    clearTimeout(timer);
    timer = undefined;
    if (waiting.size === 0) position = undefined;
    else if (!reading) timer = setTimeout(() => void look(), dueSoon ? SOON_MS : EVERY_MS).unref();
  };

  return {
    changed() {
      if (waiting.size === 0 || dueSoon) return;
      dueSoon = true;
      schedule();
    },
    async follow(filter, ms) {
      const one: Waiting = { matches: changeMatcher(filter), woken: false, ended: false, wake: () => {} };
      const end = () => {
        one.ended = true;
        one.wake();
      };
      const late = setTimeout(end, draining ? Math.min(ms, DRAINING_MS) : ms);
      const close = () => {
        clearTimeout(late);
        waiting.delete(one);
        end();
        if (waiting.size === 0) schedule();
      };
      waiting.add(one);
      try {
        if (position === undefined) await begin();
      } catch (error) {
        close();
        throw error;
      }
      if (!timer) schedule();
      const next = (): Promise<boolean> =>
        new Promise((resolve) => {
          one.wake = () => {
            if (!one.woken && !one.ended) return;
            one.wake = () => {};
            resolve(one.woken);
            one.woken = false;
          };
          one.wake();
        });
      return { next, close };
    },
    followers: () => waiting.size,
    get draining() {
      return draining;
    },
    drain() {
      draining = true;
      for (const one of waiting) {
        one.ended = true;
        one.wake();
      }
    },
  };
}
