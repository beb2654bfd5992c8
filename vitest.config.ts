import { configDefaults, defineConfig } from 'vitest/config';

/**
 * Left to `npm run test:full`: they take minutes, and check once more, on another store or with more rounds, what a test
 * that always runs decides.
 */
const FULL = [
  'access/{matrix-pinecone,sensitivity}',
  'differential/*sensitivity',
  'differential/pinecone',
  'mapped/{fuzz,plans}',
  'package/image',
  'pinecone/{faults-end-to-end,paging-10000}',
  'pinecone/server-!(limits)',
  'postgres/{reembed,ingestion-*,large-users}',
  'process/{fuzz,ingestion,metrics,outage,reembed,restart-under-load,rolling-restart,unused-packages}',
  'providers/{pinecone-emulator,pinecone-lag}',
].map((file) => `test/${file}.test.ts`);

export default defineConfig({
  resolve: { conditions: ['source'] },
  ssr: { resolve: { conditions: ['source'] } },
  test: {
    include: ['test/**/*.test.ts'],
    // Chaos wants the machine to itself: npm run chaos.
    exclude: [...configDefaults.exclude, 'test/chaos/**', ...(process.env.TEST_FULL ? [] : FULL)],
    // Worker threads and spawned gateways run what is built.
    globalSetup: 'test/support/prepare.ts',
    pool: 'forks',
    // Loading the sources anew for each file costs about a second of computing.
    isolate: false,
    // All cores: many tests wait more than they compute.
    maxWorkers: '100%',
    // Only against what hangs: no test may fail because the machine is busy, and none has a limit of its own.
    testTimeout: 900_000,
    hookTimeout: 900_000,
    teardownTimeout: 120_000,
    expect: { poll: { timeout: 300_000 } },
  },
});
