import {
  type AuditAction,
  type AuditEntry,
  type AuditLog,
  type AuditQuery,
  backgroundCall,
  type Call,
  type Log,
  OmpError,
  type StoredEntry,
} from '#contract';

/** The record or query of an audit entry. The work completes it once the record is known. */
export type AuditFacts = { -readonly [Key in 'user_id' | 'memory_id' | 'scope']: AuditEntry[Key] };

/** The entry concerns no single user or memory. */
export const NO_FACTS: AuditFacts = Object.freeze({ user_id: null, memory_id: null, scope: null });

export interface AuditQueue {
  /** Runs the work and queues an audit entry with its outcome. Never delays or changes the result. */
  audited<Result>(
    action: AuditAction,
    facts: AuditFacts,
    call: Call,
    work: (facts: AuditFacts) => Promise<Result>,
  ): Promise<Result>;
  /** Writes the queued entries. */
  flush(call: Call): Promise<void>;
  /** Newest first, including queued entries. Undefined: auditing is off. */
  readonly read: ((query: AuditQuery, call: Call) => Promise<StoredEntry[]>) | undefined;
  /**
   * Writes the queued entries within `CLOSE_MS`. Entries that the backend does not accept are lost and their number is
   * logged.
   */
  close(): Promise<void>;
}

export interface AuditQueueOptions {
  /** Undefined: auditing is off. */
  readonly audit: AuditLog | undefined;
  /** `writes` leaves out successful reads. */
  readonly record: 'all' | 'writes';
  readonly log: Log;
}

/** Entries per batch. A larger batch delays other requests to the backend: with 500, the slowest reads took longer. */
const BATCH = 100;
const FLUSH_MS = 1_000;
/** Longest queue while the backend accepts no entries. Further entries are dropped, and the log says so. */
const MAX_QUEUED = 50_000;
const MAX_QUEUED_BYTES = 32 * 1024 * 1024;
/** Entries per batch on close, when a batch delays no other request. */
const LAST_BATCH = 1_000;
/** Attempts to write the queue on close, and the pause between them in milliseconds. */
const LAST_ATTEMPTS = 3;
const LAST_PAUSE_MS = 500;
/** Deadline of all attempts, in milliseconds: less than the deadline of the shutdown for one part of the gateway. */
const CLOSE_MS = 4_000;
/** Longest text in an entry, in UTF-16 units: the longest scope, and longer than any other valid field. */
const MAX_TEXT = 1024;

/**
 * The provider writes the entries of these if they succeed, in one transaction with the change. An import has an entry of its own
 * besides those of its memories.
 */
const BY_PROVIDER: ReadonlySet<AuditAction> = new Set(['add', 'update', 'delete', 'erase', 'purge']);
/** Changes that belong to no memory, or to many. */
const BY_ADMIN: ReadonlySet<AuditAction> = new Set([
  ...(['create_key', 'revoke_key', 'freeze', 'unfreeze', 'rollback', 'retention'] as const),
  ...(['create_webhook', 'delete_webhook', 'resume_webhook', 'rotate_webhook'] as const),
]);

/** Writes in batches the entries that do not belong to a change: those of reads and of failures. */
export function openAuditQueue({ audit, record, log }: AuditQueueOptions): AuditQueue {
  if (!audit) {
    return {
      audited: (_action, facts, _call, work) => work(facts),
      flush: async () => {},
      read: undefined,
      close: async () => {},
    };
  }
  let queue: AuditEntry[] = [];
  let queuedBytes = 0;
  let losses = 0;
  let flushing: Promise<void> = Promise.resolve();
  let timer: NodeJS.Timeout | undefined;
  let closed = false;

  const flushOnce = async () => {
    clearTimeout(timer);
    timer = undefined;
    let rest = queue.length;
    // Entries that come meanwhile wait until they fill a batch, or for the timer.
    while (rest > 0 || queue.length >= BATCH) {
      const batch = queue.slice(0, closed ? LAST_BATCH : BATCH);
      await audit.record(batch, backgroundCall('audit'));
      queue = queue.slice(batch.length);
      rest -= batch.length;
      for (const entry of batch) queuedBytes -= sizeOf(entry);
    }
    if (queue.length > 0) schedule();
  };
  /** One batch at a time, so that entries stay in order. A batch whose response is lost is written again. */
  const flush = (): Promise<void> => {
    const turn = flushing.then(flushOnce);
    flushing = turn.catch((error: unknown) => {
      log.warn({ err: error, queue_length: queue.length }, 'audit entries could not be written; they will be retried');
      schedule();
    });
    return turn;
  };
  const schedule = () => {
    if (!closed) timer ??= setTimeout(() => void flush().catch(() => {}), FLUSH_MS);
  };
  const writeQueued = async () => {
    for (let attempt = 1; queue.length > 0 && attempt <= LAST_ATTEMPTS; attempt++) {
      if (attempt > 1) await new Promise((resolve) => setTimeout(resolve, LAST_PAUSE_MS));
      await flush().catch(() => {});
    }
  };
  const enqueue = (action: AuditAction, facts: AuditFacts, call: Call, outcome: AuditEntry['outcome']) => {
    if (queue.length >= MAX_QUEUED || queuedBytes >= MAX_QUEUED_BYTES) {
      if (losses++ % MAX_QUEUED === 0)
        log.error({ lost: losses }, 'audit entries are lost: the backend does not accept them');
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
    queue.push(entry);
    queuedBytes += sizeOf(entry);
    if (queue.length === BATCH) void flush().catch(() => {});
    else schedule();
  };

  return {
    async audited(action, facts, call, work) {
      let result: Awaited<ReturnType<typeof work>>;
      try {
        result = await work(facts);
      } catch (error) {
        enqueue(action, facts, call, error instanceof OmpError ? error.code : 'provider_error');
        throw error;
      }
      if (BY_ADMIN.has(action) || (!BY_PROVIDER.has(action) && record === 'all')) enqueue(action, facts, call, 'ok');
      return result;
    },
    flush: (call) => call.unlessAborted(flush()),
    async read(query, call) {
      await call.unlessAborted(flush());
      return audit.read(query, call);
    },
    async close() {
      closed = true;
      clearTimeout(timer);
      let closeTimer: NodeJS.Timeout | undefined;
      const deadline = new Promise<void>((resolve) => {
        closeTimer = setTimeout(resolve, CLOSE_MS);
      });
      await Promise.race([writeQueued(), deadline]);
      clearTimeout(closeTimer);
      if (queue.length > 0)
        log.error({ lost: queue.length }, 'audit entries are lost: the backend did not accept them before shutdown');
    },
  };
}

/** Approximate size of an entry in memory, in bytes. */
const sizeOf = ({ app, user_id, memory_id, scope, request_id }: AuditEntry): number =>
  [app, user_id, memory_id, scope, request_id].reduce((sum, text) => sum + 2 * (text?.length ?? 0), 200);

/** Makes a text valid for every backend. An entry that a backend rejects would block all later ones. */
const storable = (text: string | null): string | null =>
  text && (text.length > MAX_TEXT || text.includes('\0') || !text.isWellFormed())
    ? text.slice(0, MAX_TEXT).replaceAll('\0', '').toWellFormed()
    : text;
