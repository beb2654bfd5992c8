import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { defineConfig } from 'vite';

const { version } = JSON.parse(readFileSync(join(import.meta.dirname, '../package.json'), 'utf8'));

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
