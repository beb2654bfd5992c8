import { Hono } from 'hono';
import type { Provider } from '#contract';
import { toContext } from '../core/context.ts';
import { readJson } from './body.ts';
import type { Env } from './call.ts';
import { parse } from './parse.ts';
import { ContextBody, DEFAULT_TOKEN_BUDGET } from './schemas/requests.ts';
import { supported } from './supported.ts';

/** As many candidates as the widest search shows; more would not change what fits an ordinary budget. */
const CANDIDATES = 100;

/** `POST /context` (README, "Decisions" 10). */
export const contextRoutes = (provider: Provider, maxRequestBytes: number): Hono<Env> =>
  new Hono<Env>().post('/', async (c) => {
    const search = supported(provider, 'context', provider.search);
    const { query, user_id, scope, token_budget } = parse(ContextBody, await readJson(c, maxRequestBytes));
    const limit = Math.min(CANDIDATES, provider.capabilities.max_search_results ?? CANDIDATES);
    const hits = await search(
      { user_id, text: query, tags: [], limit, ...(scope != null && { scope }) },
      c.get('call'),
    );
    return c.json(await toContext(hits, token_budget ?? DEFAULT_TOKEN_BUDGET, new Date()));
  });
