import type { Preset } from './preset.ts';

/**
 * `PGVectorStore` of llama-index-vector-stores-postgres: `llama_index/vector_stores/postgres/base.py` at 5793149 and as
 * the API reference shows it. The table is `data_` and the store's name in lower case. Nodes go by `node_id`; `id` only
 * counts rows.
 */
export const llamaindexPy: Preset = {
  table: 'data_llamaindex',
  id: ['node_id'],
  new_ids: 'uuid',
  embedding: 'embedding',
  fields: { content: 'text', user_id: "metadata_->>'user_id'" },
  read_only:
    'LlamaIndex makes its nodes from _node_content in the metadata, which only LlamaIndex writes, and nothing in its table keeps a node_id from being there twice',
};
