import { createRequire } from 'node:module';
import { connect } from '@lancedb/lancedb';
import lancedb from '../../providers/collections/lancedb.ts';
import { providerTests } from '../conformance/provider-tests.ts';

// LanceDB takes tables of the module that it loads itself.
const { Field, FixedSizeList, Float32, List, Schema, Struct, TimestampMicrosecond, Utf8 } = createRequire(
  import.meta.url,
)('apache-arrow') as typeof import('apache-arrow');

const text = (name: string) => new Field(name, new Utf8(), true);
const FIELDS = {
  ...{ scope_field: 'metadata.folder', created_field: 'written', updated_field: 'metadata.changed' },
  tags_field: 'metadata.labels',
};

/** Of a column and of fields in an object, one of them a time of Arrow. */
providerTests(
  lancedb,
  async (folder) => {
    const labels = new Field('labels', new List(new Field('item', new Utf8(), true)), true);
    const columns = [text('user_id'), text('folder'), text('topic'), text('changed'), labels];
    const schema = new Schema([
      ...[text('id'), text('text'), new Field('metadata', new Struct(columns), true)],
      new Field('written', new TimestampMicrosecond(), true),
      new Field('vector', new FixedSizeList(64, new Field('item', new Float32(), true)), true),
    ]);
    const connection = await connect(folder);
    await connection.createEmptyTable('notes', schema as never);
    connection.close();
    return {
      ...{ mode: 'vector' as const, ids: /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/ },
      options: { folder, table: 'notes', preset: 'langchain', writable: true, ...FIELDS },
      without: ['source', 'confidence', 'valid_from', 'valid_to', 'extensions'],
    };
  },
  'LanceDB, a table of others',
);
