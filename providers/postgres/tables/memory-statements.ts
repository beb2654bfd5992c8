import type { Call, VersionOptions } from '#provider';
import { type Query, queriesOf, rememberStatements } from '../client/connections.ts';
import type { Located } from '../scaling/placement.ts';
import { createChange } from './change-statement.ts';
import { whereOne, whereVersion } from './conditions.ts';
import { createInserts } from './insert-statement.ts';
import { createList } from './list-statement.ts';
import { columnsOf } from './memory-rows.ts';
import type { Names } from './names.ts';
import { createNeighbours } from './neighbours-statement.ts';
import { createUpdate } from './update-statement.ts';

/** The statements of the verbs. Texts differ only by the filters in use, so each is prepared once. */
export type Statements = ReturnType<typeof createStatements>;

/** `audited`: whether changes write audit entries. `versions`: undefined: no versions are kept. */
export function createStatements(
  names: Names,
  audited: boolean,
  versions?: VersionOptions,
  statement = rememberStatements(),
) {
  const query = queriesOf(statement);
  const columns = columnsOf(names);
  const change = createChange(names, audited, statement);
  return {
    ...createInserts(names, audited, change),
    update: createUpdate(names, { audited, versions, change }),
    list: createList(names, statement),
    neighbours: createNeighbours(names, statement),

    select(ref: Located): Query {
      const where = whereOne(ref);
      return query('light', `select ${columns} from ${names.memories} where ${where}`, where.values);
    },

    /** Returns a row if there was one. */
    remove(ref: Located, call: Call): Query {
      const where = whereVersion(ref);
      return change(where, { action: 'delete', call, text: `delete from ${names.memories} where ${where}` });
    },
  };
}
