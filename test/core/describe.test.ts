import { rm } from 'node:fs/promises';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { Provider, ProviderCapabilities, RankingOptions } from '#contract';
import { PROVIDER_NAMES, type ProviderName } from '../../src/config/settings.ts';
import { compose } from '../../src/core/compose.ts';
import { openProvider } from '../../src/registry.ts';
import { describe as describeStore } from '../../src/verbs/capabilities.ts';
import { VERB_TABLE } from '../../src/verbs/index.ts';
import type { Verb } from '../../src/verbs/verb.ts';
import { type Pinecone, startPinecone } from '../pinecone-server/start.ts';
import { openQdrant, type Qdrant } from '../qdrant/server.ts';
import { hashingEmbedder } from '../support/hashing-embedder.ts';
import { contextOf, openMemory } from '../support/requests.ts';
import { storeOf } from '../support/stores.ts';
import { makeDataDir, RECORDED } from '../support/subject.ts';

/** Flags of extensions: those that FEATURES does not have are pinned in docs/concepts.md. */
const FLAGS = Object.values<Verb>(VERB_TABLE).flatMap(({ feature }) => feature ?? []);

const document = (provider: Provider, limit: number | null = null) => describeStore(storeOf(provider), limit);
const composed = (provider: Provider) => describeStore(compose(provider, contextOf()), null);

let data_dir: string;
let pinecone: Pinecone;
let qdrant: Qdrant;
beforeAll(async () => {
  [data_dir, pinecone, qdrant] = await Promise.all([makeDataDir(), startPinecone(), openQdrant()]);
});
afterAll(async () => {
  await rm(data_dir, { recursive: true, force: true });
  await Promise.all([pinecone.close(), qdrant.close()]);
});

/** The document of the memory provider in hybrid mode; the cases below say what differs. */
const VERBS = ['add', 'search', 'get', 'update', 'delete', 'list', 'context'];
const FEATURES = {
  vector_search: true,
  keyword_search: true,
  graph_queries: false,
  temporal: true,
  temporal_search: true,
  scopes: 'native',
  max_content_length: null as number | null,
  supports_audit: true,
  supports_supersession: true,
  idempotency: true,
  batch: true,
  explain: true,
  current: true,
  distinct: true,
  similar: true,
  multi_user: true,
  tags: true,
  tag_search: true,
  consistency_tokens: false,
  etags: true,
  versions: false,
  origins: true,
  neighbours: true,
  users: true,
  stats: true,
  erase: true,
  rollback: true,
  retention: true,
  person_file: true,
  embedding_usage: false,
  export: true,
  import: true,
  changes: true,
  keys: false,
  freeze: true,
  webhooks: true,
};
const EMULATED = {
  scopes: 'tags',
  neighbours: false,
  supports_audit: false,
  changes: false,
  webhooks: false,
  users: false,
  stats: false,
};
const PINECONE = {
  ...EMULATED,
  freeze: false,
  keyword_search: false,
  idempotency: false,
  max_content_length: 9_000,
  consistency_tokens: true,
  etags: false,
  origins: false,
  temporal_search: false,
};
/** Of the kit of vector databases. */
const COLLECTION = {
  ...{
    keyword_search: false,
    supports_audit: false,
    idempotency: false,
    changes: false,
    webhooks: false,
    freeze: false,
  },
  stats: false,
};
const SIMILAR = { hybrid: 0.5, vector: 0.7, keyword: 0.3 };

interface Case {
  readonly provider: ProviderName;
  readonly mode: RankingOptions['mode'];
  readonly options?: object;
  readonly audited?: boolean;
  readonly features?: Partial<typeof FEATURES>;
}
const CASES: readonly Case[] = [
  { provider: 'memory', mode: 'hybrid' },
  { provider: 'memory', mode: 'vector', features: { keyword_search: false } },
  { provider: 'memory', mode: 'keyword', features: { vector_search: false } },
  {
    provider: 'memory',
    mode: 'hybrid',
    audited: false,
    features: { supports_audit: false, changes: false, webhooks: false },
  },
  { provider: 'memory', mode: 'hybrid', options: { scopes: 'none' }, features: EMULATED },
  { provider: 'postgres', mode: 'hybrid', features: { keys: true } },
  { provider: 'postgres', mode: 'vector', features: { keyword_search: false, keys: true } },
  {
    provider: 'postgres',
    mode: 'keyword',
    audited: false,
    features: { vector_search: false, supports_audit: false, changes: false, webhooks: false, keys: true },
  },
  { provider: 'pinecone', mode: 'hybrid', features: PINECONE },
  { provider: 'pinecone', mode: 'vector', audited: false, features: PINECONE },
  { provider: 'libsql', mode: 'vector', features: COLLECTION },
  { provider: 'lancedb', mode: 'vector', features: COLLECTION },
  {
    provider: 'qdrant',
    mode: 'vector',
    features: { ...COLLECTION, scopes: 'tags', neighbours: false, etags: false },
  },
];
/** Their servers do not come from npm. The kit makes their documents as it makes those of the others. */
const ELSEWHERE = ['chroma', 'milvus', 'weaviate'];

describe('the capability document', () => {
  it('is tested here for every provider', () => {
    expect(new Set([...CASES.map(({ provider }) => provider), ...ELSEWHERE])).toEqual(new Set(PROVIDER_NAMES));
  });

  it.each(CASES)(
    '[SPEC Capabilities features.vector_search] [SPEC Capabilities features.keyword_search] [SPEC Capabilities features.scopes] of $provider in $mode mode, $options, audited: $audited',
    async (each) => {
      const { provider: name, mode, options, audited = true } = each;
      const context = contextOf({
        embedder: mode === 'keyword' ? undefined : hashingEmbedder(),
        ranking: { mode, keyword_weight: 0.5 },
        audit: audited ? RECORDED : undefined,
        data_dir,
      });
      const reached = {
        ...(name === 'pinecone' && { api_key: 'test', index_host: pinecone.url }),
        ...(name === 'qdrant' && { url: qdrant.url }),
        // However busy the machine is.
        ...(name === 'postgres' && { connect_timeout_ms: 600_000 }),
      };
      const provider = await openProvider(name, { ...reached, ...options }, context);
      try {
        const features = { ...FEATURES, ...each.features };
        const due = {
          omp_version: '0.1',
          provider: name,
          verbs: features.supports_audit ? [...VERBS, 'audit'] : VERBS,
          embedding: null,
          features,
          limits: {
            ...{ rate_limit_per_minute: null, max_search_results: 100, max_batch_size: 100 },
            similar_score: name === 'pinecone' ? SIMILAR.vector : SIMILAR[mode],
          },
        };
        for (const { features: own, ...rest } of [document(provider), composed(provider)]) {
          const known = Object.entries(own).filter(([name]) => !FLAGS.includes(name) || name in FEATURES);
          expect({ ...rest, features: Object.fromEntries(known) }).toEqual(due);
        }
      } finally {
        await provider.close();
      }
    },
  );

  it('lists only what the provider supports', async () => {
    const { name, capabilities, get, ping, close, ...rest } = await openMemory();
    const least = document({ name, capabilities, get, ping, close });
    expect(least.verbs).toEqual(['get']);
    expect(least.features).toMatchObject({
      supports_audit: false,
      idempotency: false,
      batch: false,
      users: false,
      stats: false,
      erase: false,
      rollback: false,
      retention: false,
      export: false,
      import: false,
      changes: false,
      keys: false,
      webhooks: false,
      explain: false,
      current: false,
      distinct: false,
      similar: false,
      multi_user: false,
    });
    expect(least.limits.similar_score).toBeNull();
    const { search: _, ...others } = rest;
    const { verbs } = document({ name, capabilities, get, ping, close, ...others });
    expect(verbs).toEqual(['add', 'get', 'update', 'delete', 'list', 'audit']);
  });

  it.each<[Partial<ProviderCapabilities>, object?]>([
    [{ scopes: 'native', tags: true }],
    [{ scopes: 'native', tags: false }],
    [{ scopes: 'tags', tags: true }],
    [{ scopes: 'none', tags: true }],
    [{ scopes: 'none', tags: false }],
    [{ explain: false }],
    [{ consistency_tokens: true }],
    [{ etags: false }],
    [{ origins: false }],
    [{ max_search_results: 50 }],
    [{ max_search_results: null }, { max_search_results: 100 }],
    [{ max_search_results: 1000 }, { max_search_results: 100 }],
  ])('of a provider with %j says so, or %j', async (capabilities, said = capabilities) => {
    const memory = await openMemory();
    const changed = { ...memory, capabilities: { ...memory.capabilities, ...capabilities } };
    for (const { features, limits } of [document(changed), composed(changed)]) {
      expect({ ...features, ...limits }).toMatchObject(said);
    }
  });

  it.each([null, 1, 600])('states a rate limit of %j requests per minute', async (limit) => {
    expect(document(await openMemory(), limit).limits.rate_limit_per_minute).toBe(limit);
  });
});
