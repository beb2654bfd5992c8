import { type AddressInfo, createConnection, createServer, type Server } from 'node:net';
import { afterEach, describe, expect, it } from 'vitest';
import { openConnections, statement } from '../../providers/postgres/connections.ts';
import { NO_SERVER, SERVER_URL } from '../support/postgres-server.ts';
import { call } from './store.ts';

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

let proxy: Server | undefined;
afterEach(() => {
  proxy?.close();
});

/** A way to the server that counts the statements it has sent on and not seen answered. */
async function openWay(url: URL) {
  const seen = { underWay: 0, most: 0 };
  proxy = createServer((client) => {
    const server = createConnection(Number(url.port || 5432), url.hostname);
    // Sync ends a statement, ReadyForQuery its answer; the first one greets.
    const asked = messages(true, (type) => {
      if (type === 'S') seen.most = Math.max(seen.most, ++seen.underWay);
    });
    const answered = messages(false, (type) => {
      if (type === 'Z' && seen.underWay > 0) seen.underWay--;
    });
    client.on('data', (chunk: Buffer) => {
      asked(chunk);
      server.write(chunk);
    });
    server.on('data', (chunk: Buffer) => {
      answered(chunk);
      client.write(chunk);
    });
    for (const [one, other] of [
      [client, server],
      [server, client],
    ] as const) {
      one.on('error', () => {}).on('close', () => other.destroy());
    }
  });
  await new Promise<void>((resolve) => proxy?.listen(0, '127.0.0.1', resolve));
  const through = new URL(url);
  through.host = `127.0.0.1:${(proxy.address() as AddressInfo).port}`;
  return { seen, connectionString: through.href };
}

describe('fifty statements at once on one connection', () => {
  it.for([
    ['by name are under way together', 'on', false],
    ['without names follow one another, whatever a pooler in between makes of halves', 'off', true],
  ] as const)('%s', async ([, prepared_statements, single], { skip }) => {
    skip(SERVER_URL === '', NO_SERVER);
    const { seen, connectionString } = await openWay(new URL(SERVER_URL));
    const database = openConnections({ config: { connectionString }, connections: 1, prepared_statements });
    const numbers = Array.from({ length: 50 }, (_, i) => i);
    const answers = await Promise.all(numbers.map((n) => database.query(statement('select $1::int as n'), [n], call)));
    await database.close();
    expect(answers.map(([row]) => row?.n)).toEqual(numbers);
    expect(seen.underWay).toBe(0);
    expect(seen.most === 1).toBe(single);
  });
});
