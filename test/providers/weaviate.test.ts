import { describe } from 'vitest';
import weaviate from '../../providers/collections/weaviate.ts';
import { providerTests } from '../conformance/provider-tests.ts';
import { NO_WEAVIATE, weaviateBackend } from '../weaviate/server.ts';

describe.skipIf(NO_WEAVIATE !== '')(`Weaviate${NO_WEAVIATE && ` (${NO_WEAVIATE})`}`, () => {
  providerTests(weaviate, weaviateBackend, 'Weaviate');
});
