import { Hono } from 'hono';
import { type Log, OmpError } from '#contract';
import type { Health } from '../core/health.ts';
import { UNWATCHED } from '../core/telemetry.ts';
import { callMiddleware, type Env } from './call.ts';
import { errorResponse } from './error-envelope.ts';
import { healthRoutes } from './system.ts';

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
