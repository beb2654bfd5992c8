import { rm } from 'node:fs/promises';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { Provider, ProviderContext } from '#contract';
import { PROVIDER_NAMES } from '../../src/config/provider-names.ts';
import { compose } from '../../src/core/compose.ts';
import { describe as document } from '../../src/core/describe.ts';
import { openProvider } from '../../src/registry.ts';
import { hashingEmbedder } from '../support/hashing-embedder.ts';
import { makeDataDir, recordingLog } from '../support/subject.ts';

const MODES = ['hybrid', 'vector', 'keyword'] as const;

let data_dir: string;
beforeAll(async () => {
  data_dir = await makeDataDir();
});
afterAll(() => rm(data_dir, { recursive: true, force: true }));

const opened = async <Result>(
  name: (typeof PROVIDER_NAMES)[number],
  options: object,
  mode: (typeof MODES)[number],
  use: (provider: Provider) => Result,
): Promise<Result> => {
  const context: ProviderContext = {
    embedder: mode === 'keyword' ? undefined : hashingEmbedder(),
    ranking: { mode, keyword_weight: 0.5 },
    data_dir,
    log: recordingLog(),
  };
  const provider = await openProvider(name, options, context);
  try {
    return use(provider);
  } finally {
    await provider.close();
  }
};

/** What changes between providers and modes; everything else is the same for all. */
const FULL = {
  omp_version: '0.1',
  verbs: ['add', 'search', 'get', 'update', 'delete', 'list', 'context'],
  features: {
    graph_queries: false,
    temporal: true,
    max_content_length: null,
    supports_audit: false,
    supports_supersession: true,
  },
  limits: { rate_limit_per_minute: null, max_search_results: 100 },
};
const SUBJECTS = [
  { provider: 'memory', options: {}, scopes: 'native' },
  { provider: 'memory', options: { scopes: 'none' }, scopes: 'tags' },
  { provider: 'postgres', options: {}, scopes: 'native' },
] as const;

describe('the capability document', () => {
  it('is known here for every provider', () => {
    expect(new Set(SUBJECTS.map(({ provider }) => provider))).toEqual(new Set(PROVIDER_NAMES));
  });

  for (const mode of MODES) {
    it.each(SUBJECTS)(`of $provider $options in ${mode} mode`, async ({ provider, options, scopes }) => {
      // A folder that holds vectors is not opened with another model, but without any.
      const declared = await opened(provider, options, mode, (bare) => [document(bare), document(compose(bare))]);
      for (const each of declared) {
        expect(each).toEqual({
          ...FULL,
          provider,
          features: { ...FULL.features, vector_search: mode !== 'keyword', keyword_search: mode !== 'vector', scopes },
        });
      }
    });
  }

  it('says no more than the provider has', async () => {
    const least = await opened('memory', {}, 'hybrid', ({ name, capabilities, add, get, ping, close }) =>
      document({ name, capabilities, add, get, ping, close }),
    );
    expect(least.verbs).toEqual(['add', 'get']);
    const searchless = await opened('memory', {}, 'hybrid', ({ search: _, ...rest }) => document(rest));
    expect(searchless.verbs).toEqual(['add', 'get', 'update', 'delete', 'list']);
  });

  it.each([
    [null, 100],
    [50, 50],
    [100, 100],
    [1000, 100],
  ])('of a provider that returns at most %j says at most %j', async (max_search_results, said) => {
    const { limits } = await opened('memory', {}, 'hybrid', (provider) =>
      document({ ...provider, capabilities: { ...provider.capabilities, max_search_results } }),
    );
    expect(limits.max_search_results).toBe(said);
  });
});
