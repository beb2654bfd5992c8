import { lookup } from 'node:dns/promises';
import { setTimeout as sleep } from 'node:timers/promises';
import { gatewayCall, type Log } from '#contract';
import { openAuthenticator } from './auth/authenticator.ts';
import { CLOSE_MS, createClosing } from './closing.ts';
import { auditOptions, rateLimitOptions, tokenOptions } from './config/access-options.ts';
import { embeddingOptions } from './config/embedding-options.ts';
import { telemetryOptions } from './config/operation-options.ts';
import { providerOptions } from './config/provider-options.ts';
import type { Config } from './config/schema.ts';
import { openAuditTrail } from './core/audit-trail.ts';
import { compose } from './core/compose.ts';
import { createGate } from './core/gate.ts';
import { createHealth } from './core/health.ts';
import { type Memories, openMemories } from './core/memories.ts';
import { openEmbedder } from './embedding/open.ts';
import { freePort } from './free-port.ts';
import { loopbackHosts } from './http/admission.ts';
import { createApp } from './http/app.ts';
import { listen } from './http/listen.ts';
import { openMetricsPort } from './metrics-port.ts';
import { openRateLimits } from './rate-limit/rate-limits.ts';
import { openProvider } from './registry.ts';
import { createDependencies } from './resilience/dependencies.ts';
import { openTelemetry } from './telemetry/telemetry.ts';

export interface Gateway {
  readonly host: string;
  readonly port: number;
  /** How the backend ranks. */
  readonly search: 'hybrid' | 'vector' | 'keyword' | 'none';
  /** Whether everybody could do everything when it started. */
  readonly open: boolean;
  /** Rejects with an `OmpError` unless the backend answers; it may be asked as often as one likes. */
  check(): Promise<void>;
  /**
   * Says that it is not ready, goes on serving for the configured time, finishes running requests within another one, then
   * writes what waits to be written and closes everything, within `CLOSE_MS`. Rejects with the parts that did not close.
   */
  close(): Promise<void>;
}

export interface ServeOptions {
  /** Ends a start that is under way: it rejects with the signal's reason. */
  readonly stopped?: AbortSignal;
}

/** Opens what is configured, bottom up, and serves it. Rejects with a message an operator can act on, leaving nothing open. */
export async function serve(config: Config, log: Log, { stopped }: ServeOptions = {}): Promise<Gateway> {
  const closing = createClosing(log, stopped);
  try {
    const health = createHealth(config.provider);
    const telemetry = await closing.open('telemetry', openTelemetry(telemetryOptions(config), log));
    await openMetricsPort(config, { health, scrape: telemetry.scrape, log }, closing);
    await freePort(config);
    const dependencies = createDependencies(config.resilience, telemetry, log);
    closing.add('dependencies', async () => dependencies.close());

    const embedder =
      config.search.mode === 'keyword'
        ? undefined
        : await closing.open('embedder', openEmbedder(embeddingOptions(config), log, dependencies.protect));

    const audit = auditOptions(config);
    const max_record_bytes = 2 * config.max_request_bytes;
    const { search: ranking, data_dir } = config;
    const identity = embedder && { model: embedder.model, dimensions: embedder.dimensions };
    const context = { embedder: identity, ranking, audit, data_dir, max_record_bytes, log };
    const opening = openProvider(config.provider, providerOptions(config), context).then((opened) =>
      openMemories(compose(opened, dependencies.protect(opened.name, opened.ping)), embedder, log),
    );
    const provider = await closing.open('provider', opening);
    telemetry.watch({ provider, embedder, breakers: dependencies.states });
    const rate = await closing.open('rate limits', openRateLimits({ ...rateLimitOptions(config), log }));
    const record = config.audit.record === 'writes' ? 'writes' : 'all';
    const trail = openAuditTrail({ audit: audit && provider.audit, record, log });
    closing.add('audit trail', trail.close);

    const { keys, mode } = config.auth;
    const required = mode === 'required';
    const jwt = tokenOptions(config);
    const authenticator = await closing.open(
      'authenticator',
      openAuthenticator({ keys, store: provider.keys, jwt, required, log }),
    );
    const open = await authenticator.isOpen();

    const gate = createGate({ provider, trail, rate_limit_per_minute: config.rate_limit.per_minute ?? null });
    const allowed_hosts = config.allowed_hosts ?? (open ? await namesOf(config.host) : undefined);
    health.begin(gate.ping);
    const app = createApp({ ...config, gate, authenticator, rate, allowed_hosts, health, telemetry, log });
    const listener = await listen(app, { ...config, log });
    const graceMs = config.shutdown_timeout_ms;
    closing.add('listener', () => listener.close({ graceMs, idleMs: IDLE_MS }), graceMs + 1_000);

    const { host, port } = listener;
    if (open && !isLoopback(host)) log.warn({ host }, EVERYBODY);
    if (required && keys.length === 0 && !jwt && !(await hasKeys(provider))) log.warn({}, NOBODY);
    const close = async () => {
      health.drain();
      listener.drain();
      await sleep(config.shutdown_delay_ms);
      await closing.close(graceMs + CLOSE_MS);
    };
    return { host, port, open, search: searchOf(provider), check: health.check, close };
  } catch (error) {
    await closing.close().catch(() => {});
    throw error;
  }
}

/** How long kept connections may still be used once no new ones are taken, in milliseconds: the last answer says so. */
const IDLE_MS = 250;

const EVERYBODY =
  'anybody who reaches this address can read and write: there is no key, and OMP_AUTH is not "required"';
const NOBODY = 'nobody can get in: there is no key; make one with "omp-gateway keys create"';

/** Not what is configured: a backend may lack one of the two. */
function searchOf({ capabilities: { vector_search, keyword_search } }: Memories): Gateway['search'] {
  if (vector_search) return keyword_search ? 'hybrid' : 'vector';
  return keyword_search ? 'keyword' : 'none';
}

const hasKeys = async ({ keys }: Memories): Promise<boolean> => (await keys?.hasAny(gatewayCall('start'))) ?? false;

/**
 * The names an open gateway goes by; undefined: any. On loopback only those of loopback, or a page in a browser on this
 * machine could get at it by a name of its own (DNS rebinding).
 */
async function namesOf(host: string): Promise<readonly string[] | undefined> {
  const { address } = await lookup(host);
  return isLoopback(address) ? [...loopbackHosts, host] : undefined;
}

const isLoopback = (address: string): boolean => address === '::1' || address.startsWith('127.');
