import { createServer, type Socket } from 'node:net';

/**
 * Serves the engine's only session to several clients on a unix socket: the gateway, and `keys` and `doctor` beside it. Each
 * client has its own names of prepared statements, and holds the session from the beginning of a transaction to its end.
 * Settings that outlive a transaction (`set` without `local`) apply to all clients.
 *
 * `@electric-sql/pglite-socket` (0.2.17) shares the names, so that a second client fails with "already exists", and passes
 * on message by message: half as many statements a second or less.
 */

/** The engine, which has one session and does one thing at a time. */
export interface EngineSession {
  /** Rejects only when the engine is broken. */
  run(bytes: Uint8Array, answer: (bytes: Uint8Array) => void): Promise<void>;
  inTransaction(): boolean;
}

export interface SocketServer {
  /** Sends a statement of the server itself, and ignores the answer. */
  ask(sql: string): void;
  /** Closes all connections. */
  close(): Promise<void>;
}

/** Calls `broken` when the engine is broken. */
export function serveSession(
  path: string,
  session: EngineSession,
  broken: (error: unknown) => void,
): Promise<SocketServer> {
  const join = shareSession(session, broken);
  const sockets = new Set<Socket>();
  let connections = 0;
  const server = createServer((socket) => {
    sockets.add(socket);
    // A copy: the bytes are the engine's memory.
    const { ask, leave } = join((bytes) => void socket.write(Buffer.from(bytes)));
    const client = readClient(
      `${++connections}.`,
      () => socket.write('N'),
      () => socket.end(),
    );
    socket.on('data', (chunk: Buffer) => client.receive(chunk).forEach(ask));
    // `close` follows.
    socket.on('error', () => {});
    socket.once('close', () => {
      sockets.delete(socket);
      leave(server.listening ? client.cleanup() : undefined);
    });
  });
  const { ask } = join(() => {});
  const close = () =>
    new Promise<void>((closed) => {
      server.close(() => closed());
      for (const socket of sockets) socket.destroy();
    });
  return new Promise((ready, failed) => {
    server.once('error', failed);
    server.listen(path, () => ready({ ask: (sql) => ask({ bytes: queryMessage(sql), unfinished: false }), close }));
  });
}

/** The messages that the engine gets together: all up to the one that the client awaits an answer to. */
interface Exchange {
  readonly bytes: Buffer;
  /** More follows: the client wants the answers so far. */
  readonly unfinished: boolean;
}

interface Participant {
  ask(exchange: Exchange): void;
  /** Drops what is queued, and runs `cleanup`. */
  leave(cleanup: Exchange | undefined): void;
}

interface Queued {
  exchanges: Exchange[];
  answer: (bytes: Uint8Array) => void;
}

/** Gives the session to one participant after the other, for one exchange, or until the end of its transaction. */
function shareSession(session: EngineSession, broken: (error: unknown) => void) {
  /** Those with queued exchanges, first come first. */
  const queue = new Set<Queued>();
  let holder: Queued | undefined;
  let running = false;

  const next = (): Queued | undefined => {
    const [first] = queue;
    const participant = holder ?? first;
    return participant && queue.delete(participant) ? participant : undefined;
  };
  const step = async (participant: Queued) => {
    const exchange = participant.exchanges.shift();
    if (!exchange) return;
    await session.run(exchange.bytes, participant.answer);
    holder = exchange.unfinished || session.inTransaction() ? participant : undefined;
    if (participant.exchanges.length > 0) queue.add(participant);
  };
  const run = async () => {
    if (running) return;
    running = true;
    for (let participant = next(); participant; participant = next()) await step(participant);
    running = false;
  };
  const ask = (participant: Queued, exchange: Exchange) => {
    participant.exchanges.push(exchange);
    queue.add(participant);
    run().catch(broken);
  };

  return (answer: (bytes: Uint8Array) => void): Participant => {
    const participant: Queued = { exchanges: [], answer };
    return {
      ask: (exchange) => ask(participant, exchange),
      leave(cleanup) {
        participant.answer = () => {};
        participant.exchanges = [];
        if (cleanup) ask(participant, cleanup);
      },
    };
  };
}

/** A message after the startup message: a type, the length of the rest including itself, the rest. */
const HEADER = 5;
const [PARSE, BIND, DESCRIBE, CLOSE] = [...'PBDC'].map((type) => type.charCodeAt(0));
const [QUERY, SYNC, FLUSH, TERMINATE] = [...'QSHX'].map((type) => type.charCodeAt(0));
const STATEMENT = 'S'.charCodeAt(0);

/** Codes of requests before the startup message. Encryption is declined. */
const ENCRYPTIONS = [80877103, 80877104];
const CANCEL = 80877102;

/** Reads the messages of one client, and puts `prefix` before the names of its prepared statements. */
function readClient(prefix: string, declineEncryption: () => void, end: () => void) {
  const names = new Set<string>();
  let received: Buffer = Buffer.alloc(0);
  let started = false;
  let pending: Buffer[] = [];

  /** Takes the next complete message off what was received. */
  const next = (): Buffer | undefined => {
    const header = started ? HEADER : 4;
    if (received.length < header) return undefined;
    const length = received.readInt32BE(header - 4) + header - 4;
    if (received.length < length) return undefined;
    const message = received.subarray(0, length);
    received = received.subarray(length);
    return message;
  };
  const take = (bytes: Buffer, unfinished = false): Exchange[] => {
    const exchange = { bytes: Buffer.concat([...pending, bytes]), unfinished };
    pending = [];
    return [exchange];
  };
  const start = (message: Buffer): Exchange[] => {
    const code = message.readInt32BE(4);
    if (ENCRYPTIONS.includes(code)) declineEncryption();
    // Impossible: the statement to cancel occupies the only thread.
    else if (code === CANCEL) end();
    else {
      started = true;
      return take(message);
    }
    return [];
  };
  const read = (message: Buffer): Exchange[] => {
    const type = message[0];
    // Needs no answer: the end of the connection follows.
    if (type === TERMINATE) return [];
    if (type === QUERY || type === SYNC) return take(message);
    if (type === FLUSH) return take(message, true);
    pending.push(withPrefix(message, prefix, names));
    return [];
  };

  return {
    /** The exchanges that the chunk completes. */
    receive(chunk: Buffer): Exchange[] {
      received = received.length > 0 ? Buffer.concat([received, chunk]) : chunk;
      const complete: Exchange[] = [];
      for (let message = next(); message; message = next())
        complete.push(...(started ? read(message) : start(message)));
      return complete;
    },
    /** Frees what the client leaves behind in the session. */
    cleanup(): Exchange {
      const closings = [...names].map((name) => toMessage(CLOSE, Buffer.from(`S${name}\0`)));
      const sync = toMessage(SYNC, Buffer.alloc(0));
      // The first sync ends an unfinished exchange, in which the engine would ignore everything else.
      return { bytes: Buffer.concat([sync, queryMessage('rollback'), ...closings, sync]), unfinished: false };
    },
  };
}

/** The message with the prefix before the name of a statement. Keeps `names` up to date. */
function withPrefix(message: Buffer, prefix: string, names: Set<string>): Buffer {
  const at = nameOffset(message);
  if (at === undefined || message[at] === 0) return message;
  const name = prefix + message.toString('latin1', at, message.indexOf(0, at));
  if (message[0] === PARSE) names.add(name);
  if (message[0] === CLOSE) names.delete(name);
  return toMessage(
    message[0],
    Buffer.concat([message.subarray(HEADER, at), Buffer.from(prefix), message.subarray(at)]),
  );
}

/** Where the name of a statement begins; undefined: the message has none. */
function nameOffset(message: Buffer): number | undefined {
  const type = message[0];
  if (type === PARSE) return HEADER;
  // After the name of the portal.
  if (type === BIND) return message.indexOf(0, HEADER) + 1;
  return (type === DESCRIBE || type === CLOSE) && message[HEADER] === STATEMENT ? HEADER + 1 : undefined;
}

const queryMessage = (sql: string): Buffer => toMessage(QUERY, Buffer.from(`${sql}\0`));

function toMessage(type: number | undefined, content: Buffer): Buffer {
  const message = Buffer.alloc(HEADER);
  message[0] = type ?? 0;
  message.writeInt32BE(content.length + 4, 1);
  return Buffer.concat([message, content]);
}
