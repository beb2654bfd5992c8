import { Socket } from 'node:net';
import pg from 'pg';

/** Parts of a client and a connection of `pg` that its types leave out. */
interface Session {
  readonly processID: number | null;
  readonly secretKey: number | null;
  readonly sslNegotiation: 'postgres' | 'direct';
}
interface Dialogue {
  connect(portOrPath: number | string, host?: string): void;
  requestSsl(): void;
  cancel(processId: number, secretKey: number): void;
}

/**
 * Asks the server to cancel what the session runs at the moment the request arrives, whatever that is then; what became
 * of it shows on the session only. PostgreSQL signals the session twice, so even a request that has hit may hit the
 * next statement too, until it is `done`. Goes to `address`, since a name may stand for several servers, over a
 * connection of its own with TLS as the session has it. The function returned gives up; there is none where the server
 * never said how to cancel.
 */
export function requestCancel(
  client: pg.Client,
  address: string | undefined,
  done: () => void,
): (() => void) | undefined {
  const { processID, secretKey, sslNegotiation } = client as unknown as Session;
  if (processID === null || secretKey === null) return undefined;
  const { ssl, host, port } = client;
  const socket = new Socket();
  const dial = socket.connect.bind(socket) as (portOrPath: number | string, host?: string) => Socket;
  Object.assign(socket, { connect: (to: number | string, name?: string) => dial(to, address ?? name) });
  const connection = new pg.Connection({ stream: socket, ssl, sslNegotiation } as object as pg.ConnectionConfig);
  const dialogue = connection as pg.Connection & Dialogue;
  const cancel = () => dialogue.cancel(processID, secretKey);
  const giveUp = () => void socket.destroy();
  connection.on('error', giveUp);
  // The server ends the connection when it has done what it was asked to.
  connection.on('end', done);
  connection.on('connect', () => {
    if (!ssl) cancel();
    else if (sslNegotiation !== 'direct') dialogue.requestSsl();
  });
  connection.on('sslconnect', cancel);
  if (host.startsWith('/')) dialogue.connect(`${host}/.s.PGSQL.${port}`);
  else dialogue.connect(port, host);
  return giveUp;
}
