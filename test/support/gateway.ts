import { randomUUID } from 'node:crypto';
import { tmpdir } from 'node:os';
import {
  type AuditOptions,
  type Embedder,
  type Log,
  type MaintenanceContext,
  NO_LIMITS,
  type Provider,
  type RankingOptions,
} from '#contract';
import { openAuditQueue } from '../../src/core/audit-queue.ts';
import { compose } from '../../src/core/compose.ts';
import { ANONYMOUS, type Authenticator, OPEN, type Principal } from '../../src/core/grants.ts';
import type { ServiceKey } from '../../src/core/services.ts';
import type { Store } from '../../src/core/store.ts';
import { createUserLimits, type UserLimitOptions } from '../../src/core/user-limits.ts';
import { createRetention, RETENTION, type Retention } from '../../src/features/retention/retention.ts';
import { WEBHOOKS, type Webhooks } from '../../src/features/webhooks/interface.ts';
import { createApp } from '../../src/http/app.ts';
import { createGate, type GateOptions } from '../../src/verbs/gate.ts';
import { type Client, clientOf } from './client.ts';
import { hashingEmbedder } from './hashing-embedder.ts';
import { MAX_BODY_BYTES, type WireCapabilities } from './wire.ts';

/** The whole gateway on one provider, spoken to in process. */
export interface Subject {
  readonly app: ReturnType<typeof createApp>;
  readonly client: Client;
  /** A client that sends these headers with every request. */
  as(headers: Record<string, string>): Client;
  /** The same gateway with limits of users, for a caller with this name of a key. */
  limited(limits: Partial<UserLimitOptions>, key?: string): Client;
  readonly provider: Store;
  /** The provider without anything around it, and its embedder. */
  readonly raw: Provider;
  readonly embedder: Embedder | undefined;
  readonly capabilities: WireCapabilities;
  /** What the gateway logged so far. */
  readonly lines: readonly LogLine[];
  /** Fields that are refused by name, because a table of somebody else has no place for them; unset: none. */
  readonly without?: readonly string[] | undefined;
  /** What its ids look like; unset: as this gateway makes them. */
  readonly ids?: RegExp | undefined;
  close(): Promise<void>;
}

export interface GatewayOptions {
  readonly mode?: RankingOptions['mode'] | undefined;
  /** Defaults to the hashing embedder; unused in keyword mode. */
  readonly embedder?: Embedder | undefined;
  /** Defaults to letting everybody do everything. */
  readonly authenticator?: Authenticator | undefined;
  readonly data_dir?: string;
  /** Defaults to keeping entries for ever. */
  readonly audit?: AuditOptions;
  /** With a name, the provider is that of a mounted store. The gateway runs on the store that `arrange` makes of it. */
  readonly mounted?: {
    readonly name?: string;
    arrange(store: Store, embedder: Embedder | undefined): Promise<Store>;
  };
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
export const UNHURRIED_MS = 600_000;
export const APP_LIMITS = { max_request_bytes: MAX_BODY_BYTES, request_timeout_ms: UNHURRIED_MS } as const;

/** Audit options of providers under test. */
export const RECORDED = { retention_days: null } as const;

/** How versions are kept by providers under test. */
export const VERSIONED = { max: 100, retention_days: null } as const;

/** Rules under test, about no memory of another test. */
const RULES = [
  { tag: 'retention-keep', days: null },
  { scope: 'retention/*', days: 30 },
  { tag: 'retention-temp', days: 7, by: 'updated_at' },
] as const;

interface GateFacts extends Partial<Omit<GateOptions, 'services'>> {
  readonly webhooks?: Webhooks | undefined;
  readonly retention?: Retention;
}

/** What the gateway puts between a composed provider and HTTP. */
export function gateOn(store: Store, log: Log, { webhooks, retention, ...options }: GateFacts = {}) {
  const auditQueue = openAuditQueue({ audit: store.audit, record: 'all', log });
  const max_record_bytes = 2 * MAX_BODY_BYTES;
  const services = new Map<ServiceKey<unknown>, unknown>([
    ...(webhooks ? [[WEBHOOKS, webhooks] as const] : []),
    ...(retention ? [[RETENTION, retention] as const] : []),
  ]);
  const facts = { store, auditQueue, services, log, max_record_bytes, rate_limit_per_minute: null };
  const gate = createGate({ ...facts, ...options });
  return { gate, auditQueue };
}

/** Speaks to an app in process, sending these headers with every request. */
export const clientTo = (app: Subject['app'], headers: Record<string, string>): Client =>
  // The empty environment is what a server would fill in.
  clientOf(async (path, init) => app.request(path, { ...init, headers: { ...headers, ...init?.headers } }, {}));

const callerOf = (principal: Principal): Authenticator => ({ authenticate: async () => principal });

/** Composes a provider as the gateway does, and puts the HTTP app in front. */
export async function openGateway(
  open: (context: MaintenanceContext) => Promise<Provider>,
  {
    mode = 'hybrid',
    embedder: given = hashingEmbedder(),
    authenticator = OPEN,
    data_dir = tmpdir(),
    audit: recorded = RECORDED,
    mounted,
  }: GatewayOptions,
): Promise<Subject> {
  const log = recordingLog();
  const embedder = mode === 'keyword' ? undefined : given;
  const audit = mounted?.name === undefined ? recorded : undefined;
  const opened = await open({
    embedder,
    ranking: { mode, keyword_weight: 0.5 },
    audit,
    versions: VERSIONED,
    user_limits: true,
    data_dir,
    log,
  });
  const composed = compose(opened, { embedder, log, ...(mounted?.name !== undefined && { name: mounted.name }) });
  const provider = (await mounted?.arrange(composed, embedder)) ?? composed;
  const { gate, auditQueue } = gateOn(provider, log, { retention: createRetention(RULES) });
  const app = createApp({ gate, authenticator, log, ...APP_LIMITS });
  const as = (headers: Record<string, string>): Client => clientTo(app, headers);
  const client = as({});
  const queues = [auditQueue];
  const limited: Subject['limited'] = (limits, key) => {
    const userLimits = createUserLimits({ ...NO_LIMITS, overrides: [], ...limits });
    const { gate, auditQueue } = gateOn(provider, log, { userLimits });
    queues.push(auditQueue);
    const caller = key === undefined ? authenticator : callerOf({ ...ANONYMOUS, id: `key:${key}`, app: key });
    return clientTo(createApp({ gate, authenticator: caller, log, ...APP_LIMITS }), {});
  };
  const close = async () => {
    await Promise.all(queues.map((queue) => queue.close()));
    await provider.close();
  };
  try {
    const capabilities = await client.capabilities();
    return { app, client, as, limited, provider, raw: opened, embedder, capabilities, lines: log.lines, close };
  } catch (error) {
    await close();
    throw error;
  }
}

/** Every test works on users of its own, so tests share a store without seeing each other. */
export const freshUser = (): string => `user-${randomUUID()}`;

/** Waits until the clock that stamps records has moved on by at least three milliseconds. */
export const laterMoment = async (): Promise<void> => {
  const start = Date.now();
  while (Date.now() - start < 3) await new Promise((resolve) => setTimeout(resolve, 1));
};
