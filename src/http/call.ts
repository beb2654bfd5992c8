import type { HttpBindings } from '@hono/node-server';
import type { Context, MiddlewareHandler } from 'hono';
import { type Call, type Log, OmpError } from '#contract';

export interface Env {
  /** Absent when a request is handed to the app in process, without a server. */
  Bindings: Partial<HttpBindings>;
  Variables: { call: Call; log: Log };
}

export const newRequestId = (): string => crypto.randomUUID();

const REQUEST_ID = /^[A-Za-z0-9._-]{1,64}$/;

/**
 * Gives every request its `Call`: an id, taken over from the client where it is well formed, and a signal that fires
 * when the client goes away or the deadline passes. Headers are set before the handler runs: set after it, they would
 * make the server rebuild the response, which costs half the throughput.
 */
export function callMiddleware(log: Log, timeoutMs: number): MiddlewareHandler<Env> {
  return async (c, next) => {
    const controller = new AbortController();
    const given = c.req.header('x-request-id');
    const requestId = given !== undefined && REQUEST_ID.test(given) ? given : newRequestId();
    c.set('call', { requestId, signal: controller.signal });
    c.set('log', log);
    c.header('x-request-id', requestId);

    const deadline = setTimeout(() => controller.abort(timedOut()), timeoutMs);
    const started = performance.now();
    const { outgoing } = c.env ?? {};
    outgoing?.once('close', () => {
      if (!outgoing.writableFinished) controller.abort(clientGone());
      log.info(accessEntry(c, requestId, outgoing, started), 'request');
    });
    try {
      await next();
    } finally {
      clearTimeout(deadline);
    }
  };
}

const timedOut = () => new OmpError('provider_error', 'the request took longer than this gateway allows');
const clientGone = () => new OmpError('provider_error', 'the client closed the connection');

type Outgoing = NonNullable<Env['Bindings']['outgoing']>;

/** The route template stands for the path: ids and query texts do not belong in logs. */
const accessEntry = (c: Context<Env>, requestId: string, outgoing: Outgoing, started: number) => ({
  request_id: requestId,
  method: c.req.method,
  route: c.req.routePath,
  status: outgoing.writableFinished ? outgoing.statusCode : 499,
  ms: Math.round((performance.now() - started) * 100) / 100,
});
