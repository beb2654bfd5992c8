import type { AuditAction, AuditLog, Call, StoredEntry } from '#provider';
import type { Run } from '../client/connections.ts';
import { type Conditions, conditions, whereWithin } from '../sql/conditions.ts';
import type { Part } from '../sql/parts.ts';
import { toIso, toTextArray } from '../sql/values.ts';
import type { Names } from './names.ts';

const COLUMNS = ['timestamp', 'app', 'action', 'user_id', 'memory_id', 'scope', 'request_id', 'outcome'] as const;

/** What an audit entry reads of a changed memory. */
export type EntryColumn = 'bucket' | 'id' | 'user_id' | 'scope';

interface Entry {
  readonly changed: Part<EntryColumn>;
  readonly action: AuditAction;
  /** SQL of `AuditEntry.left_scopes`; undefined: no scope can be left. */
  readonly left?: string | undefined;
  /** Whether the table adds node and transaction. Default: true. */
  readonly isChange?: boolean;
}

/** SQL that writes one audit entry for each row of `changed`. */
export function insertChangeEntry(
  names: Names,
  bind: Conditions['bind'],
  { changed, action, left, isChange = true }: Entry,
  call: Call,
): string {
  const [now, app, request] = changeEntryValues(call).map(bind);
  const unchanged = isChange ? ['', ''] : [', node, xid', ', null, null'];
  const [column, value] = left === undefined ? unchanged : [', left_scopes', `, ${left}`];
  return `insert into ${names.auditLog} (bucket, ${COLUMNS.join(', ')}${column})
    select ${changed.bucket}, ${now}::timestamptz, ${app}::text, '${action}', ${changed.user_id}, ${changed.id}, ${changed.scope}, ${request}::text, 'ok'${value} from ${changed}`;
}

/** The values that `insertChangeEntry` binds. */
export const changeEntryValues = ({ caller, requestId }: Call): readonly unknown[] => [
  new Date().toISOString(),
  caller.app,
  requestId,
];

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
