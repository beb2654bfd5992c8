import { z } from 'zod';
import { PRESET_NAMES } from './mapped/presets.ts';

/** Commands of Pinecone's filters begin with `$`, so keys must not. */
const field = z.string().regex(/^[^$]/);
const milliseconds = z.int().min(0).max(3_600_000);

/** The options of an index. `src/config/pinecone-settings.ts` derives the settings from them. */
export const Options = z.strictObject({
  api_key: z.string().regex(/^[\x21-\x7e]+$/),
  /** Address of the index; https:// unless it names a scheme. */
  index_host: z.string().regex(/^(https?:\/\/)?([^\s/?#@:[\]]+|\[[\da-f:.]+\])(:\d+)?\/*$/i),
  /** Namespace of the memories; other layouts append to it. */
  namespace: z
    .string()
    .regex(/^[\x21-\x7e]{1,400}$/)
    .default('memories'),
  layout: z.enum(['single', 'sharded', 'per-user']).default('single'),
  /** Used if the index does not report its metric. */
  metric: z.enum(['cosine', 'dotproduct', 'euclidean']).default('cosine'),
  /** Deadline of one answer. */
  timeout_ms: milliseconds.min(1).default(5_000),
  /** Maximum concurrent requests and queued requests. */
  concurrency: z.int().min(1).max(1_000).default(32),
  max_waiting: z.int().min(1).max(1_000_000).default(1_000),
  /** How long the gateway remembers its writes, so that reads show them before Pinecone does. */
  settle_ms: milliseconds.default(120_000),
  /** Longest wait for a client's write through another gateway. */
  consistency_wait_ms: milliseconds.default(1_000),
  max_scan: z.int().min(1).max(10_000_000).default(10_000),
  /** Library that fills the index; unset: the gateway. */
  preset: z.enum(PRESET_NAMES).optional(),
  text_field: field.optional(),
  user_field: field.optional(),
  created_field: field.optional(),
  updated_field: field.optional(),
  tags_field: field.optional(),
  writable: z.boolean().default(false),
  /** Maximum records of one user that a list of a mapped index sorts. */
  max_listed: z.int().min(1).max(10_000).default(1_000),
});
export type Options = z.output<typeof Options>;
