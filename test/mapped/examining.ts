import pg from 'pg';
import { type ExaminedTable, examine } from '../../providers/postgres/mapped/examine.ts';
import type { Layout } from '../../providers/postgres/mapped/layout.ts';
import { Mapping } from '../../providers/postgres/mapped/mapping.ts';
import { type Conditions, conditions } from '../../providers/postgres/sql/conditions.ts';
import { openStore, type TestDatabase } from '../postgres/store.ts';
import { hashingEmbedder } from '../support/hashing-embedder.ts';

/** A schema for mapped tables, and the gateway's view of them. Vectors have three dimensions. */
export interface Examiner extends Pick<TestDatabase, 'sql' | 'schema' | 'url'> {
  /** The schema, quoted, with a point behind. */
  readonly in: string;
  /** On a connection of the test's own, unless another is given. */
  examine(mapping: object, model?: { dimensions: number }, on?: pg.Client): Promise<ExaminedTable>;
  /** The same of a mapping that has no mistakes. */
  layout(mapping: object): Promise<Layout>;
  /** Rows by what a layout makes of them: SQL to select, and conditions besides what it always demands. */
  rows(layout: Layout, select: string, and?: (where: Conditions) => string): Promise<Record<string, unknown>[]>;
  close(): Promise<void>;
}

const EMBEDDER = { ...hashingEmbedder(3), model: 'three-dimensions' };

export async function openExaminer(): Promise<Examiner> {
  const store = await openStore();
  await store.sql(`create schema ${pg.escapeIdentifier(store.schema)}`);
  const client = new pg.Client({ connectionString: store.url });
  await client.connect();
  const look = (mapping: object, { dimensions } = { dimensions: 3 }, on = client) =>
    examine(on, Mapping.parse({ preset: 'custom', schema: store.schema, ...mapping }), { ...EMBEDDER, dimensions });
  return {
    sql: store.sql,
    schema: store.schema,
    url: store.url,
    in: `${pg.escapeIdentifier(store.schema)}.`,
    examine: look,
    async layout(mapping) {
      const { layout, mistakes } = await look(mapping);
      if (!layout) throw new Error(mistakes.join('\n'));
      return layout;
    },
    async rows(layout, select, and) {
      const where = conditions();
      where.and(layout.always(where));
      if (and) where.and(and(where));
      return store.sql(`select ${select} from ${layout.from} where ${where} order by t.id`, where.values);
    },
    async close() {
      await client.end();
      await store.close();
    },
  };
}

/** A table with only the required columns, and its mapping. */
export const BARE = { table: 'notes', id: 'id', embedding: 'embedding', content: 'content', user_id: 'user_id' };
export const COLUMNS = 'id text primary key, content text, user_id text, embedding vector(3)';
