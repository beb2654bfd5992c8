import { join } from 'node:path';
import { providerTests } from 'omp-gateway/provider-tests';
import { describe } from 'vitest';
import provider from '../src/index.ts';
import { NO_CHROMA, startChroma } from './chroma-server.ts';

describe.skipIf(NO_CHROMA !== '')(`the provider for Chroma${NO_CHROMA && ` (${NO_CHROMA})`}`, () => {
  providerTests(provider, async (folder) => {
    const { url, kill } = await startChroma(join(folder, 'chroma'));
    return { mode: 'vector', options: { url }, close: kill };
  });
});
