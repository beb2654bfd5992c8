import { once } from 'node:events';
import { type AddressInfo, connect, createServer, type Server, type Socket } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { onTestFinished } from 'vitest';

/** What is done to what passes. */
export interface Weather {
  /** Added to every piece, each way, in milliseconds. */
  readonly latency_ms?: number;
  /** Of each connection, each way. */
  readonly bytes_per_second?: number;
  /** Share of the pieces that are cut: a part of them passes, then both sides are reset. */
  readonly cut?: { readonly requests?: number; readonly answers?: number };
  /** Nothing passes, and nobody is told: connections are taken, and stay as they are. */
  readonly black_hole?: boolean;
}

export interface TcpProxy {
  readonly port: number;
  /** The same address by way of the proxy. */
  through(url: string): string;
  become(weather: Weather): void;
  /** Resets all connections that there are. */
  reset(): void;
  /** Refuses connections, and resets those there are. */
  down(): Promise<void>;
  up(): Promise<void>;
}

/** Stands between two processes on this machine, as a network does that can fail. It does not outlive the test. */
export async function startTcpProxy(target: string): Promise<TcpProxy> {
  const { hostname, port: targetPort } = new URL(target);
  const pairs = new Set<readonly [Socket, Socket]>();
  let weather: Weather = {};
  let port = 0;
  let server: Server | undefined;

  const reset = () => {
    for (const pair of pairs) for (const socket of pair) socket.resetAndDestroy();
  };
  const join = (client: Socket) => {
    const upstream = connect(Number(targetPort), hostname);
    const pair = [client, upstream] as const;
    pairs.add(pair);
    for (const [from, to, direction] of [
      [client, upstream, 'requests'],
      [upstream, client, 'answers'],
    ] as const) {
      from.setNoDelay();
      from.on('error', () => {});
      from.on('close', () => {
        pairs.delete(pair);
        to.destroy();
      });
      pass(from, to, () => weather, direction).catch(() => to.resetAndDestroy());
    }
  };
  const up = async () => {
    server = createServer(join).listen(port, '127.0.0.1');
    await once(server, 'listening');
    port = (server.address() as AddressInfo).port;
  };
  const down = async () => {
    const closing = server;
    server = undefined;
    closing?.close();
    reset();
    if (closing) await once(closing, 'close');
  };
  await up();
  onTestFinished(down);
  return {
    port,
    through(url) {
      const other = new URL(url);
      other.hostname = '127.0.0.1';
      other.port = String(port);
      return other.href;
    },
    become: (next) => {
      weather = next;
    },
    reset,
    down,
    up,
  };
}

/** Hands on what comes, in order, as the weather is when it comes. */
async function pass(
  from: Socket,
  to: Socket,
  weather: () => Weather,
  direction: 'requests' | 'answers',
): Promise<void> {
  for await (const piece of from as AsyncIterable<Buffer>) {
    while (weather().black_hole && !from.destroyed) await sleep(20);
    const { latency_ms = 0, bytes_per_second = 0, cut } = weather();
    const wait = latency_ms + (bytes_per_second ? (piece.length / bytes_per_second) * 1_000 : 0);
    if (wait > 0) await sleep(wait);
    if (Math.random() < (cut?.[direction] ?? 0)) {
      await new Promise((written) => to.write(piece.subarray(0, piece.length >> 1), written));
      from.resetAndDestroy();
      to.resetAndDestroy();
      return;
    }
    if (!to.write(piece)) await Promise.race([once(to, 'drain'), once(to, 'close')]);
  }
  to.end();
}
