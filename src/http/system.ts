import { Hono } from 'hono';
import type { Provider } from '#contract';
import { describe } from '../core/describe.ts';
import type { Env } from './call.ts';
import { unsupported } from './supported.ts';

/** What a client or an orchestrator asks about the gateway itself. */
export function systemRoutes(provider: Provider): Hono<Env> {
  const capabilities = describe(provider);
  return new Hono<Env>()
    .get('/capabilities', (c) => c.json(capabilities))
    .get('/healthz', async (c) => {
      await provider.ping(c.get('call'));
      return c.json({ status: 'ok', provider: provider.name });
    })
    .get('/audit', () => {
      throw unsupported(provider, 'audit');
    });
}
