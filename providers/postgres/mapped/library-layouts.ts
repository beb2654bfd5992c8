import { plainExpression, type Table } from './catalogue.ts';
import { listed, type Mapping } from './mapping.ts';
import { PRESETS, type Preset, type PresetName } from './presets.ts';

/** How a library lays out its table, as it was seen in one that the library filled (`test/mapped-collections/fixtures`). */
export interface LibraryLayout {
  readonly library: string;
  /** What made such tables there: `mem0ai 2.2.1`. */
  readonly versions: readonly string[];
  readonly preset: PresetName;
  /** What the preset needs besides the table. An ellipsis stands for what the application chooses. */
  readonly settings?: Readonly<Record<string, string>>;
  /** Types by column, without their lengths; several are separated by a bar. */
  readonly columns: Readonly<Record<string, string>>;
  /** The application may add columns. */
  readonly open?: true;
  /** Columns that no other library has together: a table with these and other columns than above is one of another version. Empty: there are none. */
  readonly signs: readonly string[];
  /** Part of an index that tells this version from one with the same columns. */
  readonly index?: string;
}

const VECTOR = 'vector|halfvec';
const JSONS = 'json|jsonb';
const TEXT = 'text|varchar';

const LANGCHAIN = { collection_id: 'uuid', embedding: VECTOR, document: 'varchar' };
const LLAMAINDEX = { id: 'int8', text: 'varchar', metadata_: JSONS, node_id: 'varchar', embedding: VECTOR };
const MEM0 = { id: 'uuid', vector: VECTOR, payload: 'jsonb' };
const AGNO = {
  ...{ id: 'varchar', name: 'varchar', meta_data: 'jsonb', filters: 'jsonb', content: 'text', embedding: VECTOR },
  ...{ usage: 'jsonb', created_at: 'timestamptz', updated_at: 'timestamptz', content_hash: 'varchar' },
  content_id: 'varchar',
};

export const LIBRARY_LAYOUTS: readonly LibraryLayout[] = [
  {
    library: 'LangChain for Python (PGVector)',
    versions: ['langchain-postgres 0.0.19', 'langchain-postgres 0.0.13'],
    preset: 'langchain-py',
    settings: { OMP_MAPPING_COLLECTION: '…' },
    columns: { id: 'varchar', ...LANGCHAIN, cmetadata: 'jsonb' },
    signs: ['collection_id', 'document', 'cmetadata'],
  },
  {
    library: 'LangChain for Python (PGVector of langchain-community)',
    versions: ['langchain-community 0.4.2'],
    preset: 'langchain-py',
    settings: { OMP_MAPPING_ID: 'uuid', OMP_MAPPING_COLLECTION: '…' },
    columns: { ...LANGCHAIN, cmetadata: JSONS, custom_id: 'varchar', uuid: 'uuid' },
    signs: ['custom_id', 'document', 'cmetadata'],
  },
  {
    library: 'LangChain for Python (PGVectorStore)',
    versions: ['langchain-postgres 0.0.19'],
    preset: 'langchain-py-v2',
    columns: { langchain_id: 'uuid', content: 'text', embedding: VECTOR, langchain_metadata: 'json' },
    open: true,
    signs: ['langchain_id'],
  },
  {
    library: 'LangChain for Python (PGVectorStore with a metadata column for the user)',
    versions: ['langchain-postgres 0.0.19'],
    preset: 'langchain-py-v2',
    settings: { OMP_MAPPING_USER_ID: 'user_id' },
    columns: { langchain_id: 'uuid', content: 'text', embedding: VECTOR, user_id: TEXT, langchain_metadata: 'json' },
    open: true,
    signs: ['langchain_id', 'user_id'],
  },
  {
    library: 'LlamaIndex for Python (PGVectorStore)',
    versions: ['llama-index-vector-stores-postgres 0.9.0', 'llama-index-vector-stores-postgres 0.4.2'],
    preset: 'llamaindex-py',
    columns: LLAMAINDEX,
    signs: ['metadata_', 'node_id'],
  },
  {
    library: 'LlamaIndex for Python (PGVectorStore with hybrid_search)',
    versions: ['llama-index-vector-stores-postgres 0.9.0'],
    preset: 'llamaindex-py',
    columns: { ...LLAMAINDEX, text_search_tsv: 'tsvector' },
    signs: ['metadata_', 'node_id', 'text_search_tsv'],
  },
  {
    library: 'mem0 for Python (pgvector)',
    versions: ['mem0ai 2.2.1'],
    preset: 'mem0',
    columns: MEM0,
    signs: ['vector', 'payload'],
    index: "payload->>'text_lemmatized'",
  },
  {
    library: 'mem0 (pgvector), for Python before 2.0 or for TypeScript',
    versions: ['mem0ai 1.0.11'],
    preset: 'mem0',
    columns: MEM0,
    signs: ['vector', 'payload'],
  },
  {
    library: 'Haystack (PgvectorDocumentStore)',
    versions: ['pgvector-haystack 8.1.2', 'pgvector-haystack 3.4.1'],
    preset: 'haystack',
    columns: {
      ...{ id: 'varchar', embedding: VECTOR, content: 'text', blob_data: 'bytea', blob_meta: 'jsonb' },
      ...{ blob_mime_type: 'varchar', meta: 'jsonb' },
    },
    signs: ['blob_data', 'blob_meta', 'meta'],
  },
  {
    library: 'agno (PgVector)',
    versions: ['agno 3.1.10'],
    preset: 'agno',
    columns: { ...AGNO, user_id: 'varchar' },
    signs: ['meta_data', 'content_hash', 'user_id'],
  },
  {
    library: 'agno (PgVector) before 3.0',
    versions: ['agno 2.9.0'],
    preset: 'agno',
    settings: { OMP_MAPPING_USER_ID: "meta_data->>'user_id'" },
    columns: AGNO,
    signs: ['meta_data', 'content_hash'],
  },
  {
    library: 'LangGraph for Python (PostgresStore)',
    versions: ['langgraph-checkpoint-postgres 3.2.0', 'langgraph-checkpoint-postgres 2.0.25'],
    preset: 'langgraph-store',
    settings: { OMP_MAPPING_USER_PATTERN: '….{user}' },
    columns: {
      ...{ prefix: 'text', key: 'text', value: 'jsonb', created_at: 'timestamptz', updated_at: 'timestamptz' },
      ...{ expires_at: 'timestamptz', ttl_minutes: 'int4' },
    },
    signs: ['prefix', 'key', 'value'],
  },
  {
    library: 'vecs',
    versions: ['vecs 0.4.5', 'vecs 0.3.1'],
    preset: 'vecs',
    settings: { OMP_MAPPING_CONTENT: "metadata->>'…'" },
    columns: { id: TEXT, vec: VECTOR, metadata: 'jsonb' },
    signs: ['vec', 'metadata'],
  },
  {
    library: 'Spring AI (PgVectorStore)',
    versions: [
      'org.springframework.ai:spring-ai-pgvector-store 2.0.1',
      'org.springframework.ai:spring-ai-pgvector-store 1.0.4',
    ],
    preset: 'spring-ai',
    columns: { id: 'uuid', content: 'text', metadata: 'json', embedding: VECTOR },
    signs: [],
  },
  {
    library: 'LangChain4j (PgVectorEmbeddingStore)',
    versions: ['dev.langchain4j:langchain4j-pgvector 1.13.0-beta23', 'dev.langchain4j:langchain4j-pgvector 0.36.2'],
    preset: 'langchain4j',
    columns: { embedding_id: 'uuid', embedding: VECTOR, text: 'text', metadata: JSONS },
    signs: ['embedding_id', 'metadata'],
  },
  {
    library: 'LangChain4j (PgVectorEmbeddingStore with a column for each key)',
    versions: ['dev.langchain4j:langchain4j-pgvector 1.13.0-beta23'],
    preset: 'langchain4j',
    settings: { OMP_MAPPING_USER_ID: 'user_id' },
    columns: { embedding_id: 'uuid', embedding: VECTOR, text: 'text', user_id: TEXT },
    open: true,
    signs: ['embedding_id', 'user_id'],
  },
  {
    library: 'LangChainGo (pgvector)',
    versions: ['github.com/tmc/langchaingo v0.1.14', 'github.com/tmc/langchaingo v0.1.7'],
    preset: 'langchaingo',
    settings: { OMP_MAPPING_COLLECTION: '…' },
    columns: { ...LANGCHAIN, cmetadata: 'json', uuid: 'uuid' },
    signs: ['collection_id', 'document', 'uuid'],
  },
  {
    library: 'rig (rig-postgres)',
    versions: ['rig-postgres 0.44.0'],
    preset: 'rig',
    columns: { id: 'uuid', document: 'jsonb', embedded_text: 'text', embedding: VECTOR },
    signs: ['document', 'embedded_text'],
  },
];

/** A layout that a table has, or resembles. */
export interface Recognised {
  readonly layout: LibraryLayout;
  /** What the table has otherwise than the versions that were seen; empty: nothing. */
  readonly differences: readonly string[];
}

type Catalogued = Pick<Table, 'columns' | 'indexes'>;

/** The layout of a table by its columns and, where these are the same, by its indexes. Undefined: none that is known. */
export function recognise(table: Catalogued): Recognised | undefined {
  const [exact] = layoutsOf(table);
  if (exact) return { layout: exact, differences: [] };
  const similar = LIBRARY_LAYOUTS.filter(
    ({ signs }) => signs.length > 0 && signs.every((name) => table.columns.has(name)),
  )
    .map((layout) => ({ layout, differences: differencesOf(table, layout) }))
    .sort((a, b) => a.differences.length - b.differences.length);
  return similar[0];
}

/** All layouts that a table has: at most one, which a test asks of every recorded table. */
export function layoutsOf(table: Catalogued): LibraryLayout[] {
  const all = LIBRARY_LAYOUTS.filter((layout) => differencesOf(table, layout).length === 0);
  const count = ({ columns }: LibraryLayout) => Object.keys(columns).length;
  const same = all.filter((layout) => all.every((other) => count(other) <= count(layout)));
  const indexed = same.filter(({ index }) => index !== undefined && hasIndex(table, index));
  return indexed.length > 0 ? indexed : same.filter(({ index }) => index === undefined);
}

const hasIndex = ({ indexes }: Catalogued, part: string): boolean =>
  indexes.some(({ keys }) => keys.some(({ expression }) => plainExpression(expression).includes(part)));

function differencesOf({ columns }: Catalogued, layout: LibraryLayout): string[] {
  const wanted = Object.entries(layout.columns);
  const missing = wanted.filter(([name]) => !columns.has(name)).map(([name]) => `no "${name}"`);
  const others = wanted.flatMap(([name, type]) => {
    const column = columns.get(name);
    return !column || type.split('|').includes(column.base) ? [] : [`"${name}" of type ${column.base}`];
  });
  const more = [...columns.keys()].filter((name) => !(name in layout.columns)).map((name) => `a column "${name}"`);
  return [...missing, ...others, ...(layout.open ? [] : more)];
}

/** The settings that serve such a table, as a shell reads them. */
export function settingsFor(
  { preset, settings = {} }: LibraryLayout,
  { schema, name }: Pick<Table, 'schema' | 'name'>,
) {
  const { schema: usual = 'public', table }: Preset = PRESETS[preset];
  const all = {
    OMP_MAPPING_PRESET: preset,
    ...(schema !== usual && { OMP_MAPPING_SCHEMA: schema }),
    ...(name !== table && { OMP_MAPPING_TABLE: name }),
    ...settings,
  };
  return Object.entries(all).map(([key, value]) => `${key}=${/^[\w.{}…-]+$/.test(value) ? value : `"${value}"`}`);
}

/** Whether the settings are those for the layout already. */
export const isConfigured = ({ layout, differences }: Recognised, mapping: Mapping): boolean =>
  differences.length === 0 &&
  layout.preset === mapping.preset &&
  Object.entries(layout.settings ?? {}).every(
    ([name, value]) =>
      value.includes('…') || mapping[name.replace('OMP_MAPPING_', '').toLowerCase() as keyof Mapping] === value,
  );

/** What is known of a table, as a sentence without its full stop. */
export function describeLayout(table: Pick<Table, 'schema' | 'name'>, { layout, differences }: Recognised): string {
  const label = `${table.schema}.${table.name}`;
  const seen = listed(layout.versions);
  const settings = settingsFor(layout, table).join(' ');
  return differences.length === 0
    ? `${label} has the layout of ${layout.library}, as ${seen} makes it: ${settings} serves it`
    : `${label} has columns of ${layout.library}, but not the layout of ${seen}: it has ${listed(differences.slice(0, SHOWN))}; another version made it, so check each setting after ${settings}`;
}

/** Differences that a message names. */
const SHOWN = 6;
