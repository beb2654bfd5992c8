import { type AuditOptions, backgroundCall, type Log, type VersionOptions } from '#provider';
import type { Run } from '../client/connections.ts';
import { shardsWith } from '../scaling/shards.ts';
import { conditions } from '../sql/conditions.ts';
import { part, withParts } from '../sql/parts.ts';
import { insertChangeEntry } from './change-statement.ts';
import { keyPeriod } from './idempotency.ts';
import type { Names } from './names.ts';

export interface HousekeepingOptions {
  readonly run: Run;
  readonly names: Names;
  /** Undefined: auditing is off. */
  readonly audit: AuditOptions | undefined;
  /** Undefined: no versions are kept. */
  readonly versions?: VersionOptions | undefined;
  /** Days after `valid_to` until a memory is deleted; undefined: never. */
  readonly purge_expired_days?: number | undefined;
  readonly log: Log;
  /** Milliseconds between two rounds, and before a failed round is retried. */
  readonly every_ms?: number;
  readonly retry_ms?: number;
}

const daysAgo = (days: number): string => new Date(Date.now() - days * DAY_MS).toISOString();
const DAY_MS = 86_400_000;
const HOUR_MS = 3_600_000;
const MINUTE_MS = 60_000;
/** Days for which the usage of the embedding service is kept: a year and a month. */
const USAGE_DAYS = 400;
/** Rows deleted at a time, to keep the locks short. */
const BATCH = 1_000;

/**
 * Deletes expired audit entries, versions, usage, idempotency keys and memories in the background. Any number of gateways may do so at the same time:
 * each skips rows that another one is deleting; on Citus it waits, and finds them deleted.
 */
export function startHousekeeping({
  run,
  names,
  audit,
  versions,
  purge_expired_days,
  log,
  every_ms = HOUR_MS,
  retry_ms = MINUTE_MS,
}: HousekeepingOptions): { close(): Promise<void> } {
  const stop = new AbortController();
  const call = backgroundCall('housekeeping', stop.signal);
  let timer: NodeJS.Timeout | undefined;

  const shards = (table: string, where: string, values: readonly unknown[]) =>
    shardsWith(names, { table, where, values }, (text, values) => run('heavy', text, values, call));
  const deleteExpired = async (table: string, column: string, compared: '<=' | '>', time: string) => {
    for (const shard of await shards(table, `${column} ${compared} $1`, [time])) {
      const { bind, values, inShard } = conditions(shard);
      const text = `delete from ${table} where ${inShard()} and ctid = any(array(
          select ctid from ${table} where ${inShard()} and ${column} ${compared} ${bind(time)}
          order by ${column} limit ${BATCH} ${names.placement.skipLocked})) returning 1`;
      while (!stop.signal.aborted && (await run('heavy', text, values, call)).length > 0);
    }
  };
  /** Each memory has its audit entry, of no app. */
  const purge = async (time: string) => {
    for (const shard of await shards(names.memories, 'valid_to <= $1', [time])) {
      for (let deleted = 1; deleted > 0 && !stop.signal.aborted; ) {
        const { bind, values, inShard } = conditions(shard);
        const changed = part(
          'changed',
          'bucket',
          'id',
          'user_id',
          'scope',
        )`delete from ${names.memories} where ${inShard()} and ctid = any(array(
            select ctid from ${names.memories} where ${inShard()} and valid_to <= ${bind(time)}
            order by valid_to limit ${BATCH} ${names.placement.skipLocked}))
          returning bucket, id, user_id, scope`;
        const entry = audit && part('entry')`${insertChangeEntry(names, bind, { changed, action: 'delete' }, call)}`;
        const text = `${withParts([changed, entry])} select 1 from ${changed}`;
        deleted = (await run('heavy', text, values, call)).length;
      }
    }
  };
  /** Notes the last changes that will be deleted, so that no reader of the feed misses them unaware. */
  const endChanges = (time: string) =>
    run(
      'heavy',
      `insert into ${names.logStarts} as l (node, xid)
       select distinct on (node) node, xid from ${names.auditLog} where timestamp <= $1 and node is not null order by node, xid desc
       on conflict (node) do update set xid = greatest(l.xid, excluded.xid)`,
      [time],
      call,
    );
  const round = async () => {
    if (audit && audit.retention_days !== null) {
      const time = daysAgo(audit.retention_days);
      await endChanges(time);
      await deleteExpired(names.auditLog, 'timestamp', '<=', time);
    }
    if (versions && versions.retention_days !== null)
      await deleteExpired(names.versions, 'replaced_at', '<=', daysAgo(versions.retention_days));
    if (purge_expired_days !== undefined) await purge(daysAgo(purge_expired_days));
    if (!stop.signal.aborted)
      await run('heavy', `delete from ${names.embeddingUsage} where day < $1::date`, [daysAgo(USAGE_DAYS)], call);
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
