import { z } from 'zod';
import { settingFacts } from '../../config/facts.ts';

export const webhooks = z
  .strictObject({
    secret: z
      .string()
      .min(32)
      .optional()
      .register(settingFacts, {
        env: 'OMP_WEBHOOK_SECRET',
        description: 'What encrypts the secrets of webhooks, the same for all replicas; unset: no webhooks',
        allowed: 'at least 32 random characters, as "openssl rand -base64 32" prints them',
        secret: true,
        // biome-ignore lint/suspicious/noTemplateCurlyInString: the syntax of a reference in the file
        example: '${WEBHOOK_SECRET}',
        only: ['audit.record', 'all', 'writes'],
      }),
    private: z.enum(['on', 'off']).default('off').register(settingFacts, {
      env: 'OMP_WEBHOOK_PRIVATE',
      description: 'Whether webhooks may have private addresses, and http:// URLs',
    }),
  })
  .prefault({});
