import { type Call, GATEWAY, type Log } from '#contract';
import type { Run } from '../client/connections.ts';
import { keyPeriod } from './idempotency.ts';
import type { Names } from './names.ts';

export interface HousekeepingOptions {
  readonly run: Run;
  readonly names: Names;
  /** Days that an audit entry is kept; null: forever. */
  readonly retention_days: number | null;
  readonly log: Log;
  /** Milliseconds between two rounds, and before a failed round is retried. */
  readonly every_ms?: number;
  readonly retry_ms?: number;
}

const DAY_MS = 86_400_000;
const HOUR_MS = 3_600_000;
const MINUTE_MS = 60_000;
/** Rows deleted at a time, to keep the locks short. */
const BATCH = 1_000;

/**
 * Deletes expired audit entries and idempotency keys in the background. Any number of gateways may do so at the same time:
 * each skips rows that another one is deleting.
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

  const deleteExpired = async (table: string, column: string, compared: '<=' | '>', time: string) => {
    const text = `delete from ${table} where ctid = any(array(
        select ctid from ${table} where ${column} ${compared} $1 order by ${column} limit ${BATCH} for update skip locked)) returning 1`;
    while (!stop.signal.aborted && (await run(text, [time], call)).length > 0);
  };
  const round = async () => {
    if (retention_days !== null) {
      const expired = new Date(Date.now() - retention_days * DAY_MS).toISOString();
      await deleteExpired(names.auditLog, 'timestamp', '<=', expired);
    }
    const [after, until] = keyPeriod();
    await deleteExpired(names.onceKeys, 'created_at', '<=', after);
    await deleteExpired(names.onceKeys, 'created_at', '>', until);
  };
  const runRound = (): Promise<void> =>
    round().then(
      () => schedule(every_ms),
      (error: unknown) => {
        if (!stop.signal.aborted) log.warn({ err: error }, 'deleting expired rows failed; it will be retried');
        schedule(retry_ms);
      },
    );
  const schedule = (ms: number) => {
    if (stop.signal.aborted) return;
    timer = setTimeout(() => {
      running = runRound();
    }, ms).unref();
  };

  let running = runRound();
  return {
    async close() {
      stop.abort(new Error('closing'));
      clearTimeout(timer);
      await running;
    },
  };
}
