import { randomUUID } from 'node:crypto';
import {
  type Call,
  effectivePatch,
  type Holdings,
  invalidRequest,
  mergeExtensions,
  type NewMemory,
  newIdentity,
  OmpError,
  type Provider,
  providerError,
  recordBytes,
  recordTooLarge,
  requireFits,
  requireVersion,
  toUnit,
} from '#provider';
import type { Query, Row } from '../client/connections.ts';
import { codeOf, PROVIDER } from '../postgres-errors.ts';
import { FIELDS, FORMS } from './field-mapping.ts';
import type { Field, Layout } from './layout.ts';
import { type MappedStatements, type RunMapped, unsupported } from './mapped-statements.ts';
import type { Reading } from './row-reading.ts';
import { isGiven } from './write-sql.ts';

export interface WriteOptions {
  readonly layout: Layout;
  readonly reading: Reading;
  readonly statements: MappedStatements;
  readonly get: Provider['get'];
  readonly max_bytes: number;
  readonly run: RunMapped;
}

/** Rows of one statement of an erase: few, so that a table whose rows take long to delete makes progress within the time of a statement. */
const ERASED = 1_000;

/** The verbs that change rows. They never touch columns and keys that no field is mapped to. */
export function createTableWrites({ layout, reading, statements, get, max_bytes, run }: WriteOptions) {
  const write = async (query: Query, call: Call): Promise<Row | undefined> =>
    (await explained(layout, run(query, call)))[0];
  const remove = (query: Query, call: Call): Promise<Row[]> => explained(layout, run(query, call), REFERRED);

  /** The fields as the table stores them. */
  const storable = <Given extends Partial<NewMemory>>(given: Given): Given => {
    let stored = given;
    if (given.user_id !== undefined) {
      const user_id = layout.owner.toStored(given.user_id);
      if (user_id === undefined) throw unsupported('user_id: the table cannot hold memories of this user');
      stored = { ...given, user_id };
    }
    // If the user is a constant, others are rejected here.
    requireMapped(layout, stored);
    return stored;
  };

  return {
    check: (given) => void storable(given),

    async add({ vector, ...request }, call) {
      const input = storable(request.input);
      const { id, created_at } = newIdentity();
      const ids = { text: id, uuid: randomUUID(), database: undefined };
      const row = { input, id: ids[layout.id.newIds], created_at, vector: toUnit(vector) };
      const kept = await write(statements.insert(row), call);
      const memory = kept && reading.toMemory(kept);
      if (!memory) throw providerError(PROVIDER, 'the table did not store the new row');
      return memory;
    },

    async update({ ref, vector, ...request }, call) {
      const current = requireVersion(request.current ?? (await get(ref, call)), ref);
      const patch = current && effectivePatch(current, request.patch);
      if (!patch) return current;
      requireMapped(layout, patch);
      requireFits(current, patch, max_bytes);
      // A caller that may change all users' memories still changes only this user's.
      const query = statements.update(
        { ...ref, users: [current.user_id] },
        { patch, vector: patch.content === undefined ? undefined : toUnit(vector), max_bytes },
      );
      const updated = query && (await write(query, call));
      if (updated) return reading.toMemory(updated);
      // Deleted in the meantime, or not changed because of a condition of the update.
      const present = requireVersion(await get(ref, call), ref);
      if (present === undefined) return undefined;
      const extensions = mergeExtensions(present.extensions, patch.extensions);
      if (recordBytes({ ...present, ...patch, extensions }) > max_bytes) throw recordTooLarge(max_bytes);
      throw invalidRequest(
        `${Object.keys(patch).join(', ')}: the row holds a value of another type here, or a policy of the table prevents the change`,
      );
    },

    async delete(ref, call) {
      const query = statements.remove(ref);
      if (query && (await remove(query, call)).length > 0) return true;
      if (ref.versions) requireVersion(await get(ref, call), ref);
      return false;
    },

    async erase({ user_id }, call) {
      const removed = { memories: 0, vectors: 0 };
      for (;;) {
        const rows = await remove(statements.erase(user_id, ERASED), call);
        removed.memories += rows.length;
        removed.vectors += rows.filter(({ embedded }) => embedded).length;
        if (rows.length < ERASED) return removed;
      }
    },

    async holdings(request, call) {
      const [counts] = await run(statements.holdings(request), call);
      return counts as unknown as Holdings;
    },
  } satisfies Required<Pick<Provider, 'check' | 'add' | 'update' | 'delete' | 'erase' | 'holdings'>>;
}

// Unmapped fields

/**
 * Throws `unsupported_capability` with every given field that the table cannot hold: nothing is dropped silently. Null and
 * empty lists count as not given. A constant field accepts its value. Unmapped scopes do not reach this: the gateway
 * rejects or emulates them.
 */
function requireMapped({ fields }: Layout, given: Partial<NewMemory>): void {
  const { extensions = {}, ...others } = given;
  const unmapped = FIELDS.filter((name) => name in others).filter((name) => {
    const value = others[name as keyof typeof others];
    return isGiven(value) && !accepts(fields[name], value);
  });
  const keys = fields.extensions?.write ? [] : Object.keys(extensions);
  const names = [...unmapped, ...keys];
  if (names.length > 0) throw unsupported(`${names.join(', ')}: the table has no column for this`);
}

const accepts = (field: Field | undefined, value: unknown): boolean =>
  field !== undefined &&
  (field.write !== undefined || field.constant === (typeof value === 'string' ? value : JSON.stringify(value)));

// Constraint violations

/** `division_by_zero`, see `recheck`. */
const RECHECK_FAILED = '22012';

/** Messages for rows that the table rejects, by SQLSTATE or its class. */
const MESSAGES: Readonly<Record<string, string>> = {
  '23502': 'the table requires a value here',
  '23503': 'a foreign key of the table refers to a missing row',
  '23505': 'the table already has such a row',
  '23514': 'a check constraint of the table rejects this',
  '22': 'does not fit the column',
  '23': 'a constraint of the table rejects this',
};

/** The same code when rows are deleted. */
const REFERRED: typeof MESSAGES = { ...MESSAGES, '23503': 'another table refers to this row' };

/** Columns and constraints of the table may be narrower than the protocol. Then the request is invalid, not the database. */
async function explained<Result>(layout: Layout, write: Promise<Result>, messages = MESSAGES): Promise<Result> {
  try {
    return await write;
  } catch (error) {
    const cause = error instanceof OmpError ? error.cause : undefined;
    const code = codeOf(cause) ?? '';
    if (code === RECHECK_FAILED)
      throw providerError(
        PROVIDER,
        'the write would have changed another row, or several rows of one id; it was rolled back',
        cause,
      );
    const message = messages[code] ?? messages[code.slice(0, 2)];
    if (message === undefined) throw error;
    throw new OmpError('invalid_request', `${fieldsOf(layout, code, cause)}: ${message}`, {
      provider: PROVIDER,
      cause,
    });
  }
}

/** The driver names the column of a missing value, but not of a text that is too long. */
function fieldsOf({ fields }: Layout, code: string, cause: unknown): string {
  const column = (cause as { readonly column?: unknown }).column;
  const candidates = FIELDS.filter((name) => {
    const write = fields[name]?.write;
    if (write?.kind !== 'column') return false;
    if (typeof column === 'string') return write.column === `"${column.replaceAll('"', '""')}"`;
    return code === '22001' && FORMS[name] === 'text';
  });
  return candidates.length > 0 ? candidates.join(' or ') : 'memory';
}
