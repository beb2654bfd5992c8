import { z } from 'zod';
import { PRESET_NAMES } from './presets/names.ts';

const place = z.string().min(1);

/** How a table of somebody else is read. What is unset comes from the preset. */
export const Mapping = z.strictObject({
  preset: z.enum(PRESET_NAMES),
  schema: z.string().min(1).optional(),
  table: z.string().min(1).optional(),
  collection: z.string().min(1).optional(),
  writable: z.boolean().default(false),
  id: place.optional(),
  new_ids: z.enum(['text', 'uuid', 'database']).optional(),
  embedding: place.optional(),
  /** What is stored of a user, `{user}` standing for the id. */
  user_pattern: z.string().min(1).default('{user}'),
  content: place.optional(),
  user_id: place.optional(),
  scope: place.optional(),
  tags: place.optional(),
  source: place.optional(),
  confidence: place.optional(),
  created_at: place.optional(),
  updated_at: place.optional(),
  valid_from: place.optional(),
  valid_to: place.optional(),
  supersedes: place.optional(),
  extensions: place.optional(),
});
export type Mapping = z.output<typeof Mapping>;
