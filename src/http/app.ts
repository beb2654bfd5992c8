import { type Context, Hono, type MiddlewareHandler } from 'hono';
import { type Log, OmpError } from '#contract';
import type { Authenticator } from '../core/grants.ts';
import { createHealth, type Health } from '../core/health.ts';
import type { RateLimiter } from '../core/rate-limiter.ts';
import { NO_TELEMETRY, type Scrape, type Telemetry } from '../core/telemetry.ts';
import type { ToolName } from '../mcp/names.ts';
import type { Gate } from '../verbs/gate.ts';
import {
  addressReader,
  allowOrigins,
  authenticate,
  callerKey,
  limitConcurrency,
  limitConcurrencyPerCaller,
  limitRequests,
  rejectOtherSites,
  requireHost,
  requireOrigin,
  unlessFollowing,
} from './admission.ts';
import { changeStream } from './change-stream.ts';
import { consoleRoutes } from './console-routes.ts';
import { docsRoutes } from './docs-routes.ts';
import { errorResponse } from './error-envelope.ts';
import { mcpRoutes, resourceMetadata } from './mcp-routes.ts';
import { type Mem0Options, mem0Routes } from './mem0-routes.ts';
import { callMiddleware, type Env, limitUnreadBody, requireText } from './request.ts';
import { verbRoutes } from './verb-routes.ts';

export interface AppOptions {
  /** Routes get no provider, only the session of their caller. */
  readonly gate: Gate;
  readonly authenticator: Authenticator;
  /** Limit requests and failed authentications, per caller or else per client address. */
  readonly rate?: { readonly requests: RateLimiter | undefined; readonly failures: RateLimiter | undefined };
  /** Addresses and ranges of proxies whose `X-Forwarded-For` is trusted; none by default. */
  readonly trusted_proxies?: readonly string[];
  readonly log: Log;
  /** Default: one in the phase `serving`. */
  readonly health?: Health;
  readonly telemetry?: Telemetry;
  /** Concurrency limit of the process; further requests are rejected at once. As many may follow changes. Undefined: no limit. */
  readonly max_requests?: number;
  /** Concurrency limit of one caller; by default half of `max_requests`. */
  readonly max_requests_per_caller?: number | undefined;
  /** Allowed names in `Host`; undefined: any. */
  readonly allowed_hosts?: readonly string[] | undefined;
  /** Origins whose pages may call the gateway, `*` for any; none by default. */
  readonly cors_origins?: readonly string[];
  /** The tools of agents at `/mcp`; off by default. */
  readonly mcp?: { readonly enabled: 'on' | 'off'; readonly tools?: readonly ToolName[] | undefined };
  /** Whether the console is served at `/console/`; off by default. */
  readonly console?: 'on' | 'off';
  /** Another interface, at `/compat/mem0`; off by default. */
  readonly compat?: Mem0Options & { readonly interface?: 'mem0' | undefined };
  /** The identity provider whose tokens are accepted; undefined: none. */
  readonly tokens?: { readonly issuer: string; readonly audience: string } | undefined;
  /** Limit for a request body, in bytes. */
  readonly max_request_bytes: number;
  /** Deadline of a request, in milliseconds. */
  readonly request_timeout_ms: number;
}

/** Public paths, limited per client address. */
const PUBLIC = ['/', '/capabilities', '/openapi.json', '/docs/*', '/console/*', '/.well-known/*'];

/**
 * The public HTTP API. Routes before `authenticate` are public; everything after it needs a caller, unknown paths
 * included. Health routes come before the check of `Host` and before every limit, because probes are frequent and use any
 * address.
 */
export function createApp(options: AppOptions): Hono<Env> {
  const {
    gate,
    authenticator,
    rate,
    trusted_proxies = [],
    log,
    allowed_hosts,
    cors_origins = [],
    console,
    mcp,
    compat,
    tokens,
  } = options;
  const { max_request_bytes, request_timeout_ms, max_requests, telemetry = NO_TELEMETRY } = options;
  const { max_requests_per_caller = max_requests && Math.ceil(max_requests / 2) } = options;
  const health = options.health ?? alreadyServing(gate);
  const consistencyTokens = gate.capabilities.consistency_tokens;
  const addressOf = addressReader(trusted_proxies);
  const addressKey = (c: Context<Env>) => `address:${addressOf(c)}`;

  const app = new Hono<Env>();
  app.use(
    callMiddleware({ log, provider: gate.provider, deadlineMs: request_timeout_ms, consistencyTokens, telemetry }),
  );
  if (cors_origins.length > 0) app.use(allowOrigins(cors_origins));
  app.route('/', healthRoutes(health, gate.provider));
  if (max_requests !== undefined)
    app.use(unlessFollowing(limitConcurrency(max_requests), limitConcurrency(max_requests)));
  if (allowed_hosts) app.use(requireHost(allowed_hosts));
  for (const path of PUBLIC) app.use(path, limitRequests(rate?.requests, addressKey));
  if (max_requests_per_caller !== undefined) {
    const limit = limitConcurrencyPerCaller(max_requests_per_caller, addressKey);
    for (const path of PUBLIC) app.use(path, limit);
  }
  app.get('/capabilities', async (c) => c.json({ ...gate.description, ...(await gate.state()) }));
  app.use('/', redirectBrowsers(console === 'on' ? 'console/' : 'docs'));
  app.route('/', docsRoutes());
  if (console === 'on') app.route('/', consoleRoutes());
  const hasTools = mcp?.enabled === 'on';
  if (hasTools) app.use('/mcp/*', requireOrigin(cors_origins));
  if (hasTools && tokens) app.route('/', resourceMetadata(tokens));

  app.use(rejectOtherSites(cors_origins));
  app.use(authenticate({ gate, authenticator, failures: rate?.failures, addressOf }));
  if (rate?.requests) app.use(limitRequests(rate.requests, callerKey));
  if (max_requests_per_caller !== undefined) {
    const perCaller = () => limitConcurrencyPerCaller(max_requests_per_caller, callerKey);
    app.use(unlessFollowing(perCaller(), perCaller()));
  }
  app.use(requireText);
  app.use(limitUnreadBody(max_request_bytes));
  app.route('/', changeStream(gate));
  app.route('/', verbRoutes(gate, max_request_bytes));
  app.get('/metrics', async (c) => {
    const { type, text } = await gate.metrics(c.get('principal'));
    return c.body(text, 200, { 'content-type': type });
  });
  if (compat?.interface) app.route(`/compat/${compat.interface}`, mem0Routes(gate, max_request_bytes, compat));
  if (hasTools) app.route('/mcp', mcpRoutes({ gate, max_request_bytes, tools: mcp.tools }));
  return withErrors(
    app,
    'no such path or method; /docs describes the API, /capabilities lists what this gateway supports',
  );
}

/** Relative, so that it also works behind a proxy that strips a path prefix. */
const redirectBrowsers =
  (page: string): MiddlewareHandler<Env> =>
  async (c, next) =>
    c.req.method === 'GET' && c.req.header('accept')?.includes('text/html') ? c.redirect(page) : next();

function alreadyServing({ provider, ping }: Gate): Health {
  const health = createHealth(provider);
  health.begin(ping);
  return health;
}

function withErrors(app: Hono<Env>, notFound: string): Hono<Env> {
  app.onError(errorResponse);
  app.notFound((c) => errorResponse(new OmpError('not_found', notFound), c));
  return app;
}

/** Probes of orchestrators and load balancers. */
const healthRoutes = (health: Health, provider: string): Hono<Env> =>
  new Hono<Env>()
    .get('/healthz', async (c) => {
      await c.get('call').unlessAborted(health.check());
      return c.json({ status: 'ok', provider });
    })
    .get('/livez', (c) => c.json({ status: 'ok' }))
    .get('/readyz', async (c) => {
      const status = await readiness(health);
      return c.json({ status }, status === 'ready' ? 200 : 503);
    });

async function readiness(health: Health): Promise<'ready' | 'read-only' | 'unavailable' | 'starting' | 'draining'> {
  const state = await health.check().then(
    () => 'ready' as const,
    (error: unknown) => (error instanceof OmpError && error.frozen ? 'read-only' : 'unavailable'),
  );
  // Read after the check: draining may have begun meanwhile.
  if (health.phase !== 'serving') return health.phase;
  return state;
}

export interface AdminOptions {
  readonly health: Health;
  readonly provider: string;
  /** Undefined: `/metrics` does not exist. */
  readonly scrape: Scrape | undefined;
  readonly log: Log;
}

/** Deadline of a request to the metrics port, in milliseconds. */
const ADMIN_DEADLINE_MS = 10_000;

/**
 * Health and metrics on a port of their own, which opens before the backend is ready. It has no authentication and accepts
 * any `Host`; by default only this machine reaches it.
 */
export function createAdminApp({ health, provider, scrape, log }: AdminOptions): Hono<Env> {
  const app = new Hono<Env>();
  const deadlineMs = ADMIN_DEADLINE_MS;
  app.use(callMiddleware({ log, provider, deadlineMs, consistencyTokens: false, telemetry: NO_TELEMETRY }));
  app.route('/', healthRoutes(health, provider));
  if (scrape) {
    app.get('/metrics', async (c) => {
      const { type, text } = await scrape();
      return c.body(text, 200, { 'content-type': type });
    });
  }
  return withErrors(app, 'no such path or method');
}
