import { readdirSync } from 'node:fs';
import { extname, join } from 'node:path';
import { Hono } from 'hono';
import { OmpError } from '#contract';
import { packageRoot } from '../package.ts';
import { assetReader, pageHeaders } from './page-assets.ts';
import type { Env } from './request.ts';

const TYPES: Readonly<Record<string, string>> = {
  '.js': 'text/javascript; charset=utf-8',
  '.css': 'text/css; charset=utf-8',
  '.svg': 'image/svg+xml',
};

/**
 * The console at `/console/`: files of the package, built from `console/`. It is public and has no data: its page calls the
 * HTTP interface with its user's key.
 */
export function consoleRoutes(): Hono<Env> {
  const folder = join(packageRoot(), 'assets', 'console');
  const read = assetReader(folder);
  return (
    new Hono<Env>()
      .use('/console/*', pageHeaders)
      // Relative, so that it also works behind a proxy that strips a path prefix.
      .get('/console', (c) => c.redirect('console/'))
      .get('/console/', async (c) =>
        c.body(await read('index.html'), 200, {
          'cache-control': 'no-cache',
          'content-type': 'text/html; charset=utf-8',
        }),
      )
      .get('/console/assets/:asset', async (c) => {
        const name = c.req.param('asset');
        const type = TYPES[extname(name)];
        // The name must be in the folder, so no path leads out of it.
        if (type === undefined || !readdirSync(join(folder, 'assets')).includes(name)) {
          throw new OmpError('not_found', 'no such path or method');
        }
        // The name changes with the content.
        const headers = { 'cache-control': 'public, max-age=31536000, immutable', 'content-type': type };
        return c.body(await read(join('assets', name)), 200, headers);
      })
  );
}
