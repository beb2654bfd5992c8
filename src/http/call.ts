import type { HttpBindings } from '@hono/node-server';
import type { Context, MiddlewareHandler } from 'hono';
import {
  type Call,
  type Caller,
  type Consistency,
  GATEWAY,
  invalidRequest,
  type Log,
  type OmpError,
  providerError,
} from '#contract';
import type { Verbs } from '../core/verbs.ts';
import { consistencyOf } from './consistency.ts';
import { ANSWER_HEADERS } from './security-headers.ts';

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
type OwnCall = Omit<Call, 'caller' | 'consistency'> &
  Required<Pick<Call, 'unlessAborted'>> & { caller: Caller; consistency?: Consistency };

const HEADERS = Object.entries(ANSWER_HEADERS);

export const newRequestId = (): string => crypto.randomUUID();

/** What is taken over of a client's `X-Request-Id` (README, "Decisions" 15). */
export const REQUEST_ID = /^[A-Za-z0-9._-]{1,64}$/;

export interface CallOptions {
  readonly log: Log;
  /** Named when the deadline passes: it is what was waited for. */
  readonly provider: string;
  /** Longest time a request may take, in milliseconds. */
  readonly timeoutMs: number;
  /** Whether clients carry what they wrote from replica to replica. */
  readonly consistencyTokens: boolean;
}

/**
 * Gives every request its `Call`: an id, taken over from the client where it is well formed, and a signal that fires
 * when the client goes away or the deadline passes. Headers are set before the handler runs: set after it, they would
 * make the server rebuild the response, which costs half the throughput.
 */
export function callMiddleware({ log, provider, timeoutMs, consistencyTokens }: CallOptions): MiddlewareHandler<Env> {
  return async (c, next) => {
    const given = c.req.header('x-request-id');
    const requestId = given !== undefined && REQUEST_ID.test(given) ? given : newRequestId();
    const { call, abort } = createCall(requestId);
    if (consistencyTokens) call.consistency = consistencyOf(c);
    c.set('call', call);
    c.set('log', log);
    c.set('provider', provider);
    c.header('x-request-id', requestId);
    for (const [name, value] of HEADERS) c.header(name, value);

    const { incoming, outgoing } = c.env ?? {};
    const deadline = setTimeout(
      () => abort(incoming?.complete === false ? bodyTooSlow() : backendTooSlow(provider)),
      timeoutMs,
    );
    const started = performance.now();
    outgoing?.once('close', () => {
      if (!outgoing.writableFinished) abort(clientGone());
      log.info(accessEntry(c, requestId, outgoing, started), 'request');
    });
    try {
      await next();
    } finally {
      clearTimeout(deadline);
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
  providerError(provider, 'the request took longer than this gateway allows');
const bodyTooSlow = () => invalidRequest('the request body did not arrive in time');
/** Nobody reads it; it only ends the work. */
const clientGone = () => invalidRequest('the client closed the connection');

type Outgoing = NonNullable<Env['Bindings']['outgoing']>;

/**
 * The route template stands for the path: ids and query texts do not belong in logs. `app` is who called: the name of a
 * key or the subject of a token; null while nobody in particular is known.
 */
const accessEntry = (c: Context<Env>, requestId: string, outgoing: Outgoing, started: number) => ({
  request_id: requestId,
  app: c.get('call').caller.app,
  method: c.req.method,
  route: c.req.routePath,
  status: outgoing.writableFinished ? outgoing.statusCode : 499,
  ms: Math.round((performance.now() - started) * 100) / 100,
});
