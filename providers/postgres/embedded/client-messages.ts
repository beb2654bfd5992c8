/** What a client sends after its greeting: a type, the length of the rest with itself, the rest. */
const HEADER = 5;
const [PARSE, BIND, DESCRIBE, CLOSE] = [...'PBDC'].map((type) => type.charCodeAt(0));
const [QUERY, SYNC, FLUSH, TERMINATE] = [...'QSHX'].map((type) => type.charCodeAt(0));
const STATEMENT = 'S'.charCodeAt(0);

/** Asked before the greeting, and declined. */
const ENCRYPTIONS = [80877103, 80877104];
const CANCEL = 80877102;

/** What the engine is given at once: all up to where the client waits for an answer. */
export interface Exchange {
  readonly bytes: Buffer;
  /** More belongs to it: the client wants to see the answers so far. */
  readonly unfinished: boolean;
}

export interface Client {
  /** The exchanges that this completes. */
  receive(chunk: Buffer): Exchange[];
  /** Frees what the client leaves behind in the session. */
  farewell(): Exchange;
}

/**
 * Understands what one client of several sends, who all share the engine's only session. The names of its statements get
 * a prefix, so that everybody has names of their own. `decline` answers a wish for encryption, `end` closes the
 * connection.
 */
export function createClient(prefix: string, decline: () => void, end: () => void): Client {
  const names = new Set<string>();
  let received: Buffer = Buffer.alloc(0);
  let greeted = false;
  let pending: Buffer[] = [];

  /** The next whole message, taken off what was received. */
  const next = (): Buffer | undefined => {
    const header = greeted ? HEADER : 4;
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
  const greeting = (message: Buffer): Exchange[] => {
    const code = message.readInt32BE(4);
    if (ENCRYPTIONS.includes(code)) decline();
    // There is one thread: whoever could be cancelled holds it.
    else if (code === CANCEL) end();
    else {
      greeted = true;
      return take(message);
    }
    return [];
  };
  const understand = (message: Buffer): Exchange[] => {
    const type = message[0];
    // Goodbyes need no answer: the end of the connection follows.
    if (type === TERMINATE) return [];
    if (type === QUERY || type === SYNC) return take(message);
    if (type === FLUSH) return take(message, true);
    pending.push(renamed(message, prefix, names));
    return [];
  };

  return {
    receive(chunk) {
      received = received.length > 0 ? Buffer.concat([received, chunk]) : chunk;
      const complete: Exchange[] = [];
      for (let message = next(); message; message = next()) {
        complete.push(...(greeted ? understand(message) : greeting(message)));
      }
      return complete;
    },
    farewell: () => {
      const closings = [...names].map((name) => asMessage(CLOSE, Buffer.from(`S${name}\0`)));
      const rollback = queryMessage('rollback');
      const sync = asMessage(SYNC, Buffer.alloc(0));
      // The first ends what was not finished, where else everything is passed over.
      return { bytes: Buffer.concat([sync, rollback, ...closings, sync]), unfinished: false };
    },
  };
}

/** The message with the prefix before the name of a statement. Takes note of the names in use. */
function renamed(message: Buffer, prefix: string, names: Set<string>): Buffer {
  const at = nameAt(message);
  if (at === undefined || message[at] === 0) return message;
  const name = prefix + message.toString('latin1', at, message.indexOf(0, at));
  if (message[0] === PARSE) names.add(name);
  if (message[0] === CLOSE) names.delete(name);
  return asMessage(
    message[0],
    Buffer.concat([message.subarray(HEADER, at), Buffer.from(prefix), message.subarray(at)]),
  );
}

/** Where the name of a statement begins; undefined: the message has none. */
function nameAt(message: Buffer): number | undefined {
  const type = message[0];
  if (type === PARSE) return HEADER;
  // After the name of the portal.
  if (type === BIND) return message.indexOf(0, HEADER) + 1;
  return (type === DESCRIBE || type === CLOSE) && message[HEADER] === STATEMENT ? HEADER + 1 : undefined;
}

export const queryMessage = (sql: string): Buffer => asMessage(QUERY, Buffer.from(`${sql}\0`));

function asMessage(type: number | undefined, content: Buffer): Buffer {
  const message = Buffer.alloc(HEADER);
  message[0] = type ?? 0;
  message.writeInt32BE(content.length + 4, 1);
  return Buffer.concat([message, content]);
}
