import { defineConfig } from 'vitest/config';

/** `npm run chaos`: real processes that are hurt under load. One file at a time, so that each has the machine to itself. */
export default defineConfig({
  resolve: { conditions: ['source'] },
  ssr: { resolve: { conditions: ['source'] } },
  test: {
    include: ['test/chaos/**/*.test.ts'],
    globalSetup: 'test/chaos/report.ts',
    pool: 'forks',
    fileParallelism: false,
    // Tests wait for events as long as in CI.
    env: { CI: '1' },
    testTimeout: 900_000,
    hookTimeout: 900_000,
  },
});
