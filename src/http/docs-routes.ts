import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { Hono } from 'hono';
import { secureHeaders } from 'hono/secure-headers';
import { OmpError } from '#contract';
import { packageRoot } from '../package-root.ts';
import { openApiDocument } from './openapi/document.ts';
import type { Env } from './request.ts';

/** The gateway described: `/openapi.json` for machines, `/docs` for people, whose browsers also find it from `/`. */
export const docsRoutes = (): Hono<Env> => {
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

/** The assets that are files of the package; nothing else is ever read. */
const FILES: Readonly<Record<string, string>> = {
  'swagger-ui-bundle.js': 'text/javascript; charset=utf-8',
  'swagger-ui.css': 'text/css; charset=utf-8',
  'favicon-32x32.png': 'image/png',
  LICENSE: 'text/plain; charset=utf-8',
  NOTICE: 'text/plain; charset=utf-8',
};

/** Relative addresses, so that the page also works below a prefix that a proxy takes off. */
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

/** A file of its own, because the page allows no inline script. Without `validatorUrl` it would report to swagger.io. */
const START = `SwaggerUIBundle({ url: new URL('openapi.json', location.href).href, dom_id: '#swagger-ui', validatorUrl: null, deepLinking: true });
`;

/** The same for everybody, and changed by nothing but another release. */
const CACHED = { 'cache-control': 'public, max-age=3600' };

/** `/docs`: Swagger UI over `/openapi.json`, from the package alone. 404 where the package was not built with its assets. */
export function docsPageRoutes(): Hono<Env> {
  const read = assetReader(join(packageRoot(), 'assets', 'swagger-ui'));
  return new Hono<Env>()
    .use('/docs/*', pageHeaders)
    .get('/docs', async (c) => {
      // A page without its script would stay blank; better to say what is missing.
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

/** Reads each file once, at its first request. */
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
 * For pages: everything from this origin, no inline script, no frame around it. Swagger UI's style sheet carries images
 * as data. Whether to insist on TLS is for whoever terminates it; what browsers take over TLS alone is left out, since
 * elsewhere they complain of it.
 */
export const pageHeaders = secureHeaders({
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
