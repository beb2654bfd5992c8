import {
  type AuditEntry,
  type AuditLog,
  type AuditQuery,
  type Call,
  GATEWAY,
  type KeptEntry,
  type Log,
  OmpError,
  type Verb,
} from '#contract';

/** What is known of the record or the query; filled in by the work as it learns more. */
export type Facts = { -readonly [Key in 'user_id' | 'memory_id' | 'scope']: AuditEntry[Key] };

export interface AuditTrail {
  /** Runs the work and notes how it went. Never delays or changes the answer. */
  audited<Result>(action: Verb, facts: Facts, call: Call, work: (facts: Facts) => Promise<Result>): Promise<Result>;
  /** Newest first, what was noted a moment ago included. Undefined: nothing is recorded. */
  readonly read: ((query: AuditQuery, call: Call) => Promise<KeptEntry[]>) | undefined;
  /** Writes what is waiting, within `LAST_MS`; what the backend does not take is lost, and the log says how much. */
  close(): Promise<void>;
}

export interface AuditTrailOptions {
  /** Undefined: nothing is recorded. */
  readonly audit: AuditLog | undefined;
  /** `writes` leaves out successful get, list, search, context and audit. */
  readonly record: 'all' | 'writes';
  readonly log: Log;
}

/** A larger one holds up what is sent to the backend behind it: measured with 500, the slowest reads took longer. */
const BATCH = 100;
const FLUSH_MS = 1_000;
/** Entries that may wait while the backend does not take them; what comes after is given up, and the log says so. */
const MOST_WAITING = 50_000;
const MOST_WAITING_BYTES = 32 * 1024 * 1024;
/** When the gateway stops there is nobody left to be held up. */
const LAST_BATCH = 1_000;
/** Attempts to write what is left when the gateway stops, and the pause between them, in milliseconds. */
const LAST_ATTEMPTS = 3;
const LAST_PAUSE_MS = 500;
/** Longest time for all of them, in milliseconds: less than what is given to any part of the gateway to close. */
const LAST_MS = 4_000;
/** Longest wait for one batch, in milliseconds. */
const RECORD_MS = 10_000;
/** UTF-16 units of any text in an entry: as much as a scope may have, more than anything else that callers may name. */
const MAX_TEXT = 1024;

/** Successful writes are recorded by the provider, together with the change. */
const BY_PROVIDER: ReadonlySet<Verb> = new Set(['add', 'update', 'delete']);

/** Records in batches what does not commit with a change: reads, and whatever failed. */
export function openAuditTrail({ audit, record, log }: AuditTrailOptions): AuditTrail {
  if (!audit) {
    return { audited: (_action, facts, _call, work) => work(facts), read: undefined, close: async () => {} };
  }
  let waiting: AuditEntry[] = [];
  let waitingBytes = 0;
  let lost = 0;
  let flushing: Promise<void> = Promise.resolve();
  let timer: NodeJS.Timeout | undefined;
  let closed = false;

  const flushOnce = async () => {
    clearTimeout(timer);
    timer = undefined;
    while (waiting.length > 0) {
      const batch = waiting.slice(0, closed ? LAST_BATCH : BATCH);
      await audit.record(batch, { signal: AbortSignal.timeout(RECORD_MS), requestId: 'audit', caller: GATEWAY });
      waiting = waiting.slice(batch.length);
      for (const entry of batch) waitingBytes -= sizeOf(entry);
    }
  };
  /** One at a time, so that entries stay in order. One whose answer was lost is written again rather than missed. */
  const flush = (): Promise<void> => {
    const turn = flushing.then(flushOnce);
    flushing = turn.catch((error: unknown) => {
      log.warn({ err: error, waiting: waiting.length }, 'audit entries could not be written; they will be tried again');
      schedule();
    });
    return turn;
  };
  const schedule = () => {
    if (!closed) timer ??= setTimeout(() => void flush().catch(() => {}), FLUSH_MS);
  };
  const writeRest = async () => {
    for (let attempt = 1; waiting.length > 0 && attempt <= LAST_ATTEMPTS; attempt++) {
      if (attempt > 1) await new Promise((resolve) => setTimeout(resolve, LAST_PAUSE_MS));
      await flush().catch(() => {});
    }
  };
  const note = (action: Verb, facts: Facts, call: Call, outcome: AuditEntry['outcome']) => {
    if (waiting.length >= MOST_WAITING || waitingBytes >= MOST_WAITING_BYTES) {
      if (lost++ % MOST_WAITING === 0) log.error({ lost }, 'audit entries are lost: the backend does not take them');
      return;
    }
    const entry: AuditEntry = {
      timestamp: new Date().toISOString(),
      app: storable(call.caller.app),
      action,
      user_id: storable(facts.user_id),
      memory_id: storable(facts.memory_id),
      scope: storable(facts.scope),
      request_id: call.requestId,
      outcome,
    };
    waiting.push(entry);
    waitingBytes += sizeOf(entry);
    if (waiting.length === BATCH) void flush().catch(() => {});
    else schedule();
  };

  return {
    async audited(action, facts, call, work) {
      let result: Awaited<ReturnType<typeof work>>;
      try {
        result = await work(facts);
      } catch (error) {
        note(action, facts, call, error instanceof OmpError ? error.code : 'provider_error');
        throw error;
      }
      if (!BY_PROVIDER.has(action) && record === 'all') note(action, facts, call, 'ok');
      return result;
    },
    async read(query, call) {
      const flushed = flush();
      await (call.unlessAborted ? call.unlessAborted(flushed) : flushed);
      return audit.read(query, call);
    },
    async close() {
      closed = true;
      clearTimeout(timer);
      let late: NodeJS.Timeout | undefined;
      const over = new Promise<void>((resolve) => {
        late = setTimeout(resolve, LAST_MS);
      });
      await Promise.race([writeRest(), over]);
      clearTimeout(late);
      if (waiting.length > 0) log.error({ lost: waiting.length }, 'audit entries are lost: the backend took none');
    },
  };
}

/** What it takes of memory, about. */
const sizeOf = ({ app, user_id, memory_id, scope, request_id }: AuditEntry): number =>
  [app, user_id, memory_id, scope, request_id].reduce((sum, text) => sum + 2 * (text?.length ?? 0), 200);

/** An entry that a backend cannot hold would keep all later ones waiting behind it. */
const storable = (text: string | null): string | null =>
  text && (text.length > MAX_TEXT || text.includes('\0') || !text.isWellFormed())
    ? text.slice(0, MAX_TEXT).replaceAll('\0', '').toWellFormed()
    : text;
