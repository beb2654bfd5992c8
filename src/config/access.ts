import { z } from 'zod';
import { configuredKeysSchema, grantSchema } from '../auth/configured-keys.ts';
import { ALGORITHMS } from '../auth/credentials.ts';
import { isAddressOrRange } from '../rate-limit/addresses.ts';
import { settingFacts, text } from './facts.ts';

const WITH_TOKENS = ['jwt.jwks_url'] as const;

export const auth = z.strictObject({
  mode: z.enum(['auto', 'required']).default('auto').register(settingFacts, {
    env: 'OMP_AUTH',
    description: 'auto lets everybody in until there is a key or jwt.jwks_url, required nobody without one of these',
  }),
  keys: configuredKeysSchema.default([]).register(settingFacts, {
    env: 'OMP_AUTH_KEYS',
    description: 'API keys, beside those that the gateway keeps in Postgres; in the environment as JSON',
    allowed: 'keys as "omp-gateway keys create NAME --print" makes them: name, hash of the key, grants, users, expiry',
    secret: true,
    example: [
      { name: 'editor', key: `omp_k3j2h1g0f9e8:sha256:${'0123456789abcdef'.repeat(4)}`, grants: ['read:coding/*'] },
    ],
  }),
});

export const jwt = z.strictObject({
  jwks_url: z
    .url({ protocol: /^https?$/ })
    .optional()
    .register(settingFacts, {
      env: 'OMP_JWT_JWKS_URL',
      description: 'Public keys of the identity provider whose tokens are accepted; unset: none are',
      allowed: 'an http:// or https:// URL',
      example: 'https://login.example.com/.well-known/jwks.json',
    }),
  issuer: text.optional().register(settingFacts, {
    env: 'OMP_JWT_ISSUER',
    description: 'What the claim iss of a token must be; required with jwt.jwks_url',
    example: 'https://login.example.com/',
    only: WITH_TOKENS,
  }),
  audience: text.optional().register(settingFacts, {
    env: 'OMP_JWT_AUDIENCE',
    description: 'What the claim aud of a token must name; required with jwt.jwks_url',
    example: 'omp-gateway',
    only: WITH_TOKENS,
  }),
  algorithms: z
    .array(z.enum(ALGORITHMS))
    .min(1)
    .default(['RS256', 'ES256', 'EdDSA'])
    .register(settingFacts, {
      env: 'OMP_JWT_ALGORITHMS',
      description: 'Signatures that are accepted',
      allowed: `some of ${ALGORITHMS.join(', ')}`,
      only: WITH_TOKENS,
    }),
  user_claim: text.default('sub').register(settingFacts, {
    env: 'OMP_JWT_USER_CLAIM',
    description: 'Claim that names the user, or a list of users, whose memories a token may touch',
    only: WITH_TOKENS,
  }),
  grants_claim: text.default('scope').register(settingFacts, {
    env: 'OMP_JWT_GRANTS_CLAIM',
    description: 'Claim that holds grants, as a list or separated by spaces; words that are no grants are left out',
    only: WITH_TOKENS,
  }),
  grants: z
    .array(grantSchema)
    .default([])
    .register(settingFacts, {
      env: 'OMP_JWT_GRANTS',
      description: 'What every valid token may do, beside what its claim says',
      allowed: 'grants such as read:coding/* or *:*',
      example: ['read:*', 'write:*'],
      only: WITH_TOKENS,
    }),
});

export const rateLimit = z.strictObject({
  per_minute: z.int().min(1).max(1_000_000).optional().register(settingFacts, {
    env: 'OMP_RATE_LIMIT_PER_MINUTE',
    description: 'Requests a key or token, or without one a client address, may make in a minute; unset: any number',
    example: 600,
  }),
  store: z.enum(['memory', 'postgres', 'redis']).default('memory').register(settingFacts, {
    env: 'OMP_RATE_LIMIT_STORE',
    description: 'Where requests are counted: memory is each gateway for itself, the others are shared by replicas',
  }),
  redis_url: z
    .string()
    .regex(/^rediss?:\/\//)
    .refine(URL.canParse)
    .optional()
    .register(settingFacts, {
      env: 'OMP_REDIS_URL',
      description: 'Redis server that counts requests',
      allowed: 'a redis:// or rediss:// URL',
      secret: true,
      // biome-ignore lint/suspicious/noTemplateCurlyInString: the syntax of a reference in the file
      example: 'redis://:${REDIS_PASSWORD}@localhost:6379',
      only: ['rate_limit.store', 'redis'],
    }),
  auth_failures_per_minute: z.int().min(0).max(1_000_000).default(30).register(settingFacts, {
    env: 'OMP_AUTH_FAILURES_PER_MINUTE',
    description:
      'Wrong keys or tokens that a client address may send in a minute, and as many requests without one; 0: any number',
  }),
});

export const audit = z.strictObject({
  record: z.enum(['all', 'writes', 'off']).default('all').register(settingFacts, {
    env: 'OMP_AUDIT',
    description: 'What the audit log records: writes leaves out reads that succeed',
  }),
  retention_days: z
    .int()
    .min(0)
    .max(36_500)
    .default(90)
    .register(settingFacts, {
      env: 'OMP_AUDIT_RETENTION_DAYS',
      description: 'Days an entry of the audit log is kept; 0: for ever',
      only: ['audit.record', 'all', 'writes'],
    }),
});

/** An address, or a network as address/prefix. */
export const addressOrNetwork = z.string().refine(isAddressOrRange);

/** `*` or what a browser sends as `Origin`. */
export const origin = z
  .string()
  .refine(
    (given) => given === '*' || (/^https?:/.test(given) && URL.canParse(given) && new URL(given).origin === given),
  );
