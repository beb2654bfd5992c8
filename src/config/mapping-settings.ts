import { z } from 'zod';
import { Mapping } from '../../providers/postgres/mapped/mapping.ts';
import { settingFacts } from './facts.ts';

/** The provider's schema decides what is allowed. This file says what a user needs to know about each setting. */
const { shape } = Mapping;

const ONLY = { only: ['mapping.preset'] } as const;
const IDENTIFIER = { allowed: '1 to 63 bytes without NUL', ...ONLY };
const COLUMN = { allowed: 'the name of a column, in double quotes unless it is a plain word', ...ONLY };

type FieldName = Exclude<
  keyof typeof shape,
  | 'preset'
  | 'schema'
  | 'table'
  | 'collection'
  | 'writable'
  | 'id'
  | 'new_ids'
  | 'embedding'
  | 'deleted_at'
  | 'user_pattern'
>;

/** Where a row holds a field. */
const field = (name: FieldName, what: string, example: string) =>
  shape[name].register(settingFacts, {
    env: `OMP_MAPPING_${name.toUpperCase()}`,
    description: `Where a row holds ${what}; unset: as in the preset`,
    example,
    allowed: `a column, a path such as metadata->>'user_id', or a constant such as 'shared'`,
    ...ONLY,
  });

/** A table that another application fills. */
export const mapping = z.strictObject({
  preset: shape.preset.optional().register(settingFacts, {
    env: 'OMP_MAPPING_PRESET',
    description:
      'Library that fills the mapped table: selects its columns; custom: the other settings name them; unset: the gateway uses its own tables',
    example: 'langchain-js',
    only: ['provider', 'postgres'],
  }),
  schema: shape.schema.register(settingFacts, {
    env: 'OMP_MAPPING_SCHEMA',
    description: 'Schema of the table; unset: that of the preset, else public',
    example: 'public',
    ...IDENTIFIER,
  }),
  table: shape.table.register(settingFacts, {
    env: 'OMP_MAPPING_TABLE',
    description: 'Table or view to serve; unset: that of the preset',
    example: 'documents',
    ...IDENTIFIER,
  }),
  collection: shape.collection.register(settingFacts, {
    env: 'OMP_MAPPING_COLLECTION',
    description: `Collection to serve, if the library keeps several in one table; unset: the library's default`,
    example: 'langchain',
    ...ONLY,
  }),
  writable: shape.writable.register(settingFacts, {
    env: 'OMP_MAPPING_WRITABLE',
    description: 'Whether the gateway may add, change and delete rows',
    ...ONLY,
  }),
  id: shape.id.register(settingFacts, {
    env: 'OMP_MAPPING_ID',
    description: 'Column of the id; unset: that of the preset',
    example: 'id',
    ...COLUMN,
  }),
  new_ids: shape.new_ids.register(settingFacts, {
    env: 'OMP_MAPPING_NEW_IDS',
    description:
      'Ids of new memories: text (such as mem_…), uuid, or database (the default of the column); unset: that of the preset',
    example: 'uuid',
    ...ONLY,
  }),
  embedding: shape.embedding.register(settingFacts, {
    env: 'OMP_MAPPING_EMBEDDING',
    description: 'Column of the vector; unset: that of the preset',
    example: 'embedding',
    ...COLUMN,
  }),
  deleted_at: shape.deleted_at.register(settingFacts, {
    env: 'OMP_MAPPING_DELETED_AT',
    description:
      'Column that marks a row as deleted, by a time or true: such rows are hidden, and a deleted memory is marked; unset: no row is marked',
    example: 'deleted_at',
    ...COLUMN,
  }),
  content: field('content', 'the text', 'content'),
  user_id: field('user_id', 'the id of the user', "metadata->>'user_id'"),
  user_pattern: shape.user_pattern.register(settingFacts, {
    env: 'OMP_MAPPING_USER_PATTERN',
    description: 'What the table stores for a user: the id, or a text that contains it such as memories.{user}',
    allowed: 'a text that contains {user} exactly once',
    ...ONLY,
  }),
  scope: field('scope', 'the scope', "metadata->>'scope'"),
  tags: field('tags', 'tags, as text[] or a list in JSON', "metadata->'tags'"),
  source: field('source', 'the source, as JSON', "metadata->'source'"),
  confidence: field('confidence', 'the confidence', "metadata->>'confidence'"),
  created_at: field('created_at', 'the time of creation', 'created_at'),
  updated_at: field('updated_at', 'the time of the last change', 'updated_at'),
  valid_from: field('valid_from', 'the start of validity', "metadata->>'valid_from'"),
  valid_to: field('valid_to', 'the end of validity', "metadata->>'valid_to'"),
  supersedes: field(
    'supersedes',
    'the ids of the superseded memories, as text[] or a list in JSON',
    "metadata->'supersedes'",
  ),
  extensions: field('extensions', 'the x- keys, as a JSON object', "metadata->'extensions'"),
});
