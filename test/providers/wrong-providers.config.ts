import { defineConfig } from 'vitest/config';

/** Runs `wrong-providers.suite.ts`, which is no test of the gateway: its tests have to fail. */
export default defineConfig({
  resolve: { conditions: ['source'] },
  ssr: { resolve: { conditions: ['source'] } },
  test: { root: '.', include: ['test/providers/wrong-providers.suite.ts'], pool: 'forks', isolate: false },
});
