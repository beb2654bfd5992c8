import { z } from 'zod';
import { Mapping } from '../../providers/postgres/mapped/mapping.ts';
import { type SettingFacts, settingFacts } from './facts.ts';

/** The provider's schema decides what is allowed. This file says what a user needs to know about each setting. */
const { shape } = Mapping;

const ONLY = { only: ['mapping.preset'] } as const;
const IDENTIFIER = { allowed: '1 to 63 bytes without NUL', ...ONLY };
const COLUMN = { allowed: 'the name of a column, in double quotes unless it is a plain word', ...ONLY };

const field = (env: string, what: string, example: string): SettingFacts => ({
  env,
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
  content: shape.content.register(settingFacts, field('OMP_MAPPING_CONTENT', 'the text', 'content')),
  user_id: shape.user_id.register(
    settingFacts,
    field('OMP_MAPPING_USER_ID', 'the id of the user', "metadata->>'user_id'"),
  ),
  user_pattern: shape.user_pattern.register(settingFacts, {
    env: 'OMP_MAPPING_USER_PATTERN',
    description: 'What the table stores for a user: the id, or a text that contains it such as memories.{user}',
    allowed: 'a text that contains {user} exactly once',
    ...ONLY,
  }),
  scope: shape.scope.register(settingFacts, field('OMP_MAPPING_SCOPE', 'the scope', "metadata->>'scope'")),
  tags: shape.tags.register(
    settingFacts,
    field('OMP_MAPPING_TAGS', 'tags, as text[] or a list in JSON', "metadata->'tags'"),
  ),
  source: shape.source.register(settingFacts, field('OMP_MAPPING_SOURCE', 'the source, as JSON', "metadata->'source'")),
  confidence: shape.confidence.register(
    settingFacts,
    field('OMP_MAPPING_CONFIDENCE', 'the confidence', "metadata->>'confidence'"),
  ),
  created_at: shape.created_at.register(
    settingFacts,
    field('OMP_MAPPING_CREATED_AT', 'the time of creation', 'created_at'),
  ),
  updated_at: shape.updated_at.register(
    settingFacts,
    field('OMP_MAPPING_UPDATED_AT', 'the time of the last change', 'updated_at'),
  ),
  valid_from: shape.valid_from.register(
    settingFacts,
    field('OMP_MAPPING_VALID_FROM', 'the start of validity', "metadata->>'valid_from'"),
  ),
  valid_to: shape.valid_to.register(
    settingFacts,
    field('OMP_MAPPING_VALID_TO', 'the end of validity', "metadata->>'valid_to'"),
  ),
  supersedes: shape.supersedes.register(
    settingFacts,
    field(
      'OMP_MAPPING_SUPERSEDES',
      'the ids of the superseded memories, as text[] or a list in JSON',
      "metadata->'supersedes'",
    ),
  ),
  extensions: shape.extensions.register(
    settingFacts,
    field('OMP_MAPPING_EXTENSIONS', 'the x- keys, as a JSON object', "metadata->'extensions'"),
  ),
});
