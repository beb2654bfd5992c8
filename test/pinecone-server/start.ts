import type { ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import type { Call } from './calls.ts';
import type { Fault } from './faults.ts';
import type { ApiVersion, Lag, Metric } from './options.ts';
import { spawnServer } from './spawn.ts';

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
  /** Ends the process. Rejects when there were violations. */
  close(): Promise<void>;
}

/** Starts a Pinecone of the test's own, as a process. It does not outlive this one. */
export async function startPinecone(options: PineconeOptions = {}): Promise<Pinecone> {
  const { url, child } = await spawnServer(argumentsFor(options));
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
      await end(child);
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

const argumentsFor = ({ lsn, rateLimits, ...given }: PineconeOptions): string[] => {
  const { dimension, metric, apiVersion, apiKey, lagMs, lagWrites } = given;
  const valued = {
    dimension,
    metric,
    'api-version': apiVersion,
    'api-key': apiKey,
    'lag-ms': lagMs,
    'lag-writes': lagWrites,
  };
  return [
    ...Object.entries(valued).flatMap(([name, value]) => (value === undefined ? [] : [`--${name}=${value}`])),
    ...(lsn === false ? ['--no-lsn'] : []),
    ...(rateLimits ? ['--rate-limits'] : []),
  ];
};

async function end(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return;
  const ended = once(child, 'exit');
  child.kill('SIGTERM');
  await ended;
}
