import { Socket } from 'node:net';
import pg from 'pg';

/** Members of a `pg` client and connection that their types leave out. */
interface BackendSession {
  readonly processID: number | null;
  readonly secretKey: number | null;
  readonly sslNegotiation: 'postgres' | 'direct';
}
interface PgConnection {
  connect(portOrPath: number | string, host?: string): void;
  requestSsl(): void;
  cancel(processId: number, secretKey: number): void;
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
  const { processID, secretKey, sslNegotiation } = client as unknown as BackendSession;
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
