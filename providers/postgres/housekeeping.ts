import { type Call, GATEWAY, type Log } from '#contract';
import type { Run } from './client/connections.ts';
import type { Names } from './names.ts';
import { onceKnown } from './once.ts';

export interface HousekeepingOptions {
  readonly run: Run;
  readonly names: Names;
  /** Days an audit entry is kept; null: for ever. */
  readonly retention_days: number | null;
  readonly log: Log;
  /** Milliseconds between two rounds, and before a round that failed is tried again. */
  readonly every_ms?: number;
  readonly retry_ms?: number;
}

const DAY_MS = 86_400_000;
const HOUR_MS = 3_600_000;
const MINUTE_MS = 60_000;
/** Rows deleted at a time, so that the locks are short and others have their turn. */
const BATCH = 1_000;

/**
 * Deletes, in the background, audit entries past their time and keys of repeatable adds that are forgotten anyway. Any
 * number of gateways may do so at once: each takes rows that no other one is deleting.
 */
export function startHousekeeping({
  run,
  names,
  retention_days,
  log,
  every_ms = HOUR_MS,
  retry_ms = MINUTE_MS,
}: HousekeepingOptions): { close(): Promise<void> } {
  const stop = new AbortController();
  const call: Call = { signal: stop.signal, requestId: 'housekeeping', caller: GATEWAY };
  let timer: NodeJS.Timeout | undefined;

  const deleteWhere = async (table: string, column: string, compared: '<=' | '>', time: string) => {
    const text = `delete from ${table} where ctid = any(array(
        select ctid from ${table} where ${column} ${compared} $1 order by ${column} limit ${BATCH} for update skip locked)) returning 1`;
    while (!stop.signal.aborted && (await run(text, [time], call)).length > 0);
  };
  const round = async () => {
    if (retention_days !== null) {
      const expired = new Date(Date.now() - retention_days * DAY_MS).toISOString();
      await deleteWhere(names.auditLog, 'timestamp', '<=', expired);
    }
    const [after, until] = onceKnown();
    await deleteWhere(names.onceKeys, 'created_at', '<=', after);
    await deleteWhere(names.onceKeys, 'created_at', '>', until);
  };
  const next = (): Promise<void> =>
    round().then(
      () => later(every_ms),
      (error: unknown) => {
        if (!stop.signal.aborted)
          log.warn({ err: error }, 'deleting what is past its time failed; it will be tried again');
        later(retry_ms);
      },
    );
  const later = (ms: number) => {
    if (stop.signal.aborted) return;
    timer = setTimeout(() => {
      running = next();
    }, ms).unref();
  };

  let running = next();
  return {
    async close() {
      stop.abort(new Error('closing'));
      clearTimeout(timer);
      await running;
    },
  };
}
