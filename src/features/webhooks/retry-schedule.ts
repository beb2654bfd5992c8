import type { StoredWebhook } from '#contract';

/** A change on its way to a receiver. */
export interface ScheduledChange {
  /** The cursor after it. */
  readonly cursor: string;
  readonly user_id: string;
  state: 'waiting' | 'sending' | 'delivered';
  /** Since when attempts fail, in epoch milliseconds; undefined: none has failed. */
  failing_since: number | undefined;
  /** When it may be sent, in epoch milliseconds. */
  due: number;
}

/** Changes that one webhook may hold between its cursor and the last change that was read. */
const MAX_PENDING = 1_000;
/** Deliveries at a time while the receiver works; else one. */
const CONCURRENCY = 4;
/** Failures in a row after which the receiver, not a change, is at fault. */
const FAILURES_OF_RECEIVER = 3;
/** A pause is as long as the failures last, within these bounds: it doubles. In milliseconds. */
const [SHORTEST_PAUSE_MS, LONGEST_PAUSE_MS] = [5_000, 3_600_000];
/** How long failures may last before the deliveries stop. */
const GIVE_UP_MS = 86_400_000;

/** A pause after failures that began `lasting` milliseconds ago, with jitter. */
export const pauseAfter = (lasting: number): number =>
  Math.min(LONGEST_PAUSE_MS, Math.max(SHORTEST_PAUSE_MS, lasting)) * (0.75 + Math.random() / 2);

/** What a webhook has read of the feed and not stored as delivered, and what may be sent next. No I/O. */
export interface RetrySchedule<Item extends ScheduledChange> {
  /** Every change up to here was delivered. */
  readonly cursor: string;
  /** Where the feed is read on. */
  readonly readUntil: string;
  readonly isFull: boolean;
  /** The change after the cursor; undefined: everything that was read is delivered. */
  readonly first: Item | undefined;
  /** Changes that were read and not delivered. */
  readonly undelivered: number;
  /** Adds what was read. `next`: the cursor after it, and after changes that are outside the filter. */
  add(items: readonly Item[], next: string): void;
  /** The oldest change that may be sent now: of each user one at a time, in order. It counts as sending. */
  take(now: number): Item | undefined;
  delivered(item: Item): void;
  /** `retryAfter`: seconds that the receiver asks to wait. */
  failed(item: Item, now: number, retryAfter?: number): void;
  /** When a change may be sent next, in epoch milliseconds; undefined: none waits for time. */
  nextDue(now: number): number | undefined;
  /** Whether the change after the cursor has failed for a day. */
  isHopeless(now: number): boolean;
}

export function createRetrySchedule<Item extends ScheduledChange>(
  webhook: Pick<StoredWebhook, 'cursor' | 'failing_since'>,
  pause = pauseAfter,
): RetrySchedule<Item> {
  const items: Item[] = [];
  let { cursor } = webhook;
  let readUntil = cursor;
  /** Of the change after the cursor, as another gateway has left it. */
  let inherited = webhook.failing_since === null ? undefined : Date.parse(webhook.failing_since);
  /** Of the receiver: failures since the last success, when they began, and when it may be tried again. */
  let failures = inherited === undefined ? 0 : FAILURES_OF_RECEIVER;
  let failingSince = inherited;
  let resting = 0;
  let sending = 0;

  const works = () => {
    failures = 0;
    failingSince = undefined;
    resting = 0;
  };
  /** The first change of each user that is not being sent. */
  const heads = (): Item[] => {
    const users = new Set<string>();
    return items.filter((item) => {
      if (item.state === 'delivered' || users.has(item.user_id)) return false;
      users.add(item.user_id);
      return item.state === 'waiting';
    });
  };
  const ended = (item: Item, state: ScheduledChange['state']) => {
    item.state = state;
    sending--;
  };
  return {
    get cursor() {
      return cursor;
    },
    get readUntil() {
      return readUntil;
    },
    get isFull() {
      return items.length >= MAX_PENDING;
    },
    get first() {
      return items[0];
    },
    get undelivered() {
      return items.filter(({ state }) => state !== 'delivered').length;
    },
    add(more, next) {
      readUntil = next;
      const [head] = more;
      if (items.length === 0 && head) {
        head.failing_since = inherited;
        inherited = undefined;
      }
      items.push(...more);
      if (items.length === 0) cursor = next;
    },
    take(now) {
      if (sending >= (failures > 0 ? 1 : CONCURRENCY) || now < resting) return undefined;
      const item = heads().find(({ due }) => due <= now);
      if (!item) return undefined;
      item.state = 'sending';
      sending++;
      return item;
    },
    delivered(item) {
      ended(item, 'delivered');
      works();
      while (items[0]?.state === 'delivered') cursor = (items.shift() as Item).cursor;
      if (items.length === 0) cursor = readUntil;
    },
    failed(item, now, retryAfter = 0) {
      ended(item, 'waiting');
      failures++;
      failingSince ??= now;
      item.failing_since ??= now;
      item.due = now + pause(now - item.failing_since);
      const rest = failures >= FAILURES_OF_RECEIVER ? pause(now - failingSince) : 0;
      resting = now + Math.max(rest, Math.min(retryAfter * 1_000, LONGEST_PAUSE_MS));
    },
    nextDue(now) {
      const later = heads().flatMap(({ due }) => (Math.max(due, resting) > now ? [Math.max(due, resting)] : []));
      return later.length > 0 ? Math.min(...later) : undefined;
    },
    isHopeless: (now) => now - (items[0]?.failing_since ?? now) >= GIVE_UP_MS,
  };
}
