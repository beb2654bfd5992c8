import { rm } from 'node:fs/promises';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { Provider } from '#contract';
import { PROVIDER_NAMES } from '../../src/config/settings.ts';
import { compose } from '../../src/core/compose.ts';
import { describe as describeMemories } from '../../src/core/describe.ts';
import { openProvider } from '../../src/registry.ts';
import { type Pinecone, startPinecone } from '../pinecone-server/start.ts';
import { hashingEmbedder } from '../support/hashing-embedder.ts';
import { memoriesOf } from '../support/memories.ts';
import { contextOf } from '../support/requests.ts';
import { makeDataDir, RECORDED } from '../support/subject.ts';

const document = (provider: Provider, limit: number | null) => describeMemories(memoriesOf(provider), limit);

const MODES = ['hybrid', 'vector', 'keyword'] as const;

let data_dir: string;
let pinecone: Pinecone;
beforeAll(async () => {
  [data_dir, pinecone] = await Promise.all([makeDataDir(), startPinecone()]);
});
afterAll(async () => {
  await rm(data_dir, { recursive: true, force: true });
  await pinecone.close();
});

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
  const reached = name === 'pinecone' ? { api_key: 'test', index_host: pinecone.url } : {};
  const provider = await openProvider(name, { ...reached, ...options }, context);
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
    max_content_length: null as number | null,
    supports_audit: true,
    supports_supersession: true,
    idempotency: true,
    tags: true,
    consistency_tokens: false,
  },
  limits: { rate_limit_per_minute: null, max_search_results: 100 },
};
const VERBS = ['add', 'search', 'get', 'update', 'delete', 'list', 'context'];

interface Subject {
  readonly provider: Opening['name'];
  readonly options: object;
  readonly features: Partial<(typeof FULL)['features']> & { readonly scopes: string };
  /** Whether vectors rank alone, whatever the mode, and there is no keyword search. */
  readonly vectorsOnly?: boolean;
}
const SUBJECTS: readonly Subject[] = [
  { provider: 'memory', options: {}, features: { scopes: 'native' } },
  { provider: 'memory', options: { scopes: 'none' }, features: { scopes: 'tags', supports_audit: false } },
  { provider: 'postgres', options: {}, features: { scopes: 'native' } },
  {
    provider: 'pinecone',
    options: {},
    vectorsOnly: true,
    features: {
      scopes: 'tags',
      supports_audit: false,
      idempotency: false,
      max_content_length: 9_000,
      consistency_tokens: true,
    },
  },
];

describe('the capability document', () => {
  it('is tested here for every provider', () => {
    expect(new Set(SUBJECTS.map(({ provider }) => provider))).toEqual(new Set(PROVIDER_NAMES));
  });

  for (const mode of MODES) {
    const able = SUBJECTS.filter(({ vectorsOnly }) => !vectorsOnly || mode !== 'keyword');
    it.each(able)(`of $provider $options in ${mode} mode`, async ({ provider, options, vectorsOnly, features }) => {
      // A folder that holds vectors is not opened with another model, but without any.
      const declared = await opened({ name: provider, options, mode }, (bare) => [
        document(bare, null),
        document(compose(bare), null),
      ]);
      const due = {
        ...FULL.features,
        vector_search: mode !== 'keyword',
        keyword_search: !vectorsOnly && mode !== 'vector',
        ...features,
      };
      for (const each of declared) {
        expect(each).toEqual({
          ...FULL,
          provider,
          verbs: due.supports_audit ? [...VERBS, 'audit'] : VERBS,
          features: due,
        });
      }
    });
  }

  it('lists only what the provider supports', async () => {
    const least = await opened({ name: 'memory' }, ({ name, capabilities, get, ping, close }) =>
      document({ name, capabilities, get, ping, close }, null),
    );
    expect(least.verbs).toEqual(['get']);
    expect(least.features).toMatchObject({ supports_audit: false, idempotency: false });
    const searchless = await opened({ name: 'memory' }, ({ search: _, ...rest }) => document(rest, null));
    expect(searchless.verbs).toEqual(['add', 'get', 'update', 'delete', 'list', 'audit']);
  });

  it.each(PROVIDER_NAMES)('of %s has no audit when auditing is off', async (name) => {
    const { verbs, features } = await opened({ name, mode: 'hybrid', recorded: false }, (bare) => document(bare, null));
    expect(verbs).toEqual(VERBS);
    expect(features.supports_audit).toBe(false);
  });

  it.each([
    ['native', true, 'native'],
    ['native', false, 'native'],
    ['tags', true, 'tags'],
    ['none', true, 'none'],
    ['none', false, 'none'],
  ] as const)('of a provider with %s scopes, tags %s, says %s', async (scopes, tags, said) => {
    const change = (provider: Provider): Provider => ({
      ...provider,
      capabilities: { ...provider.capabilities, scopes, tags },
    });
    const declared = await opened({ name: 'memory' }, (bare) => [
      document(change(bare), null),
      document(compose(change(bare)), null),
    ]);
    for (const { features } of declared) expect(features).toMatchObject({ scopes: said, tags });
  });

  it.each([true, false])('states whether clients need consistency tokens: %s', async (consistency_tokens) => {
    const { features } = await opened({ name: 'memory' }, (provider) =>
      document({ ...provider, capabilities: { ...provider.capabilities, consistency_tokens } }, null),
    );
    expect(features.consistency_tokens).toBe(consistency_tokens);
  });

  it.each([null, 1, 600])('states a rate limit of %j requests per minute', async (limit) => {
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
