import { z } from 'zod';
import { REQUEST_ID } from '../call.ts';

/** Optional on every request. The form is the one `callMiddleware` takes over. */
export const RequestIdParameter = z
  .string()
  .optional()
  .meta({
    description: 'Taken over as the id of this request when it has this form; anything else is replaced.',
    pattern: REQUEST_ID.source,
    param: { id: 'RequestId' },
  });

/** README, "Decisions" 19. */
export const UserIdParameter = z
  .string()
  .optional()
  .meta({
    description: 'When given, a memory of another user counts as absent.',
    param: { id: 'UserId' },
  });

export const RequestIdHeader = z.string().meta({
  description: 'Identifies the request; the same in error bodies and in the log.',
  header: { id: 'RequestId' },
});

export const RetryAfterHeader = z
  .string()
  .optional()
  .meta({ description: 'Seconds to wait, where the backend said so.', header: { id: 'RetryAfter' } });
