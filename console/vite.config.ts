import { defineConfig } from 'vite';

/** Relative addresses, so that the page also works behind a proxy that strips a path prefix. */
export default defineConfig({
  root: import.meta.dirname,
  base: './',
  logLevel: 'warn',
  build: {
    outDir: '../assets/console',
    emptyOutDir: true,
    target: 'es2022',
    assetsInlineLimit: 0,
    modulePreload: false,
  },
});
