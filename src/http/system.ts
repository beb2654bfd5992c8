import { Hono } from 'hono';
import type { Gate } from '../core/gate.ts';
import type { Env } from './call.ts';

/** What a client asks about the gateway before anything else. */
export const capabilityRoutes = (gate: Gate): Hono<Env> =>
  new Hono<Env>().get('/capabilities', (c) => c.json(gate.description));

/** What an orchestrator asks, over and over. */
export const healthRoutes = (gate: Gate): Hono<Env> =>
  new Hono<Env>().get('/healthz', async (c) => {
    await gate.ping(c.get('call'));
    return c.json({ status: 'ok', provider: gate.provider });
  });
