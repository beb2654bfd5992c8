import { type Call, type Log, type Memory, OmpError, type Ref } from '#contract';
import { globMatcher } from '#toolbox';
import { NO_TIME } from '../../core/cursor.ts';
import type { ServiceKey } from '../../core/services.ts';
import type { Store, StorePart, StoreReads } from '../../core/store.ts';
import { partsIn } from '../../stores/mount-stores.ts';

/*
 * Deletes memories after a time, by rules (Decision 60).
 */

/** Memories that match scope and tag. */
export interface RetentionRule {
  /** Glob; undefined: any scope, and none. */
  readonly scope?: string | undefined;
  readonly tag?: string | undefined;
  /** Null: they are kept. */
  readonly days: number | null;
  /** The time from which the days count; default: `created_at`. */
  readonly by?: 'created_at' | 'updated_at' | undefined;
}

/** The rules of the configuration. */
export interface RetentionSettings {
  readonly retention: readonly RetentionRule[];
}

/** The first rule that a memory matches, by its place, and what becomes of the memory; `wait`: it is kept until it is old enough. */
export interface Verdict {
  readonly rule: number;
  readonly action: 'keep' | 'wait' | 'delete';
}

const DAY_MS = 86_400_000;

/** Decides about a memory at a time in epoch milliseconds; undefined: no rule matches it. */
export function judgeBy(rules: readonly RetentionRule[]): (memory: Memory, now: number) => Verdict | undefined {
  const matchers = rules.map(({ scope, tag }) => {
    const inScope = scope === undefined ? undefined : globMatcher(scope);
    return (memory: Memory) =>
      (!inScope || (memory.scope !== null && inScope(memory.scope))) &&
      (tag === undefined || memory.tags.includes(tag));
  });
  return (memory, now) => {
    const rule = matchers.findIndex((matches) => matches(memory));
    const found = rules[rule];
    if (!found) return undefined;
    const { days, by = 'created_at' } = found;
    if (days === null) return { rule, action: 'keep' };
    const time = memory[by];
    // The time of a memory whose store knows none.
    if (time === NO_TIME) return { rule, action: 'wait' };
    return { rule, action: Date.parse(time) <= now - days * DAY_MS ? 'delete' : 'wait' };
  };
}

/** Where a pass over all memories goes on: in the store at this place, after what `ExportPart.next` said. */
export interface RetentionPlace {
  readonly at: number;
  readonly after?: string | undefined;
}

interface RetentionStep {
  /** Memories that were looked at. */
  readonly looked: number;
  /** What was deleted, or would be. */
  readonly deleted: readonly { readonly memory: Memory; readonly rule: number }[];
  /** The rules of memories that a rule without days keeps, one for each. */
  readonly kept: readonly number[];
  /** Why memories could not be deleted, one for each: they stay until the next pass. */
  readonly failures: readonly OmpError[];
  /** Undefined: the pass is complete. */
  readonly next: RetentionPlace | undefined;
}

interface RetentionStats {
  /** Memories that were deleted since the start, and attempts that failed. */
  readonly deleted: number;
  readonly failed: number;
  /** When the last pass was complete, in epoch milliseconds; undefined: none was since the start. */
  readonly completed: number | undefined;
}

/** The rules of a gateway, on one of its stores. */
export interface Retention {
  readonly rules: readonly RetentionRule[];
  /**
   * Page after page of memories, with pauses: deletes those whose time is over, one after another. A memory that is changed meanwhile stays,
   * until a later pass looks at it, and so does one that cannot be deleted.
   */
  pass(request: PassRequest, call: Call): AsyncGenerator<RetentionStep>;
  readonly stats: () => RetentionStats;
  complete(): void;
}

export const RETENTION: ServiceKey<Retention> = { name: 'retention' };

interface PassRequest {
  /** The store as the caller changes it. */
  readonly store: Store;
  readonly from?: RetentionPlace | undefined;
  readonly dry_run: boolean;
  /** Throws unless the caller may delete the memory. */
  check?(memory: Memory): unknown;
}

/** Memories of a page, and its bytes: requests wait for no more than one page. */
export const PAGE = { limit: 200, max_bytes: 1024 * 1024 };
const sleep = (ms: number) => new Promise((resolve) => setTimeout(resolve, ms));
/** After so many failures one after another, a page is left: the store takes no deletes. */
const FAILURES = 10;
/** How long a pass rests after a page, compared with the time that the page took. */
const REST = 3;

/** Whether the memories of a store can be walked over and deleted. */
export const canRetain = ({ export: exportPart, delete: remove }: Pick<StoreReads, 'export' | 'delete'>): boolean =>
  exportPart !== undefined && remove !== undefined;

/** Undefined: there are no rules. Throws if no store can obey them; the log names those that cannot. */
export function openRetention(rules: readonly RetentionRule[], store: Store, log: Log): Retention | undefined {
  if (rules.length === 0) return undefined;
  const parts = partsIn(store);
  const unable = parts.filter((part) => !canRetain(part.store)).map(({ name }) => name);
  if (unable.length === parts.length) throw new Error(CANNOT);
  if (unable.length > 0) log.warn({ stores: unable }, 'retention does not reach these stores: all their memories stay');
  const isTimeless = ({ store }: StorePart) =>
    canRetain(store) && store.capabilities.mapped && !store.capabilities.temporal;
  const timeless = parts.filter(isTimeless).map(({ name }) => name);
  if (timeless.length > 0 && rules.some(({ days, by = 'created_at' }) => days !== null && by === 'created_at'))
    log.warn({ stores: timeless }, 'these stores have no times of creation: rules by created_at delete nothing there');
  return createRetention(rules);
}

const CANNOT =
  'retention (OMP_RETENTION) has no effect: it needs a store that exports and deletes; a mapped table needs OMP_MAPPING_WRITABLE, a mapped index OMP_PINECONE_WRITABLE and ids that can be listed, a mapped collection its setting …_WRITABLE; else remove the rules';

export function createRetention(rules: readonly RetentionRule[]): Retention {
  const judge = judgeBy(rules);
  let deletions = 0;
  let failed = 0;
  let completed: number | undefined;
  /** The memories at which a pass was stopped, since the last complete one: the next time it goes on beyond them. */
  const stoppedAt = new Set<string>();
  const step = async (
    part: StorePart,
    { store, from, dry_run, check = () => {} }: PassRequest,
    call: Call,
  ): Promise<Omit<RetentionStep, 'next'> & { readonly after: string | undefined }> => {
    const { items = [], next: after } = (await pageOf(part, from?.after, call)) ?? {};
    const deleted: { memory: Memory; rule: number }[] = [];
    const kept: number[] = [];
    const failures: OmpError[] = [];
    let inARow = 0;
    for (const { memory } of items) {
      const verdict = judge(memory, Date.now());
      if (verdict?.action === 'keep') kept.push(verdict.rule);
      if (verdict?.action !== 'delete') continue;
      check(memory);
      if (!dry_run) {
        // The store gives its parts calls of their own.
        const removal = () =>
          remove({ store, part: part.store, memory, judge }, call).catch((error) => {
            if (call.aborted || !(error instanceof OmpError) || isOfStore(error, stoppedAt.has(memory.id))) {
              stoppedAt.add(memory.id);
              throw error;
            }
            return error;
          });
        const done = await part.ask(call, removal);
        // It is optional and failed: those after it come next.
        if (!done) return { looked: items.length, deleted, kept, failures, after: undefined };
        if (done.result instanceof OmpError) {
          failures.push(done.result);
          failed++;
          inARow = stoppedAt.has(memory.id) ? 0 : inARow + 1;
          if (inARow === FAILURES) {
            stoppedAt.add(memory.id);
            throw done.result;
          }
        } else inARow = 0;
        if (done.result !== true) continue;
        deletions++;
      }
      deleted.push({ memory, rule: verdict.rule });
    }
    return { looked: items.length, deleted, kept, failures, after };
  };
  return {
    rules,
    async *pass(request, call) {
      const parts = partsIn(request.store);
      let place: RetentionPlace | undefined = rules.length === 0 ? undefined : (request.from ?? { at: 0 });
      for (let part = place && parts[place.at]; place && part; part = place && parts[place.at]) {
        const began = performance.now();
        const { after, ...done } = await step(part, { ...request, from: place }, call);
        if (after !== undefined) place = { at: place.at, after };
        else place = place.at + 1 < parts.length ? { at: place.at + 1 } : undefined;
        yield { ...done, next: place };
        if (place) await call.unlessAborted(sleep(REST * (performance.now() - began)));
      }
    },
    stats: () => ({ deleted: deletions, failed, completed }),
    complete() {
      stoppedAt.clear();
      completed = Date.now();
    },
  };
}

/** A page of one store; undefined: the store cannot be walked over, or is optional and failed, and the answer says so. */
async function pageOf(part: StorePart, after: string | undefined, call: Call) {
  const { export: exportPart } = part.store;
  if (!exportPart || !canRetain(part.store)) {
    call.leaveOut('x-without', part.name);
    return undefined;
  }
  const found = await part.ask(call, (own) => exportPart({ after, vectors: false, ...PAGE }, own));
  return found?.result;
}

interface Deletion {
  readonly store: Store;
  readonly part: StoreReads;
  readonly memory: Memory;
  readonly judge: ReturnType<typeof judgeBy>;
}

/** False: it was changed or deleted meanwhile. */
async function remove({ store, part, memory, judge }: Deletion, call: Call): Promise<boolean> {
  const { id, user_id, updated_at } = memory;
  const ref: Ref = { id, users: [user_id], within: null };
  if (!part.capabilities.etags) {
    const now = await store.get(ref, call);
    if (!now || judge(now, Date.now())?.action !== 'delete') return false;
  }
  try {
    const versions = part.capabilities.etags ? [updated_at] : undefined;
    return (await store.delete?.({ ...ref, versions }, call)) ?? false;
  } catch (error) {
    if (error instanceof OmpError && error.version !== undefined) return false;
    throw error;
  }
}

/** Whether the store takes no changes at the moment, so that those after it would fail too. A time-out (`down`) may be of one memory alone. */
const isOfStore = ({ down, retryAfter, code }: OmpError, again: boolean): boolean =>
  (down && !again) || retryAfter !== undefined || code === 'rate_limited';
