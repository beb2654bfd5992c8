import { mkdtemp, rm } from 'node:fs/promises';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { startGateway } from './child.ts';
import { type Load, load } from './load.ts';
import { addRequest, type Request, searchRequest } from './workload.ts';

/** Event loop lag of the gateway, in milliseconds beyond the sampling interval. */
interface Delay {
  readonly p50: number;
  readonly p99: number;
  readonly max: number;
}

export interface Work {
  readonly name: string;
  readonly load: Load;
  readonly delay: Delay;
}

export interface DefaultOptions {
  readonly connections: number;
  readonly seconds: number;
}

/** More than the local embedder can compute in any run. */
const DISTINCT = 20_000;
const START_MS = 60_000;

/** The gateway without any setting but its folder and port: local embedder, embedded Postgres. End to end over HTTP. */
export const measureDefault = (options: DefaultOptions): Promise<Work[]> =>
  withGateway({}, async ({ url, ask }) => {
    const measure = async (name: string, requests: readonly Request[]): Promise<Work> => {
      await ask('start');
      const found = await load(url, requests, options);
      return { name, load: found, delay: (await ask('stop')) as Delay };
    };
    const many = (make: (index: number) => Request) => Array.from({ length: DISTINCT }, (_, index) => make(index));
    await load(url, many(addRequest), options);
    return [
      await measure('add', many(addRequest)),
      await measure(
        'search, new queries',
        many((index) => searchRequest(`holiday in vienna ${index}`)),
      ),
      await measure(
        'search, repeated queries',
        many((index) => searchRequest(`holiday in vienna ${index % 20}`)),
      ),
    ];
  });

/** A running gateway with these settings, on the embedded Postgres unless they name a server, of this or another built checkout. Removed afterwards. */
export async function withGateway<Result>(
  env: Record<string, string>,
  use: (gateway: { readonly url: string; ask(message: string): Promise<unknown> }) => Promise<Result>,
  checkout?: string,
): Promise<Result> {
  const folder = await mkdtemp(join(tmpdir(), 'omp-bench-'));
  const port = await freePort();
  const url = `http://127.0.0.1:${port}`;
  const gateway = startGateway(
    {
      DATABASE_URL: '',
      ...env,
      OMP_DATA_DIR: join(folder, 'data'),
      OMP_PORT: String(port),
    },
    checkout,
  );
  try {
    await answers(url);
    return await use({ url, ask: gateway.ask });
  } finally {
    await gateway.stop();
    await rm(folder, { recursive: true, force: true });
  }
}

async function freePort(): Promise<number> {
  const server = createServer();
  await new Promise<void>((listening) => server.listen(0, '127.0.0.1', listening));
  const address = server.address();
  await new Promise((closed) => server.close(closed));
  if (address === null || typeof address === 'string') throw new Error('no free port');
  return address.port;
}

async function answers(url: string): Promise<void> {
  for (const deadline = performance.now() + START_MS; ; await sleep(100)) {
    const response = await fetch(`${url}/healthz`).catch(() => undefined);
    if (response?.ok) return;
    if (performance.now() > deadline) throw new Error('the gateway did not start');
  }
}
