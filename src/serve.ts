import { lookup } from 'node:dns/promises';
import type { Log, Provider } from '#contract';
import { openAuthenticator } from './auth/open.ts';
import { ownCall } from './auth/waiting.ts';
import { createClosing } from './closing.ts';
import { auditOptions, rateLimitOptions, tokenOptions } from './config/access-options.ts';
import { embeddingOptions } from './config/embedding-options.ts';
import { providerOptions } from './config/provider-options.ts';
import type { Config } from './config/schema.ts';
import { openAuditTrail } from './core/audit-trail.ts';
import { compose } from './core/compose.ts';
import { createGate } from './core/gate.ts';
import { openEmbedder } from './embedding/open.ts';
import { createApp } from './http/app.ts';
import { loopbackHosts } from './http/host.ts';
import { listen } from './http/listen.ts';
import { openRateLimits } from './rate-limit/open.ts';
import { openProvider } from './registry.ts';

export interface Gateway {
  readonly host: string;
  readonly port: number;
  /** How the backend ranks. */
  readonly search: 'hybrid' | 'vector' | 'keyword' | 'none';
  /** Whether everybody could do everything when it started. */
  readonly open: boolean;
  /** Finishes running requests within the configured time, then writes what waits to be written and closes everything. */
  close(): Promise<void>;
}

/** Opens what is configured, bottom up, and serves it. Rejects with a message an operator can act on, leaving nothing open. */
export async function serve(config: Config, log: Log): Promise<Gateway> {
  const closing = createClosing(log);
  try {
    const embedder = config.search.mode === 'keyword' ? undefined : await openEmbedder(embeddingOptions(config), log);
    if (embedder) closing.add('embedder', embedder.close);

    const audit = auditOptions(config);
    const context = { embedder, ranking: config.search, audit, data_dir: config.data_dir, log };
    const provider = compose(await openProvider(config.provider, providerOptions(config), context));
    closing.add('provider', provider.close);
    const rate = await openRateLimits({ ...rateLimitOptions(config), log });
    closing.add('rate limits', rate.close);
    const record = config.audit.record === 'writes' ? 'writes' : 'all';
    const trail = openAuditTrail({ audit: audit && provider.audit, record, log });
    closing.add('audit trail', trail.close);

    const { keys, mode } = config.auth;
    const required = mode === 'required';
    const jwt = tokenOptions(config);
    const authenticator = await openAuthenticator({ keys, store: provider.keys, jwt, required, log });
    closing.add('authenticator', authenticator.close);
    const open = await authenticator.isOpen();

    const gate = createGate({ provider, trail, rate_limit_per_minute: config.rate_limit.per_minute ?? null });
    const allowed_hosts = config.allowed_hosts ?? (open ? await namesOf(config.host) : undefined);
    const listener = await listen(createApp({ ...config, gate, authenticator, rate, allowed_hosts, log }), {
      ...config,
      log,
    });
    closing.add('listener', () => listener.close(config.shutdown_timeout_ms), config.shutdown_timeout_ms + 1_000);

    const { host, port } = listener;
    if (open && !isLoopback(host)) log.warn({ host }, EVERYBODY);
    if (required && keys.length === 0 && !jwt && !(await hasKeys(provider))) log.warn({}, NOBODY);
    return { host, port, open, search: searchOf(provider), close: closing.close };
  } catch (error) {
    await closing.close().catch(() => {});
    throw error;
  }
}

const EVERYBODY =
  'anybody who reaches this address can read and write: there is no key, and OMP_AUTH is not "required"';
const NOBODY = 'nobody can get in: there is no key; make one with "omp-gateway keys create"';

/** Not what is configured: a backend may lack one of the two. */
function searchOf({ capabilities: { vector_search, keyword_search } }: Provider): Gateway['search'] {
  if (vector_search) return keyword_search ? 'hybrid' : 'vector';
  return keyword_search ? 'keyword' : 'none';
}

const hasKeys = async ({ keys }: Provider): Promise<boolean> => (await keys?.hasAny(ownCall('start'))) ?? false;

/**
 * The names an open gateway goes by; undefined: any. On loopback only those of loopback, or a page in a browser on this
 * machine could get at it by a name of its own (DNS rebinding).
 */
async function namesOf(host: string): Promise<readonly string[] | undefined> {
  const { address } = await lookup(host);
  return isLoopback(address) ? [...loopbackHosts, host] : undefined;
}

const isLoopback = (address: string): boolean => address === '::1' || address.startsWith('127.');
