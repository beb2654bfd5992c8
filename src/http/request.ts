import type { HttpBindings } from '@hono/node-server';
import type { Context, MiddlewareHandler } from 'hono';
import { matchedRoutes } from 'hono/route';
import { METHOD_NAME_ALL } from 'hono/router';
import { Call, type Caller, type Consistency, invalidRequest, type Log, OmpError, type Trace } from '#contract';
import type { Principal } from '../core/grants.ts';
import type { ObservedRequest, Telemetry } from '../core/telemetry.ts';
import type { Session } from '../verbs/gate.ts';

export interface Env {
  /** Absent when a request is passed to the app in process, without a server. */
  Bindings: Partial<HttpBindings>;
  Variables: {
    call: RequestCall;
    log: Log;
    /** Named in errors about what the provider does not support. */
    provider: string;
    /** Runs verbs for the caller. Set by `authenticate`; without it no route reaches a memory. */
    session: Session;
    /** The caller with its users. Set with `session`. */
    principal: Principal;
    /** URL of the metadata that say which identity provider issues tokens; undefined: none does. */
    resourceMetadata?: string;
  };
}

/** Unread bytes of a response for which a slow client gets another `deadlineMs`. */
const BYTES_PER_DEADLINE = 1024 * 1024;

/**
 * Headers of every response, errors included. Memories belong to one user, so no cache may store them, especially when
 * the credential is in a header that caches do not know. Browsers never sniff JSON, so only pages have `nosniff`: it would
 * cost 2 % of the processor time of a get.
 */
export const COMMON_HEADERS = { 'cache-control': 'no-store' } as const;

const HEADERS = Object.entries(COMMON_HEADERS);

/** Frequent requests of load balancers and monitoring. They are not traced, and logged at debug level. */
export const PROBES: ReadonlySet<string> = new Set(['/healthz', '/livez', '/readyz', '/metrics']);

export const newRequestId = (): string => crypto.randomUUID();

/** An `X-Request-Id` of this form is used as the request's id (Decision 15). */
export const REQUEST_ID = /^[A-Za-z0-9._-]{1,64}$/;

export interface CallOptions {
  readonly log: Log;
  readonly provider: string;
  /** Deadline of a request, in milliseconds. The client has as long again for each MiB of the response. */
  readonly deadlineMs: number;
  /** Whether clients pass consistency tokens from replica to replica. */
  readonly consistencyTokens: boolean;
  readonly telemetry: Telemetry;
}

/**
 * Gives every request its `Call`: an id, taken from the client if it is well formed, and a signal that fires when the
 * client disconnects or the deadline passes. After the handler has answered, the deadline applies to the client, so a
 * client that never reads cannot hold a response forever. Headers are set before the handler runs: set after it, they
 * make the server rebuild the response, which costs half the throughput.
 */
export function callMiddleware({
  log,
  provider,
  deadlineMs,
  consistencyTokens,
  telemetry,
}: CallOptions): MiddlewareHandler<Env> {
  return async (c, next) => {
    const header = c.req.header('x-request-id');
    const requestId = header !== undefined && REQUEST_ID.test(header) ? header : newRequestId();
    const call = new RequestCall(requestId, c);
    const observation = telemetry.request(c.req.method, (name) => c.req.header(name), PROBES.has(c.req.path));
    if (observation.trace) call.trace = observation.trace;
    if (consistencyTokens) call.consistency = consistencyOf(c);
    c.set('call', call);
    c.set('log', log);
    c.set('provider', provider);
    c.header('x-request-id', requestId);
    for (const [name, value] of HEADERS) c.header(name, value);

    const { incoming, outgoing } = c.env ?? {};
    let answered = false;
    /** How many more times the timer may fire before the client must have read the response; undefined: not fired yet. */
    let renewals: number | undefined;
    const deadline = setTimeout(() => {
      // A stream has no deadline as long as its client reads.
      if (call.isIdle || (call.isStream && outgoing?.writableLength === 0)) renewals = undefined;
      else if (!answered) call.abort(incoming?.complete === false ? bodyTooSlow() : tooSlow());
      else if (outgoing) {
        renewals ??= Math.max(1, Math.ceil(outgoing.writableLength / BYTES_PER_DEADLINE));
        if (renewals-- <= 0) outgoing.destroy();
      }
      deadline.refresh();
    }, deadlineMs);
    const startedAt = performance.now();
    outgoing?.once('close', () => {
      clearTimeout(deadline);
      if (!outgoing.writableFinished) call.abort(clientDisconnected());
      call.end();
      endRequest(c, { provider, requestId, outgoing, startedAt, observation, log });
    });
    try {
      await next();
    } finally {
      answered = true;
      if (!outgoing) {
        clearTimeout(deadline);
        call.end();
      }
    }
  };
}

/** The call of a request over HTTP. */
class RequestCall extends Call {
  readonly #context: Context;
  /** The names in `X-Ignored-Fields`. */
  #ignoredNames: Set<string> | undefined = undefined;
  /** Work to do after the answer; null: it was done. */
  #afterAnswer: (() => void)[] | undefined | null = undefined;
  /** For how long the request has waited for events, in milliseconds. */
  idleMs = 0;
  isIdle = false;
  /** Whether the answer is a stream of events, which ends with the client. */
  isStream = false;

  constructor(requestId: string, context: Context) {
    super(requestId);
    this.#context = context;
  }

  override ignored(name: string): void {
    const names = this.#ignoredNames ?? new Set();
    // Work may continue after its request was answered.
    if (names.size === MAX_IGNORED || this.#context.finalized || !IGNORED_NAME.test(name)) return;
    this.#ignoredNames = names.add(name);
    this.#context.header('x-ignored-fields', [...names].join(', '));
  }

  override afterAnswer(work: () => void): void {
    if (this.#afterAnswer === null) work();
    else if (this.#afterAnswer) this.#afterAnswer.push(work);
    else this.#afterAnswer = [work];
  }

  override async idle<Result>(event: Promise<Result>): Promise<Result> {
    const since = performance.now();
    this.isIdle = true;
    try {
      return await event;
    } finally {
      this.isIdle = false;
      this.idleMs += performance.now() - since;
    }
  }

  override inTrace(trace: Trace): Call {
    const call = super.inTrace(trace);
    call.afterAnswer = (work) => this.afterAnswer(work);
    return call;
  }

  end(): void {
    const last = this.#afterAnswer;
    this.#afterAnswer = null;
    for (const work of last ?? []) work();
  }
}

/** The dependency that the request waited for adds its name. */
const tooSlow = () =>
  new OmpError('provider_error', 'the request took longer than this gateway allows', { down: true });
const bodyTooSlow = () => invalidRequest('the request body did not arrive in time');
/** This error only ends the work; no client gets it. */
const clientDisconnected = () => invalidRequest('the client closed the connection');

type Outgoing = NonNullable<Env['Bindings']['outgoing']>;

interface RequestEnd {
  readonly provider: string;
  readonly requestId: string;
  readonly outgoing: Outgoing;
  readonly startedAt: number;
  readonly observation: ObservedRequest;
  readonly log: Log;
}

/**
 * Writes the access log and ends the trace and metrics of the request. The log has the route template instead of the path,
 * because ids and query texts do not belong in logs.
 */
function endRequest(c: Context<Env>, { provider, requestId, outgoing, startedAt, observation, log }: RequestEnd): void {
  const method = c.req.method;
  const route = routeOf(c);
  const status = outgoing.writableFinished ? outgoing.statusCode : 499;
  const { caller, trace, idleMs } = c.get('call');
  const seconds = (performance.now() - startedAt - idleMs) / 1_000;
  observation.end({ method, route, status, seconds, requestId });
  const line = {
    request_id: requestId,
    ...(trace && { trace_id: trace.id }),
    app: loggedName(caller),
    provider,
    method,
    route,
    status,
    ms: Math.round(seconds * 100_000) / 100,
  };
  if (status < 400 && PROBES.has(route)) log.debug?.(line, 'request');
  else log.info(line, 'request');
}

/**
 * The name of a key, or the start of a token's caller id, which is a hash: the subject of a token is often a user id. Null:
 * anonymous.
 */
const loggedName = ({ id, app }: Caller): string | null => (id.startsWith('token:') ? id.slice(0, 22) : app);

/** The route that the method and path match, even if a middleware rejected the request; `unmatched`: none. */
function routeOf(c: Context<Env>): string {
  const route = matchedRoutes(c).find(({ method }) => method !== METHOD_NAME_ALL);
  return route?.path ?? 'unmatched';
}

/** Maximum names in `X-Ignored-Fields`. */
const MAX_IGNORED = 16;
/** What a name may be, because the client chose it. */
const IGNORED_NAME = /^[\w.-]{1,64}$/;

/** The client sends it back with its next request, to any replica (Decision 23). */
const CONSISTENCY_TOKEN = 'X-Consistency-Token';

/** The header of a response that may lack a write that the token of the request names. */
export const CONSISTENCY = 'X-Consistency';

/** Maximum characters of a token. The gateway never issues longer ones. */
const MAX_TOKEN_LENGTH = 1_024;

export function consistencyOf(c: Context): Consistency {
  const token = c.req.header(CONSISTENCY_TOKEN);
  // Work may continue after its request was answered with an error; then the response cannot change any more.
  const setHeader = (name: string, value: string) => {
    if (!c.finalized) c.header(name, value);
  };
  return {
    token: token !== undefined && token.length <= MAX_TOKEN_LENGTH ? token : undefined,
    answer: (newToken) => setHeader(CONSISTENCY_TOKEN, newToken),
    behind: () => setHeader(CONSISTENCY, 'behind'),
  };
}
