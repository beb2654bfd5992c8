import { configDefaults, defineConfig } from 'vitest/config';
import { FULL, FULL_ONLY, LIMIT_MS, PATIENCE_MS } from './test/support/full.ts';

export default defineConfig({
  resolve: { conditions: ['source'] },
  ssr: { resolve: { conditions: ['source'] } },
  test: {
    // Its export `source` is TypeScript, which Node does not load from a package.
    server: {
      deps: { inline: ['eventsource-parser', /@modelcontextprotocol\/client/, /@ai-sdk/, /node_modules\/ai\//] },
    },
    include: ['test/**/*.test.ts'],
    // Chaos wants the machine to itself: npm run chaos. Containers need an engine: npm run containers.
    exclude: [...configDefaults.exclude, 'test/chaos/**', 'test/containers/**', ...(FULL ? [] : FULL_ONLY)],
    // Worker threads and spawned gateways run what is built.
    globalSetup: 'test/support/prepare.ts',
    pool: 'forks',
    // Loading the sources anew for each file costs about a second of computing.
    isolate: false,
    // All cores: many tests wait more than they compute.
    maxWorkers: '100%',
    testTimeout: LIMIT_MS,
    hookTimeout: LIMIT_MS,
    teardownTimeout: 120_000,
    expect: { poll: { timeout: PATIENCE_MS } },
  },
});
