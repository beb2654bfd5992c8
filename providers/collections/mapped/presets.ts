import { z } from 'zod';
import type { Presets } from '#provider';

/*
 * How libraries fill collections, by database: read in collections that they filled (test/mapped-collections/fixtures).
 */

/** mem0 keeps more than it stores here. */
const MEM0 = 'mem0 reads fields of every point (such as a hash) that only mem0 can write';
const LLAMAINDEX = 'LlamaIndex reads a whole node from "_node_content" and fails on points without it';

/** All but mem0 leave the user to the application: this key of the metadata, unless the setting names another. */
const USER = 'user_id';

/** With `custom`, settings name the fields. */
export const QDRANT = {
  llamaindex: {
    ...{ library: 'LlamaIndex', versions: 'llama-index-vector-stores-qdrant 0.10.4, @llamaindex/qdrant 0.1.33' },
    ...{ text: 'text', node: '_node_content', user: USER, signs: ['_node_content', '_node_type'] },
    read_only: LLAMAINDEX,
  },
  mem0: {
    ...{ library: 'mem0 for Python', versions: 'mem0ai 2.2.1', text: 'data', user: USER },
    ...{ created: 'created_at', updated: 'updated_at', signs: ['data', 'hash', 'created_at'], read_only: MEM0 },
  },
  'mem0-ts': {
    ...{ library: 'mem0 for TypeScript', versions: 'mem0ai 3.3.1', text: 'data', user: USER },
    ...{ created: 'createdAt', updated: 'updatedAt', signs: ['data', 'hash', 'createdAt'], read_only: MEM0 },
  },
  n8n: {
    ...{ library: 'n8n', versions: '@langchain/qdrant 1.0.1', text: 'content', user: `metadata.${USER}` },
    signs: ['content', 'metadata.blobType'],
  },
  langchain: {
    ...{ library: 'LangChain for Python', versions: 'langchain-qdrant 1.1.0' },
    ...{ text: 'page_content', user: `metadata.${USER}`, signs: ['page_content', 'metadata'] },
  },
  'langchain-js': {
    ...{ library: 'LangChain.js', versions: '@langchain/qdrant 1.0.3' },
    ...{ text: 'content', user: `metadata.${USER}`, signs: ['content', 'metadata'] },
  },
  mastra: {
    ...{ library: 'Mastra', versions: '@mastra/qdrant 1.0.1', text: 'text', user: USER, signs: ['text', USER] },
  },
  custom: { library: 'another application' },
} as const satisfies Presets;

/** The document of a record is the field `#document`. n8n fills collections through LangChain.js. */
export const CHROMA = {
  llamaindex: {
    ...{ library: 'LlamaIndex', versions: '@llamaindex/chroma 0.0.37' },
    ...{ text: '#document', user: USER, signs: ['_node_content', '_node_type'], read_only: LLAMAINDEX },
  },
  mem0: {
    ...{ library: 'mem0 for Python', versions: 'mem0ai 2.2.1', text: 'data', user: USER },
    ...{ created: 'created_at', updated: 'updated_at', signs: ['data', 'hash', 'created_at'], read_only: MEM0 },
  },
  langchain: {
    ...{ library: 'LangChain', versions: 'langchain-chroma 1.1.0, @langchain/community 1.1.29' },
    ...{ text: '#document', user: USER, signs: ['#document', USER] },
  },
  mastra: {
    ...{ library: 'Mastra', versions: '@mastra/chroma 1.1.3', text: 'text', user: USER, signs: ['text', USER] },
  },
  custom: { library: 'another application' },
} as const satisfies Presets;

/** Of the columns of a collection, and of what is beside them. */
export const MILVUS = {
  llamaindex: {
    ...{ library: 'LlamaIndex', versions: 'llama-index-vector-stores-milvus 1.2.0', text: 'text', user: USER },
    ...{ signs: ['text', '_node_content'], read_only: LLAMAINDEX },
  },
  'langchain-js': {
    ...{ library: 'LangChain.js', versions: '@langchain/community 1.1.29', text: 'langchain_text', user: USER },
    ...{
      signs: ['langchain_text'],
      read_only: 'Milvus makes the ids of its points, and would make others with a change',
    },
  },
  langchain: {
    ...{ library: 'LangChain for Python', versions: 'langchain-milvus 0.4.0' },
    ...{ text: 'text', user: USER, signs: ['text', USER] },
  },
  custom: { library: 'another application' },
} as const satisfies Presets;

/** Of the columns of a table. Rows of LangChain.js have no ids. */
export const LANCEDB = {
  llamaindex: {
    ...{ library: 'LlamaIndex', versions: 'llama-index-vector-stores-lancedb 0.6.0', text: 'text' },
    ...{ user: `metadata.${USER}`, signs: ['text', 'metadata._node_content'], read_only: LLAMAINDEX },
  },
  langchain: {
    ...{ library: 'LangChain for Python', versions: 'langchain-community 0.4.2' },
    ...{ text: 'text', user: `metadata.${USER}`, signs: ['text', 'metadata'] },
  },
  custom: { library: 'another application' },
} as const satisfies Presets;

/** Neither a control character nor what ends a name in a filter of some database. */
const field = () =>
  z
    .string()
    .regex(/^[^\p{Cc}"\\`]{1,256}$/u)
    .optional();

/** The options of a mapped collection, for those of an adapter. */
export const mappingOptions = <Name extends string>(presets: Readonly<Record<Name, unknown>>) => ({
  /** Library that fills the collection; unset: the gateway. */
  preset: z.enum(Object.keys(presets) as [Name, ...Name[]]).optional(),
  text_field: field(),
  user_field: field(),
  scope_field: field(),
  created_field: field(),
  updated_field: field(),
  tags_field: field(),
  writable: z.boolean().default(false),
});
