import { z } from 'zod';
import { Options } from '../../providers/pinecone/pinecone-options.ts';
import { settingFacts } from './facts.ts';

/** The provider's schema decides what is allowed. This file says what a user needs to know about each setting. */
const { shape } = Options;

const PINECONE = { only: ['provider', 'pinecone'] } as const;
const PRESET = 'pinecone.preset';
/** For the gateway's index only. */
const GATEWAY_INDEX = { ...PINECONE, unless: PRESET };
/** For mapped indexes only. */
const MAPPED_INDEX = { only: [PRESET] } as const;

type FieldName = 'text' | 'user' | 'created' | 'updated' | 'tags';

/** Which metadata field holds a field. */
const field = (name: FieldName, what: string, example: string, unset = 'that of the preset') =>
  shape[`${name}_field`].register(settingFacts, {
    env: `OMP_PINECONE_${name.toUpperCase()}_FIELD`,
    description: `Field that holds ${what}; unset: ${unset}`,
    example,
    allowed: 'the name of a metadata field',
    ...MAPPED_INDEX,
  });

export const pinecone = z.strictObject({
  api_key: shape.api_key.optional().register(settingFacts, {
    env: 'PINECONE_API_KEY',
    description: 'API key of the project that has the index; required with this provider',
    allowed: 'printable ASCII characters without spaces',
    secret: true,
    // biome-ignore lint/suspicious/noTemplateCurlyInString: the syntax of a reference in the file
    example: '${PINECONE_API_KEY}',
    ...PINECONE,
  }),
  index_host: shape.index_host.optional().register(settingFacts, {
    env: 'PINECONE_INDEX_HOST',
    description: 'Address of the index, as the console of Pinecone shows it; required with this provider',
    allowed: 'a host name, with http:// before it if the server has no TLS',
    example: 'memories-abc1234.svc.aped-4627-b74a.pinecone.io',
    ...PINECONE,
  }),
  namespace: shape.namespace.register(settingFacts, {
    env: 'OMP_PINECONE_NAMESPACE',
    description: 'Namespace of the memories; other layouts append to it',
    allowed: '1 to 400 printable ASCII characters without spaces',
    ...PINECONE,
  }),
  layout: shape.layout.register(settingFacts, {
    env: 'OMP_PINECONE_LAYOUT',
    description: 'Whether the memories are in one namespace, in 32, or in one for each user',
    ...GATEWAY_INDEX,
  }),
  metric: shape.metric.register(settingFacts, {
    env: 'OMP_PINECONE_METRIC',
    description: 'Metric of the index, if the index does not report it',
    ...PINECONE,
  }),
  timeout_ms: shape.timeout_ms.register(settingFacts, {
    env: 'OMP_PINECONE_TIMEOUT_MS',
    description: 'Deadline of an answer, in milliseconds; every retry has its own',
    ...PINECONE,
  }),
  concurrency: shape.concurrency.register(settingFacts, {
    env: 'OMP_PINECONE_CONCURRENCY',
    description: 'Maximum concurrent requests of one process to Pinecone',
    ...PINECONE,
  }),
  settle_ms: shape.settle_ms.register(settingFacts, {
    env: 'OMP_PINECONE_SETTLE_MS',
    description:
      'How long the gateway remembers its writes, so that reads show them before Pinecone does, in milliseconds',
    ...PINECONE,
  }),
  consistency_wait_ms: shape.consistency_wait_ms.register(settingFacts, {
    env: 'OMP_PINECONE_CONSISTENCY_WAIT_MS',
    description: `Longest wait for a client's write through another gateway, in milliseconds`,
    ...GATEWAY_INDEX,
  }),
  max_scan: shape.max_scan.register(settingFacts, {
    env: 'OMP_PINECONE_MAX_SCAN',
    description: 'Maximum memories read for one page of a filtered list; a page that needs more is rejected',
    ...GATEWAY_INDEX,
  }),
  preset: shape.preset.register(settingFacts, {
    env: 'OMP_PINECONE_PRESET',
    description:
      'Library that fills the mapped index: selects its fields; custom: the other settings name them; unset: the gateway fills the index',
    example: 'langchain',
    ...PINECONE,
  }),
  text_field: field('text', 'the text', 'text'),
  user_field: field('user', 'the id of the user', 'user_id'),
  created_field: field('created', 'the time of creation', 'created_at'),
  updated_field: field('updated', 'the time of the last change', 'updated_at'),
  tags_field: field('tags', 'tags, a list of strings', 'tags', 'tags are not supported'),
  writable: shape.writable.register(settingFacts, {
    env: 'OMP_PINECONE_WRITABLE',
    description: 'Whether the gateway may add, change and delete records',
    ...MAPPED_INDEX,
  }),
  max_listed: shape.max_listed.register(settingFacts, {
    env: 'OMP_PINECONE_MAX_LISTED',
    description: 'Maximum memories of one user that a list reads and sorts; a list of more is rejected',
    ...MAPPED_INDEX,
  }),
});
