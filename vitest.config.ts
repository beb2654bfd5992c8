import { configDefaults, defineConfig } from 'vitest/config';

export default defineConfig({
  resolve: { conditions: ['source'] },
  ssr: { resolve: { conditions: ['source'] } },
  test: {
    include: ['test/**/*.test.ts'],
    // Minutes, and the machine to itself: npm run chaos.
    exclude: [...configDefaults.exclude, 'test/chaos/**'],
    // Worker threads and spawned gateways run what is built.
    globalSetup: 'test/support/prepare.ts',
    pool: 'forks',
    // All cores: many tests wait more than they compute.
    maxWorkers: '100%',
    // First start of an embedded Postgres initialises a whole cluster: seconds on a small machine.
    testTimeout: 60_000,
    hookTimeout: 120_000,
  },
});
