import { Socket } from 'node:net';
import { LRUCache } from 'lru-cache';
import pg from 'pg';

/*
 * What the gateway uses of `pg` beyond its types, which is why package.json names one exact version: prepared statements that
 * describe their columns once and are closed again, and cancel requests.
 */

type NamedText = Required<Pick<pg.QueryConfig, 'name' | 'text'>>;

/** Members of a `pg` connection that its types leave out. */
interface PgConnection {
  readonly parsedStatements: Record<string, string>;
  close(target: { readonly type: 'S'; readonly name: string }): void;
  describe(target: object): void;
  connect(portOrPath: number | string, host?: string): void;
  requestSsl(): void;
  cancel(processId: number, secretKey: number): void;
}

/** Members of a `pg` client that its types leave out. */
interface PgClient {
  readonly connection: PgConnection;
  readonly processID: number | null;
  readonly secretKey: number | null;
  readonly sslNegotiation: 'postgres' | 'direct';
}

/** The columns of a prepared statement: the parts of a `pg` result that read its rows. */
interface Columns {
  readonly fields: unknown;
  readonly _parsers: unknown;
  readonly _prebuiltEmptyResultObject: unknown;
}

/**
 * Characters of all statements that one session keeps prepared. Measured: with this limit 384 forms of search take 14 MB of a
 * session, without it 150 MB. One search has 3,000 to 5,000 characters.
 */
const MAX_CHARACTERS = 96 * 1024;

/** The statements that a session has prepared. The least recently used ones are closed. */
export class PreparedStatements {
  /** The columns that are known, by the name of the statement. */
  readonly columns = new Map<string, Columns>();
  /** The connection of the session, except that its `describe` sends nothing. */
  readonly undescribed: PgConnection;
  readonly #connection: PgConnection;
  readonly #names: LRUCache<string, true>;

  constructor(client: pg.Client) {
    this.#connection = (client as unknown as PgClient).connection;
    this.undescribed = Object.create(this.#connection, { describe: { value() {} } });
    this.#names = new LRUCache({
      maxSize: MAX_CHARACTERS,
      dispose: (_, name, reason) => {
        if (reason === 'evict') this.#close(name);
      },
    });
  }

  has(name: string): boolean {
    return this.#names.has(name);
  }

  /** Call it when the statement was answered. */
  remember({ name, text }: NamedText): void {
    if (text.length > MAX_CHARACTERS) this.#close(name);
    else if (!this.#names.has(name)) this.#names.set(name, true, { size: text.length });
  }

  /** The query to send. */
  query(statement: NamedText, values: unknown[], answered: Answered): pg.Submittable {
    this.#names.get(statement.name);
    return new PreparedQuery(statement, values, answered, this);
  }

  /** Statements already sent still run; the next use prepares it again. */
  #close(name: string): void {
    this.columns.delete(name);
    delete this.#connection.parsedStatements[name];
    this.#connection.close({ type: 'S', name });
  }
}

export type Answered = (
  error: Error | null | undefined,
  result: { readonly rows: Record<string, unknown>[] } | undefined,
) => void;

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
class PreparedQuery extends PgQuery {
  readonly #prepared: PreparedStatements;

  constructor({ name, text }: NamedText, values: unknown[], answered: Answered, prepared: PreparedStatements) {
    super(text, values, answered);
    this.name = name;
    this.#prepared = prepared;
  }

  override prepare(connection: PgConnection): void {
    const { columns, undescribed } = this.#prepared;
    const known = this.hasBeenParsed(connection) ? columns.get(this.name as string) : undefined;
    if (known) {
      Object.assign(this._result, known);
      this._accumulateRows = true;
    }
    super.prepare(known ? undescribed : connection);
  }

  override handleRowDescription(message: unknown): void {
    super.handleRowDescription(message);
    const { fields, _parsers, _prebuiltEmptyResultObject } = this._result;
    this.#prepared.columns.set(this.name as string, { fields, _parsers, _prebuiltEmptyResultObject });
  }
}

/**
 * Asks the server to cancel what the session runs when the request arrives. Only the session shows the result. PostgreSQL
 * signals the session twice, so a request that hit its statement may also hit the next one, until `done` is called. The
 * request uses a connection of its own, with TLS as the session has it, and goes to `address`, because a host name may
 * stand for several servers. Returns a function that gives up, or undefined if the server sent no cancel key.
 */
export function requestCancel(
  client: pg.Client,
  address: string | undefined,
  done: () => void,
): (() => void) | undefined {
  const { processID, secretKey, sslNegotiation } = client as unknown as PgClient;
  if (processID === null || secretKey === null) return undefined;
  const { ssl, host, port } = client;
  const socket = new Socket();
  const dial = socket.connect.bind(socket) as (portOrPath: number | string, host?: string) => Socket;
  Object.assign(socket, { connect: (to: number | string, name?: string) => dial(to, address ?? name) });
  const options = { stream: socket, ssl, sslNegotiation } as object as pg.ConnectionConfig;
  const connection = new pg.Connection(options) as pg.Connection & PgConnection;
  const cancel = () => connection.cancel(processID, secretKey);
  const giveUp = () => void socket.destroy();
  connection.on('error', giveUp);
  // The server closes the connection when it has handled the request.
  connection.on('end', done);
  connection.on('connect', () => {
    if (!ssl) cancel();
    else if (sslNegotiation !== 'direct') connection.requestSsl();
  });
  connection.on('sslconnect', cancel);
  if (host.startsWith('/')) connection.connect(`${host}/.s.PGSQL.${port}`);
  else connection.connect(port, host);
  return giveUp;
}
