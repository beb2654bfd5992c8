import { Hono } from 'hono';
import { type Log, OmpError, type Provider } from '#contract';
import { limitUnreadBody } from './body.ts';
import { callMiddleware, type Env } from './call.ts';
import { contextRoutes } from './context.ts';
import { descriptionRoutes } from './description.ts';
import { errorResponse } from './error-envelope.ts';
import { memoryRoutes } from './memories.ts';
import { systemRoutes } from './system.ts';

export interface AppOptions {
  /** Already composed: the routes cannot tell native from emulated. */
  readonly provider: Provider;
  readonly log: Log;
  /** Largest request body, in bytes. */
  readonly max_request_bytes: number;
  /** Longest time a request may take, in milliseconds. */
  readonly request_timeout_ms: number;
}

/** The whole HTTP face of the gateway. */
export function createApp({ provider, log, max_request_bytes, request_timeout_ms }: AppOptions): Hono<Env> {
  return new Hono<Env>()
    .use(callMiddleware({ log, provider: provider.name, timeoutMs: request_timeout_ms }))
    .use(limitUnreadBody(max_request_bytes))
    .route('/memories', memoryRoutes(provider, max_request_bytes))
    .route('/context', contextRoutes(provider, max_request_bytes))
    .route('/', systemRoutes(provider))
    .route('/', descriptionRoutes())
    .onError(errorResponse)
    .notFound((c) => errorResponse(new OmpError('not_found', 'no such path or method'), c));
}
