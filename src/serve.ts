import './v8.ts';
import { lookup } from 'node:dns/promises';
import { once } from 'node:events';
import { createServer } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { backgroundCall, type Log } from '#contract';
import { openAuthenticator } from './auth/authenticator.ts';
import { rateLimitOptions, telemetryOptions, tokenOptions, userLimitOptions } from './config/config-options.ts';
import type { Config } from './config/settings.ts';
import { openAuditQueue } from './core/audit-queue.ts';
import { createHealth } from './core/health.ts';
import type { Store } from './core/store.ts';
import { NO_TELEMETRY, type Telemetry } from './core/telemetry.ts';
import { createUserLimits } from './core/user-limits.ts';
import { metricsOf, openServices, startFeatures } from './features/index.ts';
import { loopbackHosts } from './http/admission.ts';
import { type AdminOptions, createAdminApp, createApp } from './http/app.ts';
import { cannotListen, listen } from './http/listen.ts';
import { openStores } from './open-stores.ts';
import { openRateLimits } from './rate-limit/rate-limits.ts';
import { nameOf } from './registry.ts';
import { createDependencies } from './resilience/dependencies.ts';
import { CLOSE_MS, type OpenParts, openParts } from './shutdown.ts';
import { openTelemetry } from './telemetry/telemetry.ts';
import { createGate, type Gate, type GateOptions } from './verbs/gate.ts';

export interface Gateway {
  readonly host: string;
  readonly port: number;
  /** The name of the provider. */
  readonly provider: string;
  /** How the backend ranks. */
  readonly search: 'hybrid' | 'vector' | 'keyword' | 'none';
  /** Whether requests needed no credential at the start. */
  readonly open: boolean;
  /**
   * Reports not ready, keeps serving for `shutdown_delay_ms`, gives running requests `shutdown_timeout_ms`, then writes what
   * is queued and closes everything within `CLOSE_MS`. Rejects with the parts that did not close.
   */
  close(): Promise<void>;
}

/** Calls that fail are retried twice; five failures in a row open a circuit breaker, which probes twice a second. */
const RESILIENCE = { retries: 2, breaker_failures: 5, probe_ms: 500 };

/**
 * Opens what is configured, bottom up, and serves it. Rejects with a message an operator can act on, leaving nothing open;
 * with the reason of `stopped` if that fires before the start is complete.
 */
export async function serve(config: Config, log: Log, stopSignal?: AbortSignal): Promise<Gateway> {
  const parts = openParts(log, stopSignal);
  try {
    const name = await nameOf(config.provider);
    const health = createHealth(name);
    const telemetry = await parts.open('telemetry', openTelemetry(telemetryOptions(config), log));
    await openMetricsPort(config, { health, provider: name, scrape: telemetry.scrape, log }, parts);
    await requireFreePort(config);
    const stores = await openGate(config, telemetry, parts, log);
    const { store: provider, gate, services, userLimits } = stores;
    const running = { store: provider, feed: gate.feed, log };
    startFeatures(services, running, parts.add);
    telemetry.watch({
      ...stores,
      provider,
      features: metricsOf(services, { ...running, embedder: stores.embedder, userLimits }),
    });
    const rate = await parts.open('rate limits', openRateLimits({ ...rateLimitOptions(config), log }));

    const { keys, mode } = config.auth;
    const required = mode === 'required';
    const jwt = tokenOptions(config);
    const authenticator = await parts.open(
      'authenticator',
      openAuthenticator({ keys, store: provider.keys, jwt, required, log }),
    );
    const open = await authenticator.isOpen();
    const reachable = !isLoopback((await lookup(config.host)).address);
    if (open && reachable && mode !== 'open') throw new Error(openError(config.host));

    // Without this, a page in a browser on this machine could reach the gateway through its own host name (DNS rebinding).
    const allowed_hosts = config.allowed_hosts ?? (open && !reachable ? [...loopbackHosts, config.host] : undefined);
    health.begin(gate.ping);
    const app = createApp({ ...config, tokens: jwt, gate, authenticator, rate, allowed_hosts, health, telemetry, log });
    const listener = await listen(app, { ...config, log });
    const graceMs = config.shutdown_timeout_ms;
    parts.add('listener', () => listener.close({ graceMs, idleMs: IDLE_MS }), graceMs + 1_000);

    const { host, port } = listener;
    if (open && reachable) log.warn({ host }, OPEN_WARNING);
    if (required && keys.length === 0 && !jwt && !(await hasKeys(provider))) log.warn({}, NO_KEY);
    const close = async () => {
      health.drain();
      gate.feed.drain();
      listener.drain();
      await sleep(config.shutdown_delay_ms);
      await parts.close(graceMs + CLOSE_MS);
    };
    return { host, port, provider: name, open, search: searchOf(provider.mounts?.root ?? provider), close };
  } catch (error) {
    await parts.close().catch(() => {});
    throw error;
  }
}

/** Opens the stores with their embedders and the audit queue: everything but the server. */
async function openGate(
  config: Config,
  telemetry: Telemetry & Pick<GateOptions, 'scrape'>,
  parts: OpenParts,
  log: Log,
) {
  const dependencies = createDependencies(RESILIENCE, telemetry, log);
  parts.add('dependencies', async () => dependencies.close());
  const stores = await openStores(config, { protect: dependencies.protect, parts, log });
  const { store } = stores;
  const record = config.audit.record === 'writes' ? 'writes' : 'all';
  const auditQueue = openAuditQueue({ audit: config.audit.record === 'off' ? undefined : store.audit, record, log });
  parts.add('audit queue', auditQueue.close);
  const rate_limit_per_minute = config.rate_limit.per_minute ?? null;
  const max_record_bytes = 2 * config.max_request_bytes;
  const { scrape } = telemetry;
  const services = openServices(config, { store, log });
  const limits = userLimitOptions(config);
  const userLimits = limits && createUserLimits(limits);
  const resources = { store, auditQueue, services, userLimits, max_record_bytes, log };
  const gate = createGate({ ...resources, rate_limit_per_minute, scrape });
  return { ...stores, gate, services, userLimits, breakers: dependencies.states };
}

/** Opens the configured store for a program without a server. Rejects with a message an operator can act on. */
export async function openStore(config: Config, log: Log): Promise<{ readonly gate: Gate; close(): Promise<void> }> {
  const parts = openParts(log);
  try {
    const { gate } = await openGate(config, NO_TELEMETRY, parts, log);
    return { gate, close: () => parts.close() };
  } catch (error) {
    await parts.close().catch(() => {});
    throw error;
  }
}

/**
 * How long an idle connection may still be used when no new ones are accepted, in milliseconds. Its next response closes
 * it.
 */
const IDLE_MS = 250;

const OPEN_WARNING = 'anybody who reaches this address can read and write: there is no key, and OMP_AUTH is "open"';
const openError = (host: string) =>
  `OMP_HOST is ${host}, and no key exists: anybody who reaches this address could read and write. Create a key with "omp-gateway keys create NAME --grant '*:*'", set OMP_AUTH=required, or set OMP_AUTH=open if only you can reach it`;
const NO_KEY = 'OMP_AUTH is "required" and no key exists; create one with "omp-gateway keys create"';

/** Opens the port for metrics and probes, if one is configured. Rejects if the address cannot be bound. */
async function openMetricsPort(config: Config, admin: AdminOptions, parts: OpenParts): Promise<void> {
  const { metrics, request_timeout_ms } = config;
  const { host, port } = metrics;
  if (port === undefined) return;
  const { log } = admin;
  const options = { host, port, setting: 'OMP_METRICS', log, request_timeout_ms } as const;
  const listener = await listen(createAdminApp(admin), options);
  parts.add('metrics', () => listener.close({ graceMs: 0 }));
  log.info({ host: listener.host, port: listener.port }, 'the port for metrics is open');
}

/** Rejects unless a server can listen there. Checked before a database is created. */
async function requireFreePort({ host, port }: Config): Promise<void> {
  const server = createServer().listen(port, host);
  await once(server, 'listening').catch((error: Error) => {
    throw cannotListen(error, { host, port });
  });
  server.close();
  await once(server, 'close');
}

/** How the backend ranks; it may lack one of the two ways. */
function searchOf({ capabilities: { vector_search, keyword_search } }: Store): Gateway['search'] {
  if (vector_search) return keyword_search ? 'hybrid' : 'vector';
  return keyword_search ? 'keyword' : 'none';
}

const hasKeys = async ({ keys }: Store): Promise<boolean> => (await keys?.hasAny(backgroundCall('start'))) ?? false;

const isLoopback = (address: string): boolean => address === '::1' || address.startsWith('127.');
