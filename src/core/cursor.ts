import { hash } from 'node:crypto';
import { invalidRequest, type Position } from '#contract';
import { isStorableTime } from '#toolbox';

const VERSION = 1;
/** Cursors with ids of the gateway have at most 256 characters. Ids of mapped tables, of users, and names of callers may be longer. */
const MAX_LENGTH = 4_608;

/** The time in a cursor of items without one, such as users, which are in the order of their ids. */
export const NO_TIME = '1970-01-01T00:00:00.000Z';

type Filters = Readonly<Record<string, unknown>>;

/** The shape of what a kind of cursor names: how it is a time and an id, and what these are. */
interface CursorShape<Place> {
  position(place: Place): Position;
  /** Undefined: they name no place. Cursors are not signed. */
  place(position: Position): Place | undefined;
}

/** The cursors of one verb. Those of another are refused, and so are those for other filters. */
export interface CursorKind<Place> {
  /** `next_cursor`: opaque text for "after this place, with these filters". Holds a fingerprint of the filters, but no contents. Null: there is no place. */
  write(place: Place | undefined, filters: Filters): string | null;
  /** Undefined: the request has no cursor. Throws `invalid_request` if it is malformed, or of another version, kind, or other filters. */
  read(cursor: string | undefined, filters: Filters): Place | undefined;
}

/** `of`: the name of the kind. The two without one are older than it; their filters have different keys. */
export function cursorKind<Place>(of: string | undefined, { position, place }: CursorShape<Place>): CursorKind<Place> {
  const named = (filters: Filters): Filters => (of === undefined ? filters : { of, ...filters });
  return {
    write: (at, filters) => (at === undefined ? null : encode(position(at), named(filters))),
    read(cursor, filters) {
      if (cursor === undefined) return undefined;
      const at = place(decode(cursor, named(filters)));
      if (at === undefined) throw malformed();
      return at;
    },
  };
}

/** Of items that have an id alone. */
export const idCursor = (of: string): CursorKind<string> =>
  cursorKind(of, { position: (id) => ({ created_at: NO_TIME, id }), place: ({ id }) => id });

const encode = ({ created_at, id }: Position, filters: Filters): string =>
  Buffer.from(JSON.stringify([VERSION, fingerprint(filters), Date.parse(created_at), id])).toString('base64url');

function decode(cursor: string, filters: Filters): Position {
  const [version, mark, milliseconds, id] = parse(cursor);
  if (version !== VERSION || !isId(id) || !isMoment(milliseconds)) throw malformed();
  if (mark !== fingerprint(filters)) {
    throw invalidRequest(
      'cursor: was made for another request, another user or other filters; repeat them unchanged or start over',
    );
  }
  return { created_at: new Date(milliseconds).toISOString(), id };
}

/** A forged cursor must not pass invalid values to a backend. */
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
