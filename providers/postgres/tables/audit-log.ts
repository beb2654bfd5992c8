import type { AuditLog, StoredEntry } from '#provider';
import type { Run } from '../client/connections.ts';
import { conditions, whereWithin } from '../sql/conditions.ts';
import { toIso, toTextArray } from '../sql/values.ts';
import type { Names } from './names.ts';

const COLUMNS = ['timestamp', 'app', 'action', 'user_id', 'memory_id', 'scope', 'request_id', 'outcome'] as const;

export const createAuditLog = (names: Names, run: Run): AuditLog => ({
  async record(entries, call) {
    await run(
      'small',
      `insert into ${names.auditLog} (bucket, node, xid, left_scopes, ${COLUMNS.join(', ')})
       select bucket, node, case when node is not null then pg_current_xact_id() end, left_scopes::text[], ${COLUMNS.join(', ')} from unnest($1::int2[], $2::int2[], $3::text[], $4::timestamptz[],
         ${COLUMNS.slice(1).map((_, i) => `$${i + 5}::text[]`)}) as e (bucket, node, left_scopes, ${COLUMNS.join(', ')})`,
      [
        entries.map(({ user_id }) => names.placement.storedBucket(user_id ?? '')),
        entries.map(({ changed }) => (changed ? 0 : null)),
        entries.map(({ left_scopes }) => left_scopes && toTextArray(left_scopes)),
        ...COLUMNS.map((column) => entries.map((entry) => entry[column])),
      ],
      call,
    );
  },
  async read({ user_id, app, since, until, after, within, limit }, call) {
    const where = conditions(names.placement.shardOf(user_id));
    where.and(where.inShard());
    where.and(`user_id = ${where.bind(user_id)}`);
    if (app !== undefined) where.and(`app = ${where.bind(app)}`);
    if (since !== undefined) where.and(`timestamp >= ${where.bind(since)}::timestamptz`);
    if (until !== undefined) where.and(`timestamp <= ${where.bind(until)}::timestamptz`);
    if (after) {
      where.and(`(timestamp, seq) < (${where.bind(after.timestamp)}::timestamptz, ${where.bind(after.seq)}::bigint)`);
    }
    whereWithin(where, { within });
    const rows = await run(
      'heavy',
      `select date_part('epoch', timestamp) * 1000 as milliseconds, seq::float8 as seq, ${COLUMNS.slice(1).join(', ')}
       from ${names.auditLog} l where ${where} order by l.timestamp desc, l.seq desc limit ${where.bind(limit)}`,
      where.values,
      call,
    );
    return rows.map(
      ({ milliseconds, ...row }) => ({ timestamp: toIso(milliseconds as number), ...row }) as unknown as StoredEntry,
    );
  },
});
