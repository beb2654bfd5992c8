import { type AddressInfo, createConnection, createServer } from 'node:net';
import { onTestFinished } from 'vitest';

const CANCEL_REQUEST = 80_877_102;
const TLS_REQUEST = 80_877_103;

/** Calls back with the type of every message of PostgreSQL's protocol; the first of a client has none. */
function messages(fromClient: boolean, each: (type: string) => void) {
  let rest = Buffer.alloc(0);
  let untyped = fromClient;
  return (chunk: Buffer) => {
    rest = Buffer.concat([rest, chunk]);
    for (;;) {
      const head = untyped ? 0 : 1;
      if (rest.length < head + 4) return;
      const size = head + rest.readUInt32BE(head);
      if (rest.length < size) return;
      if (!untyped) each(String.fromCharCode(rest[0] as number));
      rest = rest.subarray(size);
      untyped = false;
    }
  };
}

export interface WayOptions {
  /** Asked for every cancel request; it goes on when this resolves, and nowhere when it resolves with false. */
  readonly onCancel?: () => Promise<unknown>;
}

/** A way to the server that counts the statements it has sent on and not seen answered, and looks at cancel requests. */
export async function openWay(to: string, { onCancel = async () => true }: WayOptions = {}) {
  const url = new URL(to);
  const seen = { underWay: 0, most: 0, cancels: 0, tlsRequests: 0 };
  const proxy = createServer((client) => {
    const server = createConnection(Number(url.port || 5432), url.hostname);
    // Sync ends a statement, ReadyForQuery its answer; the first one greets.
    const asked = messages(true, (type) => {
      if (type === 'S') seen.most = Math.max(seen.most, ++seen.underWay);
    });
    const answered = messages(false, (type) => {
      if (type === 'Z' && seen.underWay > 0) seen.underWay--;
    });
    let first = true;
    let encrypted = false;
    client.on('data', (chunk: Buffer) => {
      const code = first && chunk.length >= 8 ? chunk.readUInt32BE(4) : 0;
      first = false;
      if (code === TLS_REQUEST) {
        seen.tlsRequests++;
        encrypted = true;
      }
      if (code === CANCEL_REQUEST) {
        seen.cancels++;
        // On a connection of its own: it arrives also when whoever sent it has given up waiting.
        void onCancel().then((goesOn) => {
          if (goesOn === false) return;
          const own = createConnection(Number(url.port || 5432), url.hostname);
          own.on('error', () => {}).on('close', () => client.destroy());
          own.write(chunk);
        });
        return;
      }
      if (!encrypted) asked(chunk);
      server.write(chunk);
    });
    server.on('data', (chunk: Buffer) => {
      if (!encrypted) answered(chunk);
      client.write(chunk);
    });
    for (const [one, other] of [
      [client, server],
      [server, client],
    ] as const) {
      one.on('error', () => {}).on('close', () => other.destroy());
    }
  });
  await new Promise<void>((resolve) => proxy.listen(0, '127.0.0.1', resolve));
  onTestFinished(() => void proxy.close());
  const through = new URL(url);
  through.host = `127.0.0.1:${(proxy.address() as AddressInfo).port}`;
  return { seen, connectionString: through.href };
}
