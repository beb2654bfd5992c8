import { once } from 'node:events';
import { listen } from './app.ts';
import type { Call } from './control.ts';
import type { Fault } from './faults.ts';
import type { ApiVersion, Lag, Metric } from './options.ts';

export type { Call, Fault, Lag };

export interface PineconeOptions {
  /** Default 64. */
  readonly dimension?: number;
  /** Default cosine. */
  readonly metric?: Metric;
  /** Default 2026-04. */
  readonly apiVersion?: ApiVersion;
  /** The only key that is let in. Default: any. */
  readonly apiKey?: string;
  readonly lagMs?: number;
  readonly lagWrites?: number;
  /** Whether answers carry log sequence numbers. Default: yes. */
  readonly lsn?: boolean;
  /** The only metadata keys that filters may name. Default: any. */
  readonly filterable?: readonly string[];
  /** Whether 5 `fetch_by_metadata` a second are the most. Default: no. */
  readonly rateLimits?: boolean;
}

export interface StoredRecord {
  readonly values: readonly number[];
  readonly metadata?: Readonly<Record<string, unknown>>;
}

export interface Pinecone {
  /** What goes into `index_host`. */
  readonly url: string;
  /** Takes the place of the lag there was: `{}` is none. What could be seen already stays visible. */
  lag(lag: Lag): Promise<void>;
  /** Everything written becomes visible now. */
  settle(): Promise<void>;
  /** A fault for requests to come. The first that fits a request is used. */
  fail(fault: Fault): Promise<void>;
  clearFaults(): Promise<void>;
  /** Requests since the start or the last `resetCalls`, in order of arrival; those that met a fault too. */
  calls(): Promise<Call[]>;
  resetCalls(): Promise<void>;
  /** What the OpenAPI file has against requests and answers so far. */
  violations(): Promise<string[]>;
  /** What is stored, with the whole log applied. */
  records(namespace: string): Promise<Record<string, StoredRecord>>;
  /** The namespaces that exist, in byte order. */
  namespaces(): Promise<string[]>;
  /** Stops the server. Rejects if there were violations. */
  close(): Promise<void>;
}

/** Starts a server in this process, on a free port. */
export async function startPinecone({ lagMs = 0, lagWrites = 0, ...given }: PineconeOptions = {}): Promise<Pinecone> {
  const settings = {
    dimension: 64,
    metric: 'cosine',
    apiVersion: '2026-04',
    lsn: true,
    rateLimits: false,
    ...given,
  } as const;
  const { url, server } = await listen({ settings, lag: { ms: lagMs, writes: lagWrites } });
  const control = async <Answer>(method: string, path: string, body?: object): Promise<Answer> => {
    const response = await fetch(`${url}/__control/${path}`, { method, body: JSON.stringify(body) });
    const text = await response.text();
    if (!response.ok) throw new Error(`${method} ${path}: ${text}`);
    return JSON.parse(text) as Answer;
  };
  const violations = () => control<string[]>('GET', 'violations');
  const close = async () => {
    try {
      const found = await violations();
      if (found.length > 0) throw new Error(`against the OpenAPI file:\n${found.join('\n')}`);
    } finally {
      const ended = once(server, 'close');
      server.close();
      server.closeAllConnections();
      await ended;
    }
  };
  let closing: Promise<void> | undefined;
  return {
    url,
    lag: (lag) => control('PUT', 'lag', lag),
    settle: () => control('POST', 'settle'),
    fail: (fault) => control('POST', 'faults', fault),
    clearFaults: () => control('DELETE', 'faults'),
    calls: () => control('GET', 'calls'),
    resetCalls: () => control('DELETE', 'calls'),
    violations,
    records: (namespace) => control('GET', `records?${new URLSearchParams({ namespace })}`),
    namespaces: () => control('GET', 'namespaces'),
    close: () => {
      closing ??= close();
      return closing;
    },
  };
}
