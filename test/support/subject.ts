import { randomUUID } from 'node:crypto';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Embedder, Log, Provider, RankingOptions } from '#contract';
import type { ProviderName } from '../../src/config/settings.ts';
import { openAuditQueue } from '../../src/core/audit-queue.ts';
import { compose } from '../../src/core/compose.ts';
import { type Authenticator, OPEN } from '../../src/core/grants.ts';
import type { Store } from '../../src/core/with-embedder.ts';
import { createApp } from '../../src/http/app.ts';
import { openProvider } from '../../src/registry.ts';
import { createGate, type GateOptions } from '../../src/verbs/gate.ts';
import { type Client, clientOf } from './client.ts';
import { copyEmptyPostgres } from './empty-postgres.ts';
import { hashingEmbedder } from './hashing-embedder.ts';
import { MAX_BODY_BYTES, type WireCapabilities } from './wire.ts';

/** The whole gateway on one provider, spoken to in process. */
export interface Subject {
  readonly app: ReturnType<typeof createApp>;
  readonly client: Client;
  /** A client that sends these headers with every request. */
  as(headers: Record<string, string>): Client;
  readonly provider: Store;
  readonly capabilities: WireCapabilities;
  /** Fields that are refused by name, because a table of somebody else has no place for them; unset: none. */
  readonly without?: readonly string[];
  /** What its ids look like; unset: as this gateway makes them. */
  readonly ids?: RegExp;
  close(): Promise<void>;
}

export interface SubjectOptions {
  readonly provider: ProviderName;
  readonly options: object;
  readonly mode?: RankingOptions['mode'];
  /** Defaults to the hashing embedder; unused in keyword mode. */
  readonly embedder?: Embedder;
  /** Changes the provider before it is composed, to let it err in ways it never would. */
  readonly alter?: (provider: Provider) => Provider;
  /** With a name, the provider is that of a mounted store. The gateway runs on the store that `arrange` makes of it. */
  readonly mounted?: {
    readonly name?: string;
    arrange(store: Store, embedder: Embedder | undefined): Promise<Store>;
  };
  /** Defaults to letting everybody do everything. */
  readonly authenticator?: Authenticator;
  /** Defaults to a folder of its own, removed on close; a given one stays. */
  readonly data_dir?: string;
}

export interface LogLine {
  readonly level: 'info' | 'warn' | 'error';
  readonly fields: object;
  readonly message: string;
}

/** A logger that keeps its lines, for the tests that read them. */
export const recordingLog = (): Log & { readonly lines: LogLine[] } => {
  const lines: LogLine[] = [];
  const at = (level: LogLine['level']) => (fields: object, message: string) =>
    void lines.push({ level, fields, message });
  return { lines, info: at('info'), warn: at('warn'), error: at('error') };
};

/** Deadlines that no test reaches, however busy the machine is. */
const UNHURRIED_MS = 600_000;
export const APP_LIMITS = { max_request_bytes: MAX_BODY_BYTES, request_timeout_ms: UNHURRIED_MS } as const;
export const UNHURRIED_POSTGRES = { acquire_timeout_ms: UNHURRIED_MS, query_timeout_ms: UNHURRIED_MS } as const;
export const UNHURRIED_PINECONE = { timeout_ms: UNHURRIED_MS } as const;
const UNHURRIED = { postgres: UNHURRIED_POSTGRES, pinecone: UNHURRIED_PINECONE, memory: {} } as const;

/** Audit options of providers under test. */
export const RECORDED = { retention_days: null } as const;

/** What the gateway puts between a composed provider and HTTP. */
export function gateOn(store: Store, log: Log, options: Partial<GateOptions> = {}) {
  const auditQueue = openAuditQueue({ audit: store.audit, record: 'all', log });
  const max_record_bytes = 2 * MAX_BODY_BYTES;
  const gate = createGate({ store, auditQueue, log, max_record_bytes, rate_limit_per_minute: null, ...options });
  return { gate, auditQueue };
}

/** A data folder whose embedded Postgres needs no initialising. */
export async function makeDataDir(parent = tmpdir()): Promise<string> {
  const folder = await mkdtemp(join(parent, 'omp-test-'));
  await copyEmptyPostgres(folder);
  return folder;
}

/** Speaks to an app in process, sending these headers with every request. */
export const clientTo = (app: Subject['app'], headers: Record<string, string>): Client =>
  // The empty environment is what a server would fill in.
  clientOf(async (path, init) => app.request(path, { ...init, headers: { ...headers, ...init?.headers } }, {}));

/** Opens a provider of the registry, composes it as the gateway does, and puts the HTTP app in front. */
export const openSubject = async (wanted: SubjectOptions): Promise<Subject> => {
  // Copying a database takes a while: only where one is going to be started.
  const started = wanted.provider === 'postgres' && !('url' in wanted.options) && wanted.data_dir === undefined;
  const data_dir = started ? await makeDataDir() : (wanted.data_dir ?? tmpdir());
  const log = recordingLog();
  const mode = wanted.mode ?? 'hybrid';
  const embedder = mode === 'keyword' ? undefined : (wanted.embedder ?? hashingEmbedder());
  const { alter = (provider) => provider, mounted } = wanted;
  const audit = mounted?.name === undefined ? RECORDED : undefined;
  const context = { embedder, ranking: { mode, keyword_weight: 0.5 }, audit, data_dir, log };
  const tidy = async () => {
    if (started) await rm(data_dir, { recursive: true, force: true });
  };
  const options = { ...UNHURRIED[wanted.provider], ...wanted.options };
  const opened = await openProvider(wanted.provider, options, context).catch(async (error: unknown) => {
    await tidy();
    throw error;
  });
  const composed = compose(alter(opened), {
    embedder,
    log,
    ...(mounted?.name !== undefined && { name: mounted.name }),
  });
  const provider = (await mounted?.arrange(composed, embedder)) ?? composed;
  const { gate, auditQueue } = gateOn(provider, log);
  const app = createApp({ gate, authenticator: wanted.authenticator ?? OPEN, log, ...APP_LIMITS });
  const as = (headers: Record<string, string>): Client => clientTo(app, headers);
  const client = as({});
  const close = async () => {
    await auditQueue.close();
    await provider.close();
    await tidy();
  };
  try {
    return { app, client, as, provider, capabilities: await client.capabilities(), close };
  } catch (error) {
    await close();
    throw error;
  }
};

/** Every test works on users of its own, so tests share a store without seeing each other. */
export const freshUser = (): string => `user-${randomUUID()}`;

/** Waits until the clock that stamps records has moved on by at least three milliseconds. */
export const laterMoment = async (): Promise<void> => {
  const start = Date.now();
  while (Date.now() - start < 3) await new Promise((resolve) => setTimeout(resolve, 1));
};
