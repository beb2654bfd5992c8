import { LRUCache } from 'lru-cache';
import pg from 'pg';
import type { Row, Statement } from './statement-task.ts';

/**
 * Characters of all statements that one session keeps prepared. Measured: with this limit 384 forms of search take 14 MB of a
 * session, without it 150 MB. One search has 3,000 to 5,000 characters.
 */
const MAX_CHARACTERS = 96 * 1024;

/** Members of a `pg` connection that its types leave out. */
interface PgConnection {
  readonly parsedStatements: Record<string, string>;
  close(target: { readonly type: 'S'; readonly name: string }): void;
  describe(target: object): void;
}

/** The columns of a prepared statement: the parts of a `pg` result that read its rows. */
export interface Columns {
  readonly fields: unknown;
  readonly _parsers: unknown;
  readonly _prebuiltEmptyResultObject: unknown;
}

/** The statements that a session has prepared. The least recently used ones are closed. */
export interface PreparedStatements {
  has(name: string): boolean;
  add(statement: Statement): void;
  /** Call it whenever the statement is sent. */
  use(statement: Statement): void;
  /** By the name of the statement; for `PreparedQuery`. */
  readonly columns: Map<string, Columns>;
}

export function trackPreparedStatements(client: pg.Client, maxCharacters = MAX_CHARACTERS): PreparedStatements {
  const { connection } = client as unknown as { readonly connection: PgConnection };
  const columns = new Map<string, Columns>();
  /** Statements already sent still run; the next use prepares it again. */
  const close = (name: string) => {
    columns.delete(name);
    delete connection.parsedStatements[name];
    connection.close({ type: 'S', name });
  };
  const names = new LRUCache<string, true>({
    maxSize: maxCharacters,
    dispose: (_, name, reason) => {
      if (reason === 'evict') close(name);
    },
  });
  return {
    has: (name) => names.has(name),
    add({ name, text }) {
      if (text.length > maxCharacters) close(name);
      else if (!names.has(name)) names.set(name, true, { size: text.length });
    },
    use: ({ name }) => void names.get(name),
    columns,
  };
}

type Answered = (error: Error | null, result: { readonly rows: Row[] }) => void;

/** Members of a `pg` query that its types leave out. */
interface PgQuery {
  name: string | undefined;
  readonly _result: Columns;
  _accumulateRows: boolean;
  hasBeenParsed(connection: PgConnection): boolean;
  prepare(connection: PgConnection): void;
  handleRowDescription(message: unknown): void;
}
const PgQuery = pg.Query as unknown as new (
  text: string,
  values: unknown[],
  answered: Answered,
) => PgQuery & pg.Submittable;

/**
 * A query by the name of its statement. It asks for the columns only when the session prepares the statement: while it is
 * prepared, PostgreSQL rejects it rather than answer with other columns. `pg` asks every time, which takes a tenth of the
 * processor time of a get.
 */
export class PreparedQuery extends PgQuery {
  readonly #columns: Map<string, Columns>;

  constructor({ name, text }: Statement, values: unknown[], columns: Map<string, Columns>, answered: Answered) {
    super(text, values, answered);
    this.name = name;
    this.#columns = columns;
  }

  override prepare(connection: PgConnection): void {
    const columns = this.hasBeenParsed(connection) ? this.#columns.get(this.name as string) : undefined;
    if (columns) {
      Object.assign(this._result, columns);
      this._accumulateRows = true;
    }
    super.prepare(columns ? withoutDescribe(connection) : connection);
  }

  override handleRowDescription(message: unknown): void {
    super.handleRowDescription(message);
    const { fields, _parsers, _prebuiltEmptyResultObject } = this._result;
    this.#columns.set(this.name as string, { fields, _parsers, _prebuiltEmptyResultObject });
  }
}

const wrapped = new WeakMap<PgConnection, PgConnection>();

/** The same connection, but its `describe` sends nothing. */
function withoutDescribe(connection: PgConnection): PgConnection {
  const known = wrapped.get(connection) ?? Object.create(connection, { describe: { value() {} } });
  wrapped.set(connection, known);
  return known;
}
