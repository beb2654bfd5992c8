import { Hono } from 'hono';
import type { Env } from './call.ts';
import { docsPageRoutes } from './docs-page.ts';
import { openApiDocument } from './openapi.ts';

/** The gateway described: `/openapi.json` for machines, `/docs` for people. */
export const descriptionRoutes = (): Hono<Env> => {
  const document = JSON.stringify(openApiDocument());
  return new Hono<Env>()
    .get('/openapi.json', (c) => c.body(document, 200, { 'content-type': 'application/json' }))
    .route('/', docsPageRoutes());
};
