import { defineConfig } from 'vitest/config';

/** `npm run containers`: docker-compose.yml with a real Docker engine. One file at a time: they publish the same ports. */
export default defineConfig({
  resolve: { conditions: ['source'] },
  ssr: { resolve: { conditions: ['source'] } },
  test: {
    include: ['test/containers/**/*.test.ts'],
    globalSetup: 'test/containers/images.ts',
    pool: 'forks',
    fileParallelism: false,
    // Tests wait for events as long as in CI.
    env: { CI: '1' },
    testTimeout: 900_000,
    hookTimeout: 900_000,
  },
});
