/** One record of each library, as its own sources write it: every metadata key, and the form of the id. */
export interface Shape {
  readonly preset: string;
  readonly id: string;
  metadata(user: string, text: string): Record<string, unknown>;
  /** What the gateway is to say of the times. */
  readonly created_at: string;
  readonly updated_at: string;
  readonly tags?: readonly string[];
}

const NONE = '1970-01-01T00:00:00.000Z';
const timeless = { created_at: NONE, updated_at: NONE };

/** llama-index-core, `node_to_metadata_dict`: the node as JSON, its own metadata and three names of its document. */
export const nodeMetadata = (user: string, node: object) => ({
  user_id: user,
  file_name: 'notes.md',
  _node_content: JSON.stringify({
    id_: '8f2c1f0e-5f0e-4f6f-9a53-0a5b6d3f1c11',
    embedding: null,
    metadata: { user_id: user, file_name: 'notes.md' },
    excluded_embed_metadata_keys: [],
    excluded_llm_metadata_keys: [],
    relationships: {
      '1': { node_id: 'doc-1', node_type: '4', metadata: {}, hash: 'b3', class_name: 'RelatedNodeInfo' },
    },
    ...node,
  }),
  _node_type: 'TextNode',
  document_id: 'doc-1',
  doc_id: 'doc-1',
  ref_doc_id: 'doc-1',
});

export const SHAPES: readonly Shape[] = [
  {
    // langchain-pinecone, `add_texts`: the caller's metadata, and the text under `text_key`; ids with an `id_prefix`.
    preset: 'langchain',
    id: 'crawl#2f6f0a0e-6d4b-4d0a-9f7e-2f1f6b0e9a01',
    metadata: (user, text) => ({ text, user_id: user, source: 'https://example.org/a', 'loc.lines.from': 1 }),
    ...timeless,
  },
  {
    preset: 'llamaindex',
    id: 'doc-1#8f2c1f0e-5f0e-4f6f-9a53-0a5b6d3f1c11',
    metadata: (user, text) =>
      nodeMetadata(user, {
        text,
        mimetype: 'text/plain',
        start_char_idx: 0,
        end_char_idx: text.length,
        text_template: '{metadata_str}\n\n{content}',
        metadata_template: '{key}: {value}',
        metadata_seperator: '\n',
        class_name: 'TextNode',
      }),
    ...timeless,
  },
  {
    // mem0 (Python), `_create_memory`: Python's `isoformat()`, with microseconds; older releases in the time of the US coast.
    preset: 'mem0',
    id: '0b9a4a5e-3c3d-4a35-8b0a-7f3c7c1d2e02',
    metadata: (user, text) => ({
      data: text,
      hash: '5d41402abc4b2a76b9719d911017c592',
      user_id: user,
      agent_id: 'agent-1',
      run_id: 'run-1',
      actor_id: 'ana',
      role: 'user',
      text_lemmatized: text,
      attributed_to: 'user',
      expiration_date: '2027-01-01',
      created_at: '2025-03-01T08:30:15.123456-08:00',
      updated_at: '2025-03-02T16:30:15.654321+00:00',
    }),
    created_at: '2025-03-01T16:30:15.123Z',
    updated_at: '2025-03-02T16:30:15.654Z',
  },
  {
    // mem0 (TypeScript), `createMemory`: `toISOString()`, names in camel case but for the owner.
    preset: 'mem0-ts',
    id: '4c0ad3f4-8c61-4d0e-a8fd-3d1f0b7f5a03',
    metadata: (user, text) => ({
      data: text,
      hash: '5d41402abc4b2a76b9719d911017c592',
      user_id: user,
      createdAt: '2025-03-01T16:30:15.123Z',
      updatedAt: '2025-03-02T16:30:15.654Z',
    }),
    created_at: '2025-03-01T16:30:15.123Z',
    updated_at: '2025-03-02T16:30:15.654Z',
  },
  {
    // pinecone-haystack, `_convert_documents_to_pinecone_format`: `meta` and the content; ids are hashes.
    preset: 'haystack',
    id: 'a3f1c2d4e5b697887766554433221100ffeeddccbbaa99887766554433221100',
    metadata: (user, text) => ({ content: text, user_id: user, page: 3 }),
    ...timeless,
  },
  {
    // spring-ai-pinecone-store, `metadataToStruct`: the document's metadata and the text.
    preset: 'spring-ai',
    id: '7d0c7c1e-1f4b-4b51-9a0e-8d7a6f5e4d05',
    metadata: (user, text) => ({ document_content: text, userId: user, chunk: 2 }),
    ...timeless,
  },
  {
    // Pinecone's documentation of `upsert_records`: fields as they were given.
    preset: 'integrated',
    id: 'rec1',
    metadata: (user, text) => ({ chunk_text: text, user_id: user, category: 'history' }),
    ...timeless,
  },
  {
    preset: 'custom',
    id: 'note:1/a+b?c#d%20',
    metadata: (user, text) => ({
      note: text,
      'owner.id': user,
      written: 1_740_846_615,
      changed: 1_740_933_015_654,
      labels: ['home', 'work'],
    }),
    created_at: '2025-03-01T16:30:15.000Z',
    updated_at: '2025-03-02T16:30:15.654Z',
    tags: ['home', 'work'],
  },
];
