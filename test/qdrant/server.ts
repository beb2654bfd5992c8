import { randomBytes } from 'node:crypto';
import { join } from 'node:path';
import { freePort } from '../process/postgres-cluster.ts';
import { startQdrant } from '../qdrant-server/start.ts';
import { openServerProgram, requireOk } from '../support/server-program.ts';

/** The program of a real server, for the tests that can run on either; empty: the test server. */
const QDRANT_BIN = process.env.TEST_QDRANT_BIN ?? '';
export const NO_QDRANT_BIN = QDRANT_BIN === '' ? 'TEST_QDRANT_BIN is not set: no Qdrant server' : '';

export interface Qdrant {
  readonly url: string;
  close(): Promise<void>;
}

/** The real server if one is named, else the test server; empty. */
export const openQdrant = async (options: { readonly apiKey?: string } = {}): Promise<Qdrant> =>
  QDRANT_BIN === '' ? startQdrant(options) : startRealQdrant(options);

/** A real server with an empty folder, until it is closed. */
export async function startRealQdrant({ apiKey = '' }: { readonly apiKey?: string } = {}) {
  const [port, grpc] = [await freePort(), await freePort()];
  const url = `http://127.0.0.1:${port}`;
  const settings = (folder: string) => ({
    env: {
      QDRANT__SERVICE__HOST: '127.0.0.1',
      QDRANT__SERVICE__HTTP_PORT: String(port),
      QDRANT__SERVICE__GRPC_PORT: String(grpc),
      QDRANT__STORAGE__STORAGE_PATH: join(folder, 'storage'),
      QDRANT__STORAGE__SNAPSHOTS_PATH: join(folder, 'snapshots'),
      QDRANT__TELEMETRY_DISABLED: 'true',
      ...(apiKey && { QDRANT__SERVICE__API_KEY: apiKey }),
    },
  });
  return { url, ...(await openServerProgram(QDRANT_BIN, settings, () => requireOk(`${url}/readyz`))) };
}

/** A Qdrant for `providerTests`. */
export async function qdrantBackend(options: object = {}) {
  const { url, close } = await openQdrant();
  return { options: { url, ...options }, mode: 'vector' as const, close };
}

/** A name that no other test uses: tests share a real server. */
export const freshCollection = (): string => `omp-test-${randomBytes(6).toString('hex')}`;

export interface Answer {
  readonly status: number;
  // What a test says about an answer is checked by the test.
  // biome-ignore lint/suspicious/noExplicitAny: see above
  readonly body: any;
}

/** One request as it is sent, without the client. */
export async function tell(method: string, url: string, body?: unknown, headers: object = {}): Promise<Answer> {
  const response = await fetch(url, {
    method,
    headers: { 'content-type': 'application/json', ...headers },
    ...(body !== undefined && { body: JSON.stringify(body) }),
  });
  const text = await response.text();
  const isJson = response.headers.get('content-type')?.includes('json') ?? false;
  return { status: response.status, body: isJson ? JSON.parse(text) : text };
}
