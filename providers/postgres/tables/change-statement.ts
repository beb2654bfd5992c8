import type { AuditAction, Call, ProtocolVerb } from '#provider';
import { type Query, queriesOf, type Statement, type Weight } from '../client/connections.ts';
import type { Conditions } from '../sql/conditions.ts';
import { part, type WithPart, withParts } from '../sql/parts.ts';
import type { Names } from './names.ts';

/** A change of memories. `Column`: what its statement reads of them, beside what an audit entry reads. */
interface Change<Column extends string> {
  readonly action: ProtocolVerb;
  readonly call: Call;
  /** What comes before the change. */
  readonly first?: readonly WithPart[] | undefined;
  readonly text: string;
  /** What comes after it. */
  readonly after?: ((changed: WithPart<EntryColumn | Column>) => readonly WithPart[]) | undefined;
  /** What to return of each changed row. Default: only that it exists. */
  readonly columns?: string;
  readonly row?: readonly Column[];
  /** SQL of the scopes that the memories leave. */
  readonly left?: ((changed: WithPart<EntryColumn>) => string) | undefined;
  /** Of the audit entry, if they are bound already. */
  readonly parameters?: EntryParameters | undefined;
}

export type MakeChange = ReturnType<typeof createChange>;

/** Makes statements of changes. A change and its audit entry are one statement, so both or neither are kept. */
export function createChange(names: Names, audited: boolean, statement: (weight: Weight, text: string) => Statement) {
  const query = queriesOf(statement);
  return <Column extends string = never>({ bind, values }: Conditions, wanted: Change<Column>): Query => {
    const { action, call, first = [], text, after, columns = '1', left, parameters } = wanted;
    // Measured: an add without a second part of the `with` costs a tenth less.
    const isLast = columns === '1';
    // Citus takes no insert at the top that reads what another part has inserted into its table.
    const isShort = !audited && !after && isLast && !(names.placement.distributed && first.length > 0);
    if (isShort) return query('small', `${withParts(first)} ${text} returning 1`, values);
    // Citus returns no functions of the columns that an update changes.
    const row: readonly (EntryColumn | Column)[] = ['bucket', ...(wanted.row ?? (['id', 'user_id', 'scope'] as const))];
    const changed = part('changed', ...row)`${text} returning ${row.join(', ')}`;
    const parts = [...first, changed, ...(after?.(changed) ?? [])];
    if (!audited) return query('small', `${withParts(parts)} select ${columns} from ${changed}`, values);
    const entry = insertChangeEntry(names, bind, { changed, action, left: left?.(changed), parameters }, call);
    if (isLast) return query('small', `${withParts(parts)} ${entry} returning 1`, values);
    return query(
      'small',
      `${withParts([...parts, part('entry')`${entry}`])} select ${columns} from ${changed}`,
      values,
    );
  };
}

/** The parameters of an audit entry: when, the name of the caller, the id of the request. */
type EntryParameters = readonly [now: string, app: string, request: string];

/** What an audit entry reads of a changed memory. */
export type EntryColumn = 'bucket' | 'id' | 'user_id' | 'scope';

interface Entry {
  readonly changed: WithPart<EntryColumn>;
  readonly action: AuditAction;
  /** SQL of `AuditEntry.left_scopes`; undefined: no scope can be left. */
  readonly left?: string | undefined;
  /** Whether the table adds node and transaction. Default: true. */
  readonly isChange?: boolean;
  /** Its parameters. Default: bound here. */
  readonly parameters?: EntryParameters | undefined;
}

/** SQL that writes one audit entry for each row of `changed`. */
export function insertChangeEntry(
  names: Names,
  bind: Conditions['bind'],
  { changed, action, left, isChange = true, parameters }: Entry,
  { caller, requestId }: Call,
): string {
  const [now, app, request] = parameters ?? [new Date().toISOString(), caller.app, requestId].map(bind);
  const unchanged = isChange ? ['', ''] : [', node, xid', ', null, null'];
  const [column, value] = left === undefined ? unchanged : [', left_scopes', `, ${left}`];
  return `insert into ${names.auditLog} (bucket, timestamp, app, action, user_id, memory_id, scope, request_id, outcome${column})
    select ${changed.bucket}, ${now}::timestamptz, ${app}::text, '${action}', ${changed.user_id}, ${changed.id}, ${changed.scope}, ${request}::text, 'ok'${value} from ${changed}`;
}
