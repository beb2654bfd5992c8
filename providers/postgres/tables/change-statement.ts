import type { Call, ProtocolVerb } from '#provider';
import { type Query, queriesOf, type Statement, type Weight } from '../client/connections.ts';
import type { Conditions } from '../sql/conditions.ts';
import { type Part, part, withParts } from '../sql/parts.ts';
import { type EntryColumn, insertChangeEntry } from './audit-log.ts';
import type { Names } from './names.ts';

/** A change of memories. `Column`: what its statement reads of them, beside what an audit entry reads. */
interface Change<Column extends string> {
  readonly action: ProtocolVerb;
  readonly call: Call;
  /** What comes before the change. */
  readonly first?: readonly Part[] | undefined;
  readonly text: string;
  /** What comes after it. */
  readonly after?: ((changed: Part<EntryColumn | Column>) => readonly Part[]) | undefined;
  /** What to return of each changed row. Default: only that it exists. */
  readonly columns?: string;
  readonly row?: readonly Column[];
  /** SQL of the scopes that the memories leave. */
  readonly left?: ((changed: Part<EntryColumn>) => string) | undefined;
}

export type MakeChange = ReturnType<typeof createChange>;

/** Makes statements of changes. A change and its audit entry are one statement, so both or neither are kept. */
export function createChange(names: Names, audited: boolean, statement: (weight: Weight, text: string) => Statement) {
  const query = queriesOf(statement);
  return <Column extends string = never>({ bind, values }: Conditions, wanted: Change<Column>): Query => {
    const { action, call, first = [], text, after, columns = '1', left } = wanted;
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
    const entry = insertChangeEntry(names, bind, { changed, action, left: left?.(changed) }, call);
    if (isLast) return query('small', `${withParts(parts)} ${entry} returning 1`, values);
    return query(
      'small',
      `${withParts([...parts, part('entry')`${entry}`])} select ${columns} from ${changed}`,
      values,
    );
  };
}
