import { once } from 'node:events';
import { type AddressInfo, createConnection, createServer, type Socket } from 'node:net';
import { onTestFinished } from 'vitest';

/** A way to the server that a test can break: what comes is counted and, as long as it is well, sent on. */
export interface Way {
  /** The server's address by this way. */
  readonly url: string;
  /** Connections that were asked for so far. */
  readonly asked: () => number;
  /** Connections end, and new ones end as soon as they are made. */
  cut(): void;
  /** Connections are taken and stay, and nothing goes through, as when the server is paused. */
  block(): void;
  /** New connections go through again. */
  mend(): void;
}

export async function openBreakableWay(to: string): Promise<Way> {
  const url = new URL(to);
  const { port, hostname, searchParams } = new URL(to);
  const folder = searchParams.get('host');
  const dial = () =>
    folder ? createConnection(`${folder}/.s.PGSQL.5432`) : createConnection(Number(port || 5432), hostname);
  const sockets = new Set<Socket>();
  let state: 'well' | 'cut' | 'blocked' = 'well';
  let asked = 0;

  const follow = (socket: Socket) => {
    sockets.add(socket);
    socket.on('error', () => {}).on('close', () => sockets.delete(socket));
  };
  const way = createServer((client) => {
    asked++;
    follow(client);
    if (state === 'cut') return void client.destroy();
    if (state === 'blocked') return;
    const server = dial();
    follow(server);
    for (const [from, into] of [
      [client, server],
      [server, client],
    ] as const) {
      from.on('data', (chunk) => state !== 'blocked' && into.write(chunk)).on('close', () => into.destroy());
    }
  });
  const end = () => {
    for (const socket of sockets) socket.destroy();
  };
  way.listen(0, '127.0.0.1');
  await once(way, 'listening');
  onTestFinished(() => {
    way.close();
    end();
  });
  url.searchParams.delete('host');
  url.hostname = '127.0.0.1';
  url.port = String((way.address() as AddressInfo).port);
  return {
    url: url.href,
    asked: () => asked,
    cut() {
      state = 'cut';
      end();
    },
    block() {
      state = 'blocked';
    },
    mend() {
      state = 'well';
      end();
    },
  };
}
