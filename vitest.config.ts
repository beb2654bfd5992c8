import { availableParallelism } from 'node:os';
import { configDefaults, defineConfig } from 'vitest/config';
import { BaseSequencer, type TestSpecification } from 'vitest/node';
import { FULL, FULL_ONLY, LIMIT_MS, PATIENCE_MS, SHORT_LIVED } from './test/support/full.ts';

/** Large files come first, as vitest does it, but before them the suites of providers: a small file each, and minutes of work. */
class SuitesFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const sorted = await super.sort(files);
    const isSuite = ({ moduleId }: TestSpecification) => moduleId.includes('/test/providers/');
    return [...sorted.filter(isSuite), ...sorted.filter((file) => !isSuite(file))];
  }
}

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
    // Many files open engines of their own: those of test/postgres/engine.test.ts take 11 s of processor time instead of 19.
    execArgv: [...SHORT_LIVED],
    // Loading the sources anew for each file costs about a second of computing.
    isolate: false,
    // One more than there are cores: many tests wait more than they compute, those of retries 13 of 14 seconds.
    maxWorkers: availableParallelism() + 1,
    sequence: { sequencer: SuitesFirst },
    testTimeout: LIMIT_MS,
    hookTimeout: LIMIT_MS,
    teardownTimeout: 120_000,
    expect: { poll: { timeout: PATIENCE_MS } },
  },
});
