// Copies the API page's assets out of the development dependency into the package, so that /docs works offline
// and installing the gateway does not install the page's toolchain.
import { cpSync, mkdirSync } from 'node:fs';
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';

const from = dirname(createRequire(import.meta.url).resolve('swagger-ui-dist/package.json'));
const to = new URL('../assets/swagger-ui/', import.meta.url);
mkdirSync(to, { recursive: true });
for (const file of ['swagger-ui-bundle.js', 'swagger-ui.css', 'favicon-32x32.png', 'LICENSE', 'NOTICE']) {
  cpSync(join(from, file), new URL(file, to));
}
