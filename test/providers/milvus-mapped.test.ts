import { DataType, MilvusClient } from '@zilliz/milvus2-sdk-node';
import { describe } from 'vitest';
import milvus from '../../providers/collections/milvus.ts';
import { providerTests } from '../conformance/provider-tests.ts';
import { NO_MILVUS, openMilvus } from '../milvus/server.ts';

const LABEL = `Milvus Lite, a collection of others${NO_MILVUS && ` (${NO_MILVUS})`}`;
/** A column, keys in a column of JSON, and keys beside the columns. */
const FIELDS = {
  ...{ text_field: 'note.text', user_field: 'owner.id', scope_field: 'folder' },
  ...{ created_field: 'metadata.written', updated_field: 'changed', tags_field: 'metadata.labels' },
};

describe.skipIf(NO_MILVUS !== '')(LABEL, () => {
  providerTests(
    milvus,
    async () => {
      const { url, close } = await openMilvus();
      const client = new MilvusClient({ address: url });
      const place = { collection_name: 'notes' };
      const text = { data_type: DataType.VarChar, max_length: 65_535 };
      await client.createCollection({
        ...{ ...place, enable_dynamic_field: true },
        fields: [
          { name: 'pk', is_primary_key: true, ...text },
          { name: 'folder', nullable: true, ...text },
          ...['note', 'metadata'].map((name) => ({ name, data_type: DataType.JSON, nullable: true })),
          { name: 'embedding', data_type: DataType.FloatVector, dim: 64 },
        ],
      });
      await client.createIndex({ ...place, field_name: 'embedding', index_type: 'FLAT', metric_type: 'L2' });
      await client.loadCollectionSync(place);
      await client.closeConnection();
      return {
        ...{ close, mode: 'vector' as const, ids: /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/ },
        options: { url, collection: 'notes', preset: 'custom', writable: true, ...FIELDS },
        without: ['source', 'confidence', 'valid_from', 'valid_to', 'extensions'],
      };
    },
    LABEL,
  );
});
