import { defineConfig } from 'vitest/config';

export default defineConfig({
  resolve: { conditions: ['source'] },
  ssr: { resolve: { conditions: ['source'] } },
  test: {
    include: ['test/**/*.test.ts'],
    // Worker threads (embedded Postgres, local embedder) inherit these flags, so they too run from source.
    pool: 'forks',
    execArgv: ['--import', 'tsx', '--conditions=source'],
    // First start of an embedded Postgres initialises a whole cluster: seconds on a small machine.
    testTimeout: 60_000,
    hookTimeout: 120_000,
  },
});
