import { describe } from 'vitest';
import milvus from '../../providers/collections/milvus.ts';
import { providerTests } from '../conformance/provider-tests.ts';
import { milvusBackend, NO_MILVUS } from '../milvus/server.ts';

describe.skipIf(NO_MILVUS !== '')(`Milvus${NO_MILVUS && ` (${NO_MILVUS})`}`, () => {
  providerTests(milvus, milvusBackend, 'Milvus Lite');
});
