import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { defineConfig } from 'vite';

const { version } = JSON.parse(readFileSync(join(import.meta.dirname, '../package.json'), 'utf8'));

// Of a build that a test starts it is "test", which would put in Preact's code for development.
process.env.NODE_ENV = 'production';

/** Relative addresses, so that the page also works behind a proxy that strips a path prefix. */
export default defineConfig({
  root: import.meta.dirname,
  base: './',
  define: { __VERSION__: JSON.stringify(version) },
  logLevel: 'warn',
  build: {
    outDir: '../assets/console',
    emptyOutDir: true,
    target: 'es2022',
    assetsInlineLimit: 0,
    modulePreload: false,
  },
});
