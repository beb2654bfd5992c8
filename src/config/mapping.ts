import { z } from 'zod';
import { settingFacts, text } from './facts.ts';

const EXISTING = { only: ['mapping.preset'] } as const;

/** A column, quoted where it is no plain word. */
const column = text.regex(/^(?:[A-Za-z_][\w$]*|"(?:[^"\0]|"")+")$/);
/** A column, a path into one that holds JSON, or a constant: the little of SQL that says this. */
const place = text.regex(/^(?:(?:[A-Za-z_][\w$]*|"(?:[^"\0]|"")+")(?:->>?'(?:[^'\0]|'')*')*|'(?:[^'\0]|'')*')$/);
/** Postgres cuts longer identifiers without an error. */
const identifier = text.refine((name) => Buffer.byteLength(name) <= 63 && !name.includes('\0'));

const COLUMN = { allowed: `the name of a column, in double quotes where it is no plain word`, ...EXISTING };
const PLACE = { allowed: `a column, a path such as metadata->>'user_id', or a constant such as 'shared'`, ...EXISTING };

const field = (env: string, what: string, example: string) =>
  place.optional().register(settingFacts, {
    env,
    description: `Where a row has ${what}; unset: where the preset says`,
    example,
    ...PLACE,
  });

/** A table that somebody else fills. */
export const mapping = z.strictObject({
  preset: z
    .enum([
      'langchain-py',
      'langchain-py-v2',
      'langchain-js',
      'n8n',
      'typeorm',
      'llamaindex-py',
      'llamaindex-ts',
      'mem0',
      'mem0-supabase',
      'supabase',
      'vecs',
      'spring-ai',
      'haystack',
      'vercel-drizzle',
      'langgraph-store',
      'langgraph-store-js',
      'mastra',
      'custom',
    ])
    .optional()
    .register(settingFacts, {
      env: 'OMP_MAPPING_PRESET',
      description:
        'What fills the table, if not this gateway: its columns, or with custom those that are named here; unset: tables of our own',
      example: 'langchain-js',
      only: ['provider', 'postgres'],
    }),
  schema: identifier.optional().register(settingFacts, {
    env: 'OMP_MAPPING_SCHEMA',
    description: 'Schema of the table; unset: that of the preset, else public',
    allowed: '1 to 63 bytes without NUL',
    example: 'public',
    ...EXISTING,
  }),
  table: identifier.optional().register(settingFacts, {
    env: 'OMP_MAPPING_TABLE',
    description: 'Table or view to read; unset: that of the preset',
    allowed: '1 to 63 bytes without NUL',
    example: 'documents',
    ...EXISTING,
  }),
  collection: text.optional().register(settingFacts, {
    env: 'OMP_MAPPING_COLLECTION',
    description:
      'Which of the collections that share the table, where a library keeps several in one; unset: its default',
    example: 'langchain',
    ...EXISTING,
  }),
  writable: z
    .boolean()
    .default(false)
    .register(settingFacts, {
      env: 'OMP_MAPPING_WRITABLE',
      description: 'Whether memories can be added, changed and deleted through this gateway',
      ...EXISTING,
    }),
  id: column.optional().register(settingFacts, {
    env: 'OMP_MAPPING_ID',
    description: 'Column of the id; unset: that of the preset',
    example: 'id',
    ...COLUMN,
  }),
  new_ids: z
    .enum(['text', 'uuid', 'database'])
    .optional()
    .register(settingFacts, {
      env: 'OMP_MAPPING_NEW_IDS',
      description:
        'What new memories get for an id: one of ours in a text, a UUID, or what the column has for a default; unset: what the preset says',
      example: 'uuid',
      ...EXISTING,
    }),
  embedding: column.optional().register(settingFacts, {
    env: 'OMP_MAPPING_EMBEDDING',
    description: 'Column of the vector; unset: that of the preset',
    example: 'embedding',
    ...COLUMN,
  }),
  content: field('OMP_MAPPING_CONTENT', 'the text', 'content'),
  user_id: field('OMP_MAPPING_USER_ID', 'the id of the user', "metadata->>'user_id'"),
  user_pattern: text
    .refine((pattern) => pattern.split('{user}').length === 2)
    .default('{user}')
    .register(settingFacts, {
      env: 'OMP_MAPPING_USER_PATTERN',
      description: 'What is stored of a user: the id, or a text around it such as memories.{user}',
      allowed: 'a text with {user} in it once',
      ...EXISTING,
    }),
  scope: field('OMP_MAPPING_SCOPE', 'the scope', "metadata->>'scope'"),
  tags: field('OMP_MAPPING_TAGS', 'tags, as text[] or a list in JSON', "metadata->'tags'"),
  source: field('OMP_MAPPING_SOURCE', 'the source, as JSON', "metadata->'source'"),
  confidence: field('OMP_MAPPING_CONFIDENCE', 'the confidence', "metadata->>'confidence'"),
  created_at: field('OMP_MAPPING_CREATED_AT', 'the time of creation', 'created_at'),
  updated_at: field('OMP_MAPPING_UPDATED_AT', 'the time of the last change', 'updated_at'),
  valid_from: field('OMP_MAPPING_VALID_FROM', 'the begin of validity', "metadata->>'valid_from'"),
  valid_to: field('OMP_MAPPING_VALID_TO', 'the end of validity', "metadata->>'valid_to'"),
  supersedes: field(
    'OMP_MAPPING_SUPERSEDES',
    'the ids of what it supersedes, as text[] or a list in JSON',
    "metadata->'supersedes'",
  ),
  extensions: field('OMP_MAPPING_EXTENSIONS', 'the x- keys, as a JSON object', "metadata->'extensions'"),
});
