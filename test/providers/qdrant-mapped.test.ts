import qdrant from '../../providers/collections/qdrant.ts';
import { providerTests } from '../conformance/provider-tests.ts';
import { freshCollection, openQdrant, tell } from '../qdrant/server.ts';

const RUNS: Readonly<
  Record<string, { readonly vectors: object; readonly options: object; readonly without: string[] }>
> = {
  'the fields of LangChain': {
    vectors: { size: 64, distance: 'Cosine' },
    options: { preset: 'langchain' },
    without: ['scope', 'tags', 'created_at', 'updated_at'],
  },
  'a field for each that there is, a vector with a name, compared by its length': {
    vectors: { dense: { size: 64, distance: 'Euclid' } },
    options: {
      preset: 'custom',
      text_field: 'note',
      user_field: 'owner.id',
      scope_field: 'owner.folder',
      created_field: 'times.written',
      updated_field: 'times.changed',
      tags_field: 'labels',
    },
    without: [],
  },
};

for (const [label, { vectors, options, without }] of Object.entries(RUNS))
  providerTests(
    qdrant,
    async () => {
      const { url, close } = await openQdrant();
      const collection = freshCollection();
      await tell('PUT', `${url}/collections/${collection}`, { vectors });
      return {
        ...{ close, mode: 'vector', ids: /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/ },
        options: { url, collection, writable: true, ...options },
        without: ['source', 'confidence', 'valid_from', 'valid_to', 'extensions', ...without],
      };
    },
    `qdrant, a collection of others: ${label}`,
  );
