import { randomUUID } from 'node:crypto';
import type { OwnersDatabase } from './database.ts';
import { type OwnersRow, presetSuite, textOf, withoutTimes } from './preset-suite.ts';

/** What SQLAlchemy sends for `add` of llama_index/vector_stores/postgres/base.py. */
const INSERT = `INSERT INTO public.data_paul_graham_essay (text, metadata_, node_id, embedding) VALUES ($1::VARCHAR, $2::JSON, $3::VARCHAR, $4) RETURNING public.data_paul_graham_essay.id`;

/** `node_to_metadata_dict` of llama_index/core/vector_stores/utils.py: the node without its text, and its metadata beside it. */
async function insert(db: OwnersDatabase, { vector }: OwnersRow, text: string, metadata: object) {
  const [id_, document] = [randomUUID(), randomUUID()];
  const node = { id_, embedding: null, metadata, relationships: {}, text: '', class_name: 'TextNode' };
  const kept = { ...metadata, _node_content: JSON.stringify(node), _node_type: 'TextNode' };
  const whole = { ...kept, document_id: document, doc_id: document, ref_doc_id: document };
  await db.sql(INSERT, [text, JSON.stringify(whole), id_, textOf(vector)]);
  return id_;
}

presetSuite({
  page: 'llamaindex-py',
  // get_data_model of llama_index/vector_stores/postgres/base.py, as SQLAlchemy makes it.
  ddl: [
    `CREATE TABLE public.data_paul_graham_essay (
      id BIGSERIAL NOT NULL,
      text VARCHAR NOT NULL,
      metadata_ JSON,
      node_id VARCHAR,
      embedding VECTOR(1536),
      PRIMARY KEY (id)
    )`,
    `CREATE INDEX paul_graham_essay_idx_1 ON public.data_paul_graham_essay USING btree ((metadata_ ->> 'ref_doc_id'))`,
  ],
  dimensions: 1536,
  fill: (db, row) => insert(db, row, row.text, { user_id: row.user, file_name: 'essay.txt' }),
  async hide(db, row) {
    await insert(db, row, row.text, { file_name: 'essay.txt' });
    await insert(db, row, '', { user_id: row.user });
    await db.sql(INSERT, [row.text, null, randomUUID(), textOf(row.vector)]);
  },
  shows: withoutTimes('text-embedding-ada-002'),
  temporal: false,
  scopes: 'none',
  writable: false,
});
