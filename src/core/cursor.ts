import { hash } from 'node:crypto';
import { invalidRequest, type Position } from '#contract';
import { isStorableTime } from '#toolbox';

const VERSION = 1;
/** Cursors with ids of the gateway have at most 256 characters. Ids of mapped tables, of users, and names of callers may be longer. */
const MAX_LENGTH = 4_608;

/** The time in a cursor of items without one, such as users, which are in the order of their ids. */
export const NO_TIME = '1970-01-01T00:00:00.000Z';

/** The filters of lists and of the audit log have different keys, so a cursor of one is invalid for the other. */
type Filters = Readonly<Record<string, unknown>>;

/** Opaque text for "after this record, with these filters". Holds a fingerprint of the filters, but no contents. */
export const encodeCursor = ({ created_at, id }: Position, filters: Filters): string =>
  Buffer.from(JSON.stringify([VERSION, fingerprint(filters), Date.parse(created_at), id])).toString('base64url');

/** Decodes a cursor. Throws `invalid_request` if it is malformed, of another version, or made for other filters. */
export function decodeCursor(cursor: string, filters: Filters): Position {
  const [version, mark, milliseconds, id] = parse(cursor);
  if (version !== VERSION || !isId(id) || !isMoment(milliseconds)) throw malformed();
  if (mark !== fingerprint(filters)) {
    throw invalidRequest('cursor: was made for another user or other filters; repeat them unchanged or start over');
  }
  return { created_at: new Date(milliseconds).toISOString(), id };
}

/** Cursors are not signed, so a forged one must not pass invalid values to a backend. */
const isId = (value: unknown): value is string =>
  typeof value === 'string' && value !== '' && value.isWellFormed() && !value.includes('\0');
const isMoment = (value: unknown): value is number => Number.isSafeInteger(value) && isStorableTime(value as number);

function parse(cursor: string): unknown[] {
  if (cursor.length > MAX_LENGTH || !/^[A-Za-z0-9_-]+$/.test(cursor)) throw malformed();
  try {
    const json: unknown = JSON.parse(Buffer.from(cursor, 'base64url').toString());
    if (Array.isArray(json) && json.length === 4) return json;
  } catch {
    // Malformed, like any other value.
  }
  throw malformed();
}

export const malformed = () => invalidRequest('cursor: malformed; pass next_cursor of the previous page as it is');

const fingerprint = (filters: Filters): string =>
  hash('sha256', JSON.stringify(Object.entries(filters).sort()), 'base64url').slice(0, 16);
