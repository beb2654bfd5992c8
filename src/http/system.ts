import { Hono } from 'hono';
import type { Gate } from '../core/gate.ts';
import type { Health } from '../core/health.ts';
import type { Env } from './call.ts';

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
