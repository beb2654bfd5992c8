import { Hono } from 'hono';
import type { Env } from './call.ts';
import { docsPageRoutes } from './docs-page.ts';
import { openApiDocument } from './openapi.ts';

/** The gateway described: `/openapi.json` for machines, `/docs` for people, whose browsers also find it from `/`. */
export const descriptionRoutes = (): Hono<Env> => {
  const document = JSON.stringify(openApiDocument());
  return new Hono<Env>()
    .use('/', async (c, next) => {
      if (c.req.method !== 'GET' || !c.req.header('accept')?.includes('text/html')) return next();
      // Relative, so that it also leads below a prefix that a proxy takes off.
      return c.redirect('docs');
    })
    .get('/openapi.json', (c) => c.body(document, 200, { 'content-type': 'application/json' }))
    .route('/', docsPageRoutes());
};
