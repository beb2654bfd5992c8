import { type Context, Hono } from 'hono';
import { type Log, OmpError } from '#contract';
import type { Gate } from '../core/gate.ts';
import { createHealth, type Health } from '../core/health.ts';
import { ANYBODY, type Authenticator } from '../core/principal.ts';
import type { RateLimiter } from '../core/rate-limiter.ts';
import { type Telemetry, UNWATCHED } from '../core/telemetry.ts';
import {
  addressReader,
  allowOrigins,
  authenticate,
  limitAtOnce,
  limitRequests,
  limitShare,
  requireHost,
} from './admission.ts';
import { docsRoutes } from './docs-routes.ts';
import { errorResponse } from './errors.ts';
import { limitUnreadBody } from './input.ts';
import { callMiddleware, type Env } from './request.ts';
import { auditRoutes, contextRoutes, memoryRoutes } from './routes.ts';

export interface AppOptions {
  /** The routes see no provider, only what a caller may do with it. */
  readonly gate: Gate;
  readonly authenticator: Authenticator;
  /** What is counted, per caller or else per client address: requests, and failed authentications. */
  readonly rate?: { readonly requests: RateLimiter | undefined; readonly failures: RateLimiter | undefined };
  /** Addresses and ranges of the proxies whose `X-Forwarded-For` is believed; none by default. */
  readonly trusted_proxies?: readonly string[];
  readonly log: Log;
  /** Defaults to one that is serving. */
  readonly health?: Health;
  readonly telemetry?: Telemetry;
  /** Most requests that are worked on at once; what comes on top is refused at once. Unset: any number. */
  readonly max_requests?: number;
  /** Most of them of one caller; by default half. */
  readonly max_requests_per_caller?: number | undefined;
  /** Names by which the gateway may be called; undefined: any. */
  readonly allowed_hosts?: readonly string[] | undefined;
  /** Origins whose pages may call it, `*` for any; none by default. */
  readonly cors_origins?: readonly string[];
  /** Largest request body, in bytes. */
  readonly max_request_bytes: number;
  /** Longest time a request may take, in milliseconds. */
  readonly request_timeout_ms: number;
}

const NOT_FOUND = 'no such path or method; /docs describes all of them, /capabilities what this gateway can do';

/** Open to everybody, hence counted by address. */
const PUBLIC = ['/', '/capabilities', '/openapi.json', '/docs/*'];

/**
 * The whole HTTP face of the gateway. What stands before `authenticate` is for everybody; nothing after it is reached
 * without a caller, an unknown path neither. Probes ask often, and by whatever address they know: `/healthz` stands
 * before the check of the host and before any limit.
 */
export function createApp(options: AppOptions): Hono<Env> {
  const { gate, authenticator, rate, trusted_proxies = [], log, allowed_hosts, cors_origins = [] } = options;
  const { max_request_bytes, request_timeout_ms, max_requests, telemetry = UNWATCHED } = options;
  const { max_requests_per_caller = max_requests && Math.ceil(max_requests / 2) } = options;
  const health = options.health ?? alreadyServing(gate);
  const consistencyTokens = gate.capabilities.consistency_tokens;
  const addressOf = addressReader(trusted_proxies);
  const ofAddress = (c: Context<Env>) => `address:${addressOf(c)}`;
  const ofCaller = (c: Context<Env>) => {
    const { id } = c.get('call').caller;
    return id === ANYBODY.id ? ofAddress(c) : id;
  };

  const app = new Hono<Env>();
  app.use(
    callMiddleware({ log, provider: gate.provider, timeoutMs: request_timeout_ms, consistencyTokens, telemetry }),
  );
  if (cors_origins.length > 0) app.use(allowOrigins(cors_origins));
  app.route('/', healthRoutes(health, gate.provider));
  if (max_requests !== undefined) app.use(limitAtOnce(max_requests));
  if (allowed_hosts) app.use(requireHost(allowed_hosts));
  for (const path of PUBLIC) app.use(path, limitRequests(rate?.requests, ofAddress));
  if (max_requests_per_caller !== undefined) {
    const share = limitShare(max_requests_per_caller, ofAddress);
    for (const path of PUBLIC) app.use(path, share);
  }
  app.route('/', capabilityRoutes(gate));
  app.route('/', docsRoutes());

  app.use(authenticate({ gate, authenticator, failures: rate?.failures, addressOf }));
  if (rate?.requests) app.use(limitRequests(rate.requests, ofCaller));
  if (max_requests_per_caller !== undefined) app.use(limitShare(max_requests_per_caller, ofCaller));
  app.use(limitUnreadBody(max_request_bytes));
  app.route('/memories', memoryRoutes(gate.capabilities, max_request_bytes));
  app.route('/context', contextRoutes(max_request_bytes));
  app.route('/audit', auditRoutes());
  app.onError(errorResponse);
  app.notFound((c) => errorResponse(new OmpError('not_found', NOT_FOUND), c));
  return app;
}

function alreadyServing({ provider, ping }: Gate): Health {
  const health = createHealth(provider);
  health.begin(ping);
  return health;
}

/** What a client asks about the gateway before anything else. */
export const capabilityRoutes = (gate: Gate): Hono<Env> =>
  new Hono<Env>().get('/capabilities', (c) => c.json(gate.description));

/** What an orchestrator asks, over and over: whether the backend answers, whether the process does, whether to send requests. */
export const healthRoutes = (health: Health, provider: string): Hono<Env> =>
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

async function readiness(health: Health): Promise<'ready' | 'unavailable' | 'starting' | 'draining'> {
  const answers = await health.check().then(
    () => true,
    () => false,
  );
  // Looked at afterwards: it may have been told to stop meanwhile.
  if (health.phase !== 'serving') return health.phase;
  return answers ? 'ready' : 'unavailable';
}

export interface AdminOptions {
  readonly health: Health;
  readonly provider: string;
  /** All measures, and their media type; undefined: none are taken. */
  readonly measures: (() => Promise<{ readonly type: string; readonly text: string }>) | undefined;
  readonly log: Log;
}

/** Longest time to take measures, in milliseconds. */
const TIMEOUT_MS = 10_000;

/**
 * What those who operate the gateway ask, on a port of its own that is there from the start on. It is open to whoever
 * reaches it, by whatever name: by default that is this machine alone.
 */
export function createAdminApp({ health, provider, measures, log }: AdminOptions): Hono<Env> {
  const app = new Hono<Env>();
  app.use(callMiddleware({ log, provider, timeoutMs: TIMEOUT_MS, consistencyTokens: false, telemetry: UNWATCHED }));
  app.route('/', healthRoutes(health, provider));
  if (measures) {
    app.get('/metrics', async (c) => {
      const { type, text } = await measures();
      return c.body(text, 200, { 'content-type': type });
    });
  }
  app.onError(errorResponse);
  app.notFound((c) => errorResponse(new OmpError('not_found', 'no such path or method'), c));
  return app;
}
