import { z } from 'zod';
import { Options } from '../../providers/collections/qdrant-options.ts';
import { settingFacts } from './facts.ts';

const { shape } = Options;
const QDRANT = { only: ['provider', 'qdrant'] } as const;

export const qdrant = z.strictObject({
  url: shape.url.register(settingFacts, {
    env: 'QDRANT_URL',
    description: 'Address of the server; without a port it is 6333',
    allowed: 'an http:// or https:// URL',
    ...QDRANT,
  }),
  api_key: shape.api_key.register(settingFacts, {
    env: 'QDRANT_API_KEY',
    description: 'API key of the server; unset: it has none',
    allowed: 'printable ASCII characters without spaces',
    secret: true,
    // biome-ignore lint/suspicious/noTemplateCurlyInString: the syntax of a reference in the file
    example: '${QDRANT_API_KEY}',
    ...QDRANT,
  }),
  collection: shape.collection.register(settingFacts, {
    env: 'OMP_QDRANT_COLLECTION',
    description: 'Collection of the memories; the first start creates it',
    allowed: '1 to 255 characters without < > : " / \\ | ? *',
    ...QDRANT,
  }),
  exact: shape.exact.register(settingFacts, {
    env: 'OMP_QDRANT_EXACT',
    description:
      "Whether a search compares all of a user's vectors; false: Qdrant may use its index, which is approximate",
    ...QDRANT,
  }),
});
