import { join } from 'node:path';
import { Hono } from 'hono';
import { OmpError } from '#contract';
import { packageRoot } from '../package.ts';
import { assetReader, pageHeaders } from './page-assets.ts';
import type { Env } from './request.ts';

/** The OpenAPI document at `/openapi.json`, and a page that shows it at `/docs`. */
export const docsRoutes = (): Hono<Env> => {
  let document: string | undefined;
  return new Hono<Env>()
    .get('/openapi.json', async (c) => {
      // Made for its first reader: that takes 60 ms, which every start would wait for.
      const { openApiDocument } = await import('./openapi/document.ts');
      document ??= JSON.stringify(openApiDocument());
      return c.body(document, 200, { 'content-type': 'application/json' });
    })
    .route('/', docsPageRoutes());
};

/** The assets that are files of the package. No other file is ever read. */
const FILES: Readonly<Record<string, string>> = {
  'swagger-ui-bundle.js': 'text/javascript; charset=utf-8',
  'swagger-ui.css': 'text/css; charset=utf-8',
  'favicon-32x32.png': 'image/png',
  LICENSE: 'text/plain; charset=utf-8',
  NOTICE: 'text/plain; charset=utf-8',
};

/** Relative URLs, so that the page also works behind a proxy that strips a path prefix. */
const PAGE = `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>Open Memory Protocol gateway</title>
<link rel="icon" type="image/png" href="docs/favicon-32x32.png">
<link rel="stylesheet" href="docs/swagger-ui.css">
</head>
<body>
<div id="swagger-ui"></div>
<script src="docs/swagger-ui-bundle.js"></script>
<script src="docs/start.js"></script>
</body>
</html>
`;

/** A separate file, because the page allows no inline script. Without `validatorUrl: null` it would call swagger.io. */
const START = `SwaggerUIBundle({ url: new URL('openapi.json', location.href).href, dom_id: '#swagger-ui', validatorUrl: null, deepLinking: true });
`;

/** Public files that change only with a release. */
const CACHED = { 'cache-control': 'public, max-age=3600' };

/** Swagger UI for `/openapi.json`, served from the package. 404 if the package was built without the assets. */
function docsPageRoutes(): Hono<Env> {
  const read = assetReader(join(packageRoot(), 'assets', 'swagger-ui'));
  return new Hono<Env>()
    .use('/docs/*', pageHeaders)
    .get('/docs', async (c) => {
      // Without its script the page would stay blank; a 404 says what is missing.
      await read('swagger-ui-bundle.js');
      return c.body(PAGE, 200, { ...CACHED, 'content-type': 'text/html; charset=utf-8' });
    })
    .get('/docs/start.js', (c) => c.body(START, 200, { ...CACHED, 'content-type': 'text/javascript; charset=utf-8' }))
    .get('/docs/:asset', async (c) => {
      const name = c.req.param('asset');
      const type = Object.hasOwn(FILES, name) ? FILES[name] : undefined;
      if (type === undefined) throw new OmpError('not_found', 'no such path or method');
      return c.body(await read(name), 200, { ...CACHED, 'content-type': type });
    });
}
