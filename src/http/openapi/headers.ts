import { z } from 'zod';
import { ONCE_TTL_MS } from '#contract';
import { REQUEST_ID } from '../call.ts';
import { IDEMPOTENCY_KEY } from '../idempotency.ts';

/** Optional on every request. The form is the one `callMiddleware` takes over. */
export const RequestIdParameter = z
  .string()
  .optional()
  .meta({
    description: 'Taken over as the id of this request when it has this form; anything else is replaced.',
    pattern: REQUEST_ID.source,
    param: { id: 'RequestId' },
  });

/** Decision 19. */
export const UserIdParameter = z
  .string()
  .optional()
  .meta({
    description: 'When given, a memory of another user counts as absent.',
    param: { id: 'UserId' },
  });

/** Decision 20. */
export const IdempotencyKeyParameter = z
  .string()
  .optional()
  .meta({
    description: `Makes the request repeatable: for ${ONCE_TTL_MS / 3_600_000} hours the same key of the same caller, with an equal memory, gets
the first answer again and creates nothing; with another memory it is refused with 400. May be written as a quoted
string. Where \`features.idempotency\` is false, a request with a key is \`unsupported_capability\`.`,
    pattern: IDEMPOTENCY_KEY.source,
  });

/** Decision 23. */
export const ConsistencyTokenParameter = z
  .string()
  .optional()
  .meta({
    description: `The \`X-Consistency-Token\` of this client's latest answer that had one: what it names is waited for a
moment, on every replica. A token that is none is ignored, and so is every token where \`features.consistency_tokens\` is
false.`,
    param: { id: 'ConsistencyToken' },
  });

export const RequestIdHeader = z.string().meta({
  description: 'Identifies the request; the same in error bodies and in the log.',
  header: { id: 'RequestId' },
});

export const WwwAuthenticateHeader = z.string().meta({
  description: 'The scheme a credential is sent by, `Bearer`.',
  header: { id: 'WwwAuthenticate' },
});

export const RetryAfterHeader = z
  .string()
  .optional()
  .meta({
    description: 'Seconds to wait; missing when a backend refused without saying so.',
    header: { id: 'RetryAfter' },
  });

const told = (id: string, description: string) => z.string().optional().meta({ description, header: { id } });

const limit = (id: string, description: string) => told(id, `${description} Only where requests are limited.`);

/** Decision 17. */
export const rateLimitHeaders = {
  'RateLimit-Policy': limit('RateLimitPolicy', 'The limit: `q` requests in `w` seconds.'),
  RateLimit: limit('RateLimit', 'What is left of it: `r` requests, more in `t` seconds.'),
  'X-RateLimit-Limit': limit('XRateLimitLimit', 'Requests a minute.'),
  'X-RateLimit-Remaining': limit('XRateLimitRemaining', 'Requests left.'),
  'X-RateLimit-Reset': limit('XRateLimitReset', 'Seconds until there are more.'),
};

/** Decision 23. */
export const consistencyHeaders = {
  'X-Consistency-Token': told(
    'ConsistencyToken',
    'After a change: names it, and what the token of the request named. Only where `features.consistency_tokens` is true.',
  ),
  'X-Consistency': told('Consistency', '`behind`: what the token of the request names may be missing here.'),
};
