import { Hono } from 'hono';
import { readJson } from './body.ts';
import type { Env } from './call.ts';
import { parse } from './parse.ts';
import { ContextBody, DEFAULT_TOKEN_BUDGET } from './schemas/requests.ts';
import { supported } from './supported.ts';

/** `POST /context` (Decision 10). */
export const contextRoutes = (maxRequestBytes: number): Hono<Env> =>
  new Hono<Env>().post('/', async (c) => {
    const context = supported(c, 'context');
    const { query, user_id, scope, token_budget, min_score } = parse(ContextBody, await readJson(c, maxRequestBytes));
    return c.json(
      await context(
        { user_id, text: query, tags: [], ...(scope != null && { scope }) },
        { budget: token_budget ?? DEFAULT_TOKEN_BUDGET, min_score: min_score ?? undefined },
        c.get('call'),
      ),
    );
  });
