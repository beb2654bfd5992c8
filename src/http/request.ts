import type { HttpBindings } from '@hono/node-server';
import type { Context, MiddlewareHandler } from 'hono';
import { matchedRoutes } from 'hono/route';
import { METHOD_NAME_ALL } from 'hono/router';
import {
  type Call,
  type Caller,
  type Consistency,
  GATEWAY,
  invalidRequest,
  type Log,
  OmpError,
  type Trace,
} from '#contract';
import { PROBES } from '../core/health.ts';
import type { FollowedRequest, Telemetry } from '../core/telemetry.ts';
import type { Verbs } from '../core/verbs.ts';

export interface Env {
  /** Absent when a request is handed to the app in process, without a server. */
  Bindings: Partial<HttpBindings>;
  Variables: {
    call: OwnCall;
    log: Log;
    /** Named by errors that come from what the backend cannot do. */
    provider: string;
    /** What the caller may do; there once the caller is known, and without it no route reaches a memory. */
    verbs: Verbs;
  };
}

/** The caller is found out after the call has begun. */
type OwnCall = Omit<Call, 'caller' | 'consistency' | 'trace'> &
  Required<Pick<Call, 'unlessAborted' | 'waiting'>> & { caller: Caller; consistency?: Consistency; trace?: Trace };

/** Of an answer, for which a client that takes it slowly has the time of a request once more. */
const PATIENCE_BYTES = 1024 * 1024;

/**
 * On every answer, errors included: memories belong to one user, and no cache between may keep them, least of all where
 * the key comes in a header that caches do not know. Browsers never take JSON for something else, so that `nosniff` is
 * left to pages: it would cost 2 % of the processor time of a get.
 */
export const ANSWER_HEADERS = { 'cache-control': 'no-store' } as const;

const HEADERS = Object.entries(ANSWER_HEADERS);

export const newRequestId = (): string => crypto.randomUUID();

/** What is taken over of a client's `X-Request-Id` (Decision 15). */
export const REQUEST_ID = /^[A-Za-z0-9._-]{1,64}$/;

export interface CallOptions {
  readonly log: Log;
  /** Named when the deadline passes: it is what was waited for. */
  readonly provider: string;
  /** Longest time a request may take, and as much again for each MiB begun of its answer to be taken, in milliseconds. */
  readonly timeoutMs: number;
  /** Whether clients carry what they wrote from replica to replica. */
  readonly consistencyTokens: boolean;
  readonly telemetry: Telemetry;
}

/**
 * Gives every request its `Call`: an id, taken over from the client where it is well formed, and a signal that fires
 * when the client goes away or the deadline passes. After the answer the deadline is one for the client to take it: who
 * never reads holds no answer for ever. Headers are set before the handler runs: set after it, they would
 * make the server rebuild the response, which costs half the throughput.
 */
export function callMiddleware({
  log,
  provider,
  timeoutMs,
  consistencyTokens,
  telemetry,
}: CallOptions): MiddlewareHandler<Env> {
  return async (c, next) => {
    const given = c.req.header('x-request-id');
    const requestId = given !== undefined && REQUEST_ID.test(given) ? given : newRequestId();
    const { call, abort } = createCall(requestId);
    const followed = telemetry.request(c.req.method, (name) => c.req.header(name), c.req.path);
    if (followed.trace) call.trace = followed.trace;
    if (consistencyTokens) call.consistency = consistencyOf(c);
    c.set('call', call);
    c.set('log', log);
    c.set('provider', provider);
    c.header('x-request-id', requestId);
    for (const [name, value] of HEADERS) c.header(name, value);

    const { incoming, outgoing } = c.env ?? {};
    let answered = false;
    /** Times of a request that are left for the answer to be taken; undefined until the first has passed. */
    let left: number | undefined;
    const deadline = setTimeout(() => {
      if (!answered) abort(incoming?.complete === false ? bodyTooSlow() : backendTooSlow(call.waiting.on ?? provider));
      else if (outgoing) {
        left ??= Math.max(1, Math.ceil(outgoing.writableLength / PATIENCE_BYTES));
        if (left-- <= 0) outgoing.destroy();
      }
      deadline.refresh();
    }, timeoutMs);
    const started = performance.now();
    outgoing?.once('close', () => {
      clearTimeout(deadline);
      if (!outgoing.writableFinished) abort(clientGone());
      endOf(c, { provider, requestId, outgoing, started, followed, log });
    });
    try {
      await next();
    } finally {
      answered = true;
      if (!outgoing) clearTimeout(deadline);
    }
  };
}

/**
 * Most requests end without anybody having looked at their signal, and making one takes a sixth of the time of a whole
 * get: it is made when it is asked for. (Racing the whole handler instead would be simpler, but keeps what a request
 * allocates alive long enough to be promoted to the old heap: four times the garbage collection.)
 */
function createCall(requestId: string) {
  let controller: AbortController | undefined;
  let reason: OmpError | undefined;
  const waiting: ((reason: OmpError) => void)[] = [];
  const call: OwnCall = {
    requestId,
    // Until it is known who calls: what happens before is the gateway's own doing.
    caller: GATEWAY,
    waiting: { on: undefined },
    get signal() {
      controller ??= new AbortController();
      if (reason && !controller.signal.aborted) controller.abort(reason);
      return controller.signal;
    },
    unlessAborted: <Result>(work: Promise<Result>) =>
      new Promise<Result>((resolve, reject) => {
        work.then(resolve, reject);
        if (reason) reject(reason);
        else waiting.push(reject);
      }),
  };
  const abort = (error: OmpError) => {
    reason ??= error;
    controller?.abort(reason);
    for (const reject of waiting.splice(0)) reject(reason);
  };
  return { call, abort };
}

const backendTooSlow = (provider: string) =>
  new OmpError('provider_error', 'the request took longer than this gateway allows', { provider, down: true });
const bodyTooSlow = () => invalidRequest('the request body did not arrive in time');
/** Nobody reads it; it only ends the work. */
const clientGone = () => invalidRequest('the client closed the connection');

type Outgoing = NonNullable<Env['Bindings']['outgoing']>;

interface Ended {
  readonly provider: string;
  readonly requestId: string;
  readonly outgoing: Outgoing;
  readonly started: number;
  readonly followed: FollowedRequest;
  readonly log: Log;
}

/**
 * The access log, and the end of what follows the request. The route template stands for the path: ids and query texts
 * do not belong in logs. `app` is who called: the name of a key or the subject of a token; null while nobody in
 * particular is known.
 */
function endOf(c: Context<Env>, { provider, requestId, outgoing, started, followed, log }: Ended): void {
  const method = c.req.method;
  const route = routeOf(c);
  const status = outgoing.writableFinished ? outgoing.statusCode : 499;
  const seconds = (performance.now() - started) / 1_000;
  followed.end({ method, route, status, seconds, requestId });
  const { caller, trace } = c.get('call');
  const line = {
    request_id: requestId,
    ...(trace && { trace_id: trace.id }),
    app: caller.app,
    provider,
    method,
    route,
    status,
    ms: Math.round(seconds * 100_000) / 100,
  };
  if (status < 400 && PROBES.has(route)) log.debug?.(line, 'request');
  else log.info(line, 'request');
}

/** Where a request was going, also if it was refused on the way there; `unmatched` if there is no such method and path. */
function routeOf(c: Context<Env>): string {
  const route = matchedRoutes(c).find(({ method }) => method !== METHOD_NAME_ALL);
  return route?.path ?? 'unmatched';
}

/** What a client sends back with its next request, to whichever replica (Decision 23). */
export const CONSISTENCY_TOKEN = 'X-Consistency-Token';

/** On an answer that may lack what the token of the request names. */
export const CONSISTENCY = 'X-Consistency';

/** Longer ones were never ours. */
const LONGEST_TOKEN = 1_024;

export function consistencyOf(c: Context): Consistency {
  const token = c.req.header(CONSISTENCY_TOKEN);
  // Work may go on after its request was answered with an error, and then has nobody to tell.
  const tell = (name: string, value: string) => {
    if (!c.finalized) c.header(name, value);
  };
  return {
    token: token !== undefined && token.length <= LONGEST_TOKEN ? token : undefined,
    answer: (given) => tell(CONSISTENCY_TOKEN, given),
    behind: () => tell(CONSISTENCY, 'behind'),
  };
}
