import { rm } from 'node:fs/promises';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { Provider } from '#contract';
import { PROVIDER_NAMES } from '../../src/config/provider-names.ts';
import { compose } from '../../src/core/compose.ts';
import { describe as document } from '../../src/core/describe.ts';
import { openProvider } from '../../src/registry.ts';
import { hashingEmbedder } from '../support/hashing-embedder.ts';
import { contextOf } from '../support/requests.ts';
import { makeDataDir, RECORDED } from '../support/subject.ts';

const MODES = ['hybrid', 'vector', 'keyword'] as const;

let data_dir: string;
beforeAll(async () => {
  data_dir = await makeDataDir();
});
afterAll(() => rm(data_dir, { recursive: true, force: true }));

interface Opening {
  readonly name: (typeof PROVIDER_NAMES)[number];
  readonly options?: object;
  readonly mode?: (typeof MODES)[number];
  readonly recorded?: boolean;
}

const opened = async <Result>(opening: Opening, use: (provider: Provider) => Result): Promise<Result> => {
  const { name, options = {}, mode = 'hybrid', recorded = true } = opening;
  const context = contextOf({
    embedder: mode === 'keyword' ? undefined : hashingEmbedder(),
    ranking: { mode, keyword_weight: 0.5 },
    audit: recorded ? RECORDED : undefined,
    data_dir,
  });
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
  features: {
    graph_queries: false,
    temporal: true,
    max_content_length: null,
    supports_supersession: true,
    idempotency: true,
  },
  limits: { rate_limit_per_minute: null, max_search_results: 100 },
};
const VERBS = ['add', 'search', 'get', 'update', 'delete', 'list', 'context'];
const SUBJECTS = [
  { provider: 'memory', options: {}, scopes: 'native', audited: true },
  { provider: 'memory', options: { scopes: 'none' }, scopes: 'tags', audited: false },
  { provider: 'postgres', options: {}, scopes: 'native', audited: true },
] as const;

describe('the capability document', () => {
  it('is known here for every provider', () => {
    expect(new Set(SUBJECTS.map(({ provider }) => provider))).toEqual(new Set(PROVIDER_NAMES));
  });

  for (const mode of MODES) {
    it.each(SUBJECTS)(`of $provider $options in ${mode} mode`, async ({ provider, options, scopes, audited }) => {
      // A folder that holds vectors is not opened with another model, but without any.
      const declared = await opened({ name: provider, options, mode }, (bare) => [
        document(bare, null),
        document(compose(bare), null),
      ]);
      for (const each of declared) {
        expect(each).toEqual({
          ...FULL,
          provider,
          verbs: audited ? [...VERBS, 'audit'] : VERBS,
          features: {
            ...FULL.features,
            vector_search: mode !== 'keyword',
            keyword_search: mode !== 'vector',
            scopes,
            supports_audit: audited,
          },
        });
      }
    });
  }

  it('says no more than the provider has', async () => {
    const least = await opened({ name: 'memory' }, ({ name, capabilities, add, get, ping, close }) =>
      document({ name, capabilities, add, get, ping, close }, null),
    );
    expect(least.verbs).toEqual(['add', 'get']);
    expect(least.features).toMatchObject({ supports_audit: false, idempotency: false });
    const searchless = await opened({ name: 'memory' }, ({ search: _, ...rest }) => document(rest, null));
    expect(searchless.verbs).toEqual(['add', 'get', 'update', 'delete', 'list', 'audit']);
  });

  it.each(PROVIDER_NAMES)('of %s names no audit where nothing is recorded', async (name) => {
    const { verbs, features } = await opened({ name, mode: 'keyword', recorded: false }, (bare) =>
      document(bare, null),
    );
    expect(verbs).toEqual(VERBS);
    expect(features.supports_audit).toBe(false);
  });

  it.each([null, 1, 600])('says that %j requests a minute are served', async (limit) => {
    const { limits } = await opened({ name: 'memory' }, (bare) => document(bare, limit));
    expect(limits.rate_limit_per_minute).toBe(limit);
  });

  it.each([
    [null, 100],
    [50, 50],
    [100, 100],
    [1000, 100],
  ])('of a provider that returns at most %j says at most %j', async (max_search_results, said) => {
    const { limits } = await opened({ name: 'memory' }, (provider) =>
      document({ ...provider, capabilities: { ...provider.capabilities, max_search_results } }, null),
    );
    expect(limits.max_search_results).toBe(said);
  });
});
