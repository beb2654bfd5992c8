import { once } from 'node:events';
import { listen } from './app.ts';
import type { Call } from './calls.ts';
import type { Fault } from './faults.ts';
import { namespaceName } from './operations.ts';
import type { ApiVersion, Lag, Metric } from './options.ts';

export type { Fault, Lag };

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

interface StoredRecord {
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
  const lag = { ms: lagMs, writes: lagWrites };
  const { url, server, index, faults, records } = await listen({ settings, lag });
  const { store } = index;
  const close = async () => {
    const ended = once(server, 'close');
    server.close();
    server.closeAllConnections();
    await ended;
    if (records.violations.length > 0) throw new Error(`against the OpenAPI file:\n${records.violations.join('\n')}`);
  };
  let closing: Promise<void> | undefined;
  return {
    url,
    lag: async (lag) => store.lag(lag),
    settle: async () => store.settle(),
    fail: async (fault) => faults.add(fault),
    clearFaults: async () => faults.clear(),
    calls: async () => records.calls().map((call) => ({ ...call })),
    resetCalls: async () => records.resetCalls(),
    violations: async () => [...records.violations],
    records: async (namespace) => {
      const entries = store.find(namespaceName(namespace, index))?.whole.entries() ?? [];
      return Object.fromEntries(
        [...entries].map(([id, { values, metadata }]) => [id, { values: [...values], ...(metadata && { metadata }) }]),
      );
    },
    namespaces: async () => store.existing().map(({ name }) => name),
    close: () => {
      closing ??= close();
      return closing;
    },
  };
}
