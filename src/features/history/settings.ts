import { z } from 'zod';
import { settingFacts } from '../../config/facts.ts';

const KEPT = ['versions.keep', 'on'] as const;

export const versions = z
  .strictObject({
    keep: z.enum(['on', 'off']).default('on').register(settingFacts, {
      env: 'OMP_VERSIONS',
      description: 'Whether the versions that changes of memories replace are kept; off: none are kept or shown',
    }),
    max: z.int().min(1).max(10_000).default(100).register(settingFacts, {
      env: 'OMP_VERSIONS_MAX',
      description: 'Maximum versions of a memory before its current one; the oldest are deleted',
      only: KEPT,
    }),
    retention_days: z.int().min(0).max(36_500).default(365).register(settingFacts, {
      env: 'OMP_VERSIONS_DAYS',
      description: 'Days to keep a version after it was replaced; 0: forever',
      only: KEPT,
    }),
  })
  .prefault({});
