import { randomBytes } from 'node:crypto';
import { Pinecone } from '@pinecone-database/pinecone';
import { describe, it } from 'vitest';
import pinecone from '../../providers/pinecone/index.ts';
import { providerTests } from '../conformance/provider-tests.ts';
import { hashingEmbedder } from '../support/hashing-embedder.ts';

const { TEST_PINECONE_API_KEY: api_key = '', TEST_PINECONE_INDEX_HOST: index_host = '' } = process.env;

if (api_key === '' || index_host === '') {
  describe('pinecone, the service itself', () => {
    it('[SPEC Capabilities provider] an index of an account', ({ skip }) =>
      skip('TEST_PINECONE_API_KEY and TEST_PINECONE_INDEX_HOST are not set: no account to test on'));
  });
} else {
  // Any dense index will do: vectors get its dimension, and everything is kept in a namespace that is deleted in the end.
  const namespace = `omp-test-${randomBytes(6).toString('hex')}`;
  const index = new Pinecone({ apiKey: api_key }).index({ host: index_host.replace(/\/+$/, '') });
  const forget = async () => {
    // Emulators know no requests about namespaces.
    await index.deleteNamespace(namespace).catch(() => index.deleteAll({ namespace }));
  };
  providerTests(
    pinecone,
    async () => {
      const { dimension } = await index.describeIndexStats();
      return { options: { api_key, index_host, namespace }, embedder: hashingEmbedder(dimension), close: forget };
    },
    'pinecone, the service itself',
  );
}
