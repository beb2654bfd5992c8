import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { Hono } from 'hono';
import { secureHeaders } from 'hono/secure-headers';
import { OmpError } from '#contract';
import { packageRoot } from '../package.ts';
import { openApiDocument } from './openapi/document.ts';
import type { Env } from './request.ts';

/** The OpenAPI document at `/openapi.json`, and a page that shows it at `/docs`; browsers are redirected there from `/`. */
export const docsRoutes = (): Hono<Env> => {
  const document = JSON.stringify(openApiDocument());
  return new Hono<Env>()
    .use('/', async (c, next) => {
      if (c.req.method !== 'GET' || !c.req.header('accept')?.includes('text/html')) return next();
      // Relative, so that it also works behind a proxy that strips a path prefix.
      return c.redirect('docs');
    })
    .get('/openapi.json', (c) => c.body(document, 200, { 'content-type': 'application/json' }))
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

/** Reads each file once, on its first request. */
function assetReader(folder: string): (name: string) => Promise<Uint8Array<ArrayBuffer>> {
  const contents = new Map<string, Uint8Array<ArrayBuffer>>();
  return async (name) => {
    const known = contents.get(name);
    if (known) return known;
    try {
      const content = await readFile(join(folder, name));
      contents.set(name, content);
      return content;
    } catch (cause) {
      throw new OmpError('not_found', 'the assets of this page are not installed', { cause });
    }
  };
}

/**
 * Headers of pages: everything from this origin, no inline script, no frames. Swagger UI's style sheet has images as data
 * URLs. HSTS is left to the proxy that terminates TLS, and headers that browsers only accept over TLS are left out.
 */
const pageHeaders = secureHeaders({
  contentSecurityPolicy: {
    defaultSrc: ["'none'"],
    scriptSrc: ["'self'"],
    styleSrc: ["'self'"],
    imgSrc: ["'self'", 'data:'],
    connectSrc: ["'self'"],
    baseUri: ["'none'"],
    formAction: ["'none'"],
    frameAncestors: ["'none'"],
  },
  xFrameOptions: 'DENY',
  permissionsPolicy: { camera: [], geolocation: [], microphone: [], payment: [], usb: [] },
  strictTransportSecurity: false,
  crossOriginOpenerPolicy: false,
  originAgentCluster: false,
});
