import {
  backgroundCall,
  type Change,
  type ChangePart,
  type Delivery,
  type DeliveryOutcome,
  type Log,
  OmpError,
  type WebhookLease,
  type WebhookPatch,
  type WebhookStore,
} from '#contract';
import { changeMatcher, shownScope, withinMatcher } from '#toolbox';
import { type DeliveryTools, deliver, eventOf } from './delivery.ts';
import { createRetrySchedule, type ScheduledChange } from './retry-schedule.ts';

/** What the deliveries of all webhooks of a gateway share. */
export interface DeliveryContext extends DeliveryTools {
  readonly store: WebhookStore;
  readonly log: Log;
  /** Ends running deliveries. */
  readonly signal: AbortSignal;
  /** How long a pause after failures is, in milliseconds. Default: `pauseAfter` of the retry schedule. */
  readonly pause?: ((lasting: number) => number) | undefined;
  /** Reads the feed. */
  read(after: string): Promise<ChangePart>;
  count(outcome: DeliveryOutcome): void;
}

/** The deliveries for one webhook. No other webhook waits for them. */
export interface WebhookDeliveries {
  /** There may be new changes. */
  wake(): void;
  /** The age of the oldest change that is not delivered, in milliseconds. */
  lag(now: number): number;
  /** Starts nothing more. Resolves once running deliveries have ended and the progress is stored, or could not be stored. */
  end(): Promise<void>;
}

interface Item extends ScheduledChange {
  readonly change: Change;
}

/** How soon progress is stored, in milliseconds: after a delivery, and after changes that are outside the filter. */
const SAVE_MS = 500;
const SAVE_SKIPPED_MS = 60_000;
/** Pause after the store or the feed failed, in milliseconds. */
const RETRY_MS = 5_000;
/** Attempts that a webhook remembers. */
const REMEMBERED = 10;
/** Parts of the feed that are read to count what is not delivered, when deliveries stop. */
const MAX_COUNTED_PARTS = 50;

export function openWebhookDeliveries({ webhook, lease }: WebhookLease, context: DeliveryContext): WebhookDeliveries {
  const { store, log, signal, pause } = context;
  const { id } = webhook;
  const matches = matcherOf(webhook);
  const admits = withinMatcher(webhook.scope === null ? null : [webhook.scope]);
  const schedule = createRetrySchedule<Item>(webhook, pause);
  const running = new Set<Promise<void>>();
  let { deliveries } = webhook;
  /** Set when the deliveries have ended by themselves. */
  let ending: Pick<WebhookPatch, 'state' | 'undelivered'> = {};
  let ended = false;
  let reading = false;
  /** Whether the feed was read to its end, and no change was reported since. */
  let atEnd = false;

  const save = async () => {
    const failing = schedule.first?.failing_since;
    const failing_since = failing === undefined ? null : new Date(failing).toISOString();
    const patch = { cursor: schedule.cursor, failing_since, deliveries, ...ending };
    try {
      // Without the lease, nothing that is known here counts any more.
      if (!(await store.save({ id, lease, patch }, backgroundCall('webhooks')))) ended = true;
    } catch (err) {
      log.warn({ err, webhook_id: id }, 'the progress of a webhook could not be stored; it will be tried again');
      saving.in(RETRY_MS);
    }
  };
  const saving = createTimer(save);
  const stepping = createTimer(() => step());

  const read = async (after: string): Promise<void> => {
    reading = true;
    // A change that is reported meanwhile resets it.
    atEnd = true;
    try {
      const { changes, next, more } = await context.read(after);
      const items = changes.filter(matches).map((change) => toItem(change, admits));
      schedule.add(items, next);
      if (more) atEnd = false;
      if (items.length === 0 && next !== after) saving.in(SAVE_SKIPPED_MS);
    } catch (error) {
      atEnd = false;
      // The feed no longer reaches the cursor.
      if (error instanceof OmpError && error.gone) await stop('lost');
      else stepping.in(RETRY_MS);
      return;
    } finally {
      reading = false;
    }
    step();
  };
  const send = async (item: Item): Promise<void> => {
    const { retryAfter, ...delivery } = await deliver(webhook, eventOf(webhook, item.change), context, signal);
    context.count(delivery.outcome);
    deliveries = [delivery, ...deliveries].slice(0, REMEMBERED);
    if (delivery.outcome === 'delivered') {
      if (item.failing_since !== undefined) log.info({ webhook_id: id }, 'the deliveries of a webhook work again');
      schedule.delivered(item);
    } else {
      if (item.failing_since === undefined)
        log.warn(factsOf(id, delivery), 'a delivery of a webhook failed; it will be retried');
      schedule.failed(item, Date.now(), retryAfter);
      if (delivery.outcome === 'gone') await stop('gone');
      else if (schedule.isHopeless(Date.now())) await stop('given_up');
    }
    saving.in(SAVE_MS);
  };
  const step = () => {
    if (ended) return;
    if (!reading && !atEnd && !schedule.isFull) void read(schedule.readUntil);
    for (let item = schedule.take(Date.now()); item; item = schedule.take(Date.now())) {
      const sent = send(item)
        // The gateway stops: whether it was delivered is not known.
        .catch(() => {})
        .finally(() => {
          running.delete(sent);
          step();
        });
      running.add(sent);
    }
    const due = schedule.nextDue(Date.now());
    if (due !== undefined) stepping.in(due - Date.now());
  };
  /** Ends the deliveries until somebody resumes them. */
  const stop = async (state: 'gone' | 'given_up' | 'lost'): Promise<void> => {
    if (ended) return;
    ended = true;
    ending = { state, undelivered: schedule.undelivered + (state === 'lost' ? 0 : await countRest()) };
    log.error({ webhook_id: id, state, undelivered: ending.undelivered }, 'a webhook is not delivered any more');
    saving.in(0);
  };
  const countRest = async (): Promise<number> => {
    let count = 0;
    let part: ChangePart = { changes: [], next: schedule.readUntil, more: true };
    for (let i = 0; part.more && i < MAX_COUNTED_PARTS; i++) {
      part = await context.read(part.next).catch(() => ({ ...part, more: false }));
      count += part.changes.filter(matches).length;
    }
    return count;
  };

  step();
  return {
    wake() {
      atEnd = false;
      step();
    },
    lag: (now) => (schedule.first ? now - Date.parse(schedule.first.change.at) : 0),
    async end() {
      ended = true;
      stepping.clear();
      await Promise.all(running);
      if (saving.clear()) await save();
    },
  };
}

/** A function that tells whether a change is one of the webhook's. */
function matcherOf({
  users,
  scope,
  actions,
}: Pick<WebhookLease['webhook'], 'users' | 'scope' | 'actions'>): (change: Change) => boolean {
  const matches = changeMatcher({ users, within: scope === null ? null : [scope] });
  return (change) => (actions === null || actions.includes(change.action)) && matches(change);
}

/** With the scope that the webhook gets to know, and without the others, which only the filter reads: all that are pending could take 50 MB. */
const toItem = (change: Change, admits: (scope: string | null) => boolean): Item => {
  const { cursor, user_id } = change;
  return {
    change: { ...change, scope: shownScope(change, admits), left_scopes: [] },
    cursor,
    user_id,
    state: 'waiting',
    failing_since: undefined,
    due: 0,
  };
};

/** What the log says: the address may hold a secret. */
const factsOf = (webhook_id: string, { outcome, status }: Delivery) => ({ webhook_id, outcome, status });

/** Runs the work once, after the shortest of the times that were asked for since it last ran. */
function createTimer(work: () => unknown) {
  let timer: NodeJS.Timeout | undefined;
  let at = Number.POSITIVE_INFINITY;
  const clear = (): boolean => {
    const was = timer !== undefined;
    clearTimeout(timer);
    timer = undefined;
    at = Number.POSITIVE_INFINITY;
    return was;
  };
  return {
    in(ms: number) {
      const time = Date.now() + ms;
      if (time >= at) return;
      clear();
      at = time;
      timer = setTimeout(() => {
        clear();
        work();
      }, ms).unref();
    },
    /** Whether work was due. */
    clear,
  };
}
