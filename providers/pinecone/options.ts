import { z } from 'zod';
import { PRESET_NAMES } from './mapped/preset-names.ts';

const field = z.string().min(1).regex(/^[^$]/);

export const Options = z.strictObject({
  api_key: z.string().min(1),
  /** Address of the index; https:// where no scheme is given. */
  index_host: z.string().min(1),
  /** Namespace of the memories, or what those of the other layouts begin with. */
  namespace: z.string().min(1).max(400).default('memories'),
  layout: z.enum(['single', 'sharded', 'per-user']).default('single'),
  /** Of an index that does not tell. */
  metric: z.enum(['cosine', 'dotproduct', 'euclidean']).default('cosine'),
  /** Longest wait for one answer. */
  timeout_ms: z.int().min(1).default(5_000),
  /** Requests to the service at once, and those that wait for their turn, at most. */
  concurrency: z.int().min(1).default(32),
  max_waiting: z.int().min(1).default(1_000),
  /** How long own writes are remembered, so that reads show them before the service does. */
  settle_ms: z.int().min(0).default(120_000),
  /** Longest wait for what a client wrote through another gateway. */
  consistency_wait_ms: z.int().min(0).default(1_000),
  max_scan: z.int().min(1).default(10_000),
  /** An index that somebody else fills; unset: one of ours. */
  preset: z.enum(PRESET_NAMES).optional(),
  text_field: field.optional(),
  user_field: field.optional(),
  created_field: field.optional(),
  updated_field: field.optional(),
  tags_field: field.optional(),
  writable: z.boolean().default(false),
  /** Most records of one user that a list of such an index sorts. */
  max_listed: z.int().min(1).max(10_000).default(1_000),
});
export type Options = z.output<typeof Options>;
