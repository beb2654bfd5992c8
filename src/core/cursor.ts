import { createHash } from 'node:crypto';
import { invalidRequest, type Position } from '#contract';

const VERSION = 1;
/** Ids of ours make at most 256; a backend may hold longer ones that somebody else made, of at most 512 characters. */
const MAX_LENGTH = 1_024;

/** Of a list and of an audit log they have different keys, so that neither takes a cursor of the other. */
type Filters = Readonly<Record<string, unknown>>;

/** Opaque text for "after this record, under these filters". Holds no contents, and no user: only their fingerprint. */
export const encodeCursor = ({ created_at, id }: Position, filters: Filters): string =>
  Buffer.from(JSON.stringify([VERSION, fingerprint(filters), Date.parse(created_at), id])).toString('base64url');

/** Reads a cursor back. Throws `invalid_request` when it is malformed, of another version, or made for other filters. */
export function decodeCursor(cursor: string, filters: Filters): Position {
  const [version, mark, milliseconds, id] = parse(cursor);
  if (version !== VERSION || !isId(id) || !isMoment(milliseconds)) throw malformed();
  if (mark !== fingerprint(filters)) {
    throw invalidRequest('cursor: was made for another user or other filters; repeat them unchanged or start over');
  }
  return { created_at: new Date(milliseconds).toISOString(), id };
}

/** Cursors are not signed, so a made-up one must not reach a backend with what it cannot hold. */
const isId = (value: unknown): value is string =>
  typeof value === 'string' && value !== '' && value.isWellFormed() && !value.includes('\0');
const isMoment = (value: unknown): value is number =>
  Number.isSafeInteger(value) &&
  /^\d{4}-/.test(new Date(value as number).toJSON() ?? '') &&
  (value as number) >= FIRST_MOMENT;
const FIRST_MOMENT = Date.parse('0001-01-01T00:00:00Z');

function parse(cursor: string): unknown[] {
  if (cursor.length > MAX_LENGTH || !/^[A-Za-z0-9_-]+$/.test(cursor)) throw malformed();
  try {
    const parsed: unknown = JSON.parse(Buffer.from(cursor, 'base64url').toString());
    if (Array.isArray(parsed) && parsed.length === 4) return parsed;
  } catch {
    // Not ours; told below.
  }
  throw malformed();
}

export const malformed = () => invalidRequest('cursor: malformed; pass next_cursor of the previous page as it is');

const fingerprint = (filters: Filters): string =>
  createHash('sha256')
    .update(JSON.stringify(Object.entries(filters).sort()))
    .digest('base64url')
    .slice(0, 16);
