import { z } from 'zod';

import { configuredKeysSchema, grantSchema } from '../auth/configured-keys.ts';
import { ALGORITHMS } from '../auth/credentials.ts';
import { FEATURE_SETTINGS } from '../features/settings.ts';
import { TOOL_NAMES } from '../mcp/names.ts';
import { isAddressOrRange } from '../rate-limit/addresses.ts';
import { httpUrl, settingFacts, text } from './facts.ts';

const WITH_TOKENS = ['jwt.jwks_url'] as const;

const auth = z.strictObject({
  mode: z.enum(['auto', 'open', 'required']).default('auto').register(settingFacts, {
    env: 'OMP_AUTH',
    description:
      'auto: open until a key or jwt.jwks_url is configured, on loopback only. open: the same on every address. required: every request needs a key or a token',
  }),
  keys: configuredKeysSchema.default([]).register(settingFacts, {
    env: 'OMP_AUTH_KEYS',
    description: 'API keys, in addition to those stored in Postgres; in the environment as JSON',
    allowed:
      'keys as "omp-gateway keys create NAME --print" makes them: name, hash of the key, grants, users, expiry, trust',
    secret: true,
    example: [
      { name: 'editor', key: `omp_k3j2h1g0f9e8:sha256:${'0123456789abcdef'.repeat(4)}`, grants: ['read:coding/*'] },
    ],
  }),
});

const jwt = z.strictObject({
  jwks_url: httpUrl.optional().register(settingFacts, {
    env: 'OMP_JWT_JWKS_URL',
    description: 'Public keys of the identity provider whose tokens are accepted; unset: no tokens',
    allowed: 'an http:// or https:// URL',
    example: 'https://login.example.com/.well-known/jwks.json',
  }),
  issuer: text.optional().register(settingFacts, {
    env: 'OMP_JWT_ISSUER',
    description: 'Required value of the claim iss; required with jwt.jwks_url',
    example: 'https://login.example.com/',
    only: WITH_TOKENS,
  }),
  audience: text.optional().register(settingFacts, {
    env: 'OMP_JWT_AUDIENCE',
    description: 'Value that the claim aud must contain; required with jwt.jwks_url',
    example: 'omp-gateway',
    only: WITH_TOKENS,
  }),
  algorithms: z
    .array(z.enum(ALGORITHMS))
    .min(1)
    .default(['RS256', 'ES256', 'EdDSA'])
    .register(settingFacts, {
      env: 'OMP_JWT_ALGORITHMS',
      description: 'Accepted signature algorithms',
      allowed: `some of ${ALGORITHMS.join(', ')}`,
      only: WITH_TOKENS,
    }),
  user_claim: text.default('sub').register(settingFacts, {
    env: 'OMP_JWT_USER_CLAIM',
    description: 'Claim that names the user, or a list of users, whose memories a token may access',
    only: WITH_TOKENS,
  }),
  grants_claim: text.default('scope').register(settingFacts, {
    env: 'OMP_JWT_GRANTS_CLAIM',
    description: 'Claim that holds grants, as a list or separated by spaces; words that are not grants are ignored',
    only: WITH_TOKENS,
  }),
  grants: z
    .array(grantSchema)
    .default([])
    .register(settingFacts, {
      env: 'OMP_JWT_GRANTS',
      description: 'Grants of every valid token, in addition to those in its claim',
      allowed: 'grants such as read:coding/* or *:*',
      example: ['read:*', 'write:*'],
      only: WITH_TOKENS,
    }),
});

const audit = z.strictObject({
  record: z.enum(['all', 'writes', 'off']).default('all').register(settingFacts, {
    env: 'OMP_AUDIT',
    description: 'What the audit log records; writes: no successful reads',
  }),
  retention_days: z
    .int()
    .min(0)
    .max(36_500)
    .default(90)
    .register(settingFacts, {
      env: 'OMP_AUDIT_RETENTION_DAYS',
      description: 'Days to keep an audit entry; 0: forever',
      only: ['audit.record', 'all', 'writes'],
    }),
  erased_users: z
    .enum(['keep', 'hash'])
    .default('keep')
    .register(settingFacts, {
      env: 'OMP_AUDIT_ERASED_USERS',
      description: 'Whether audit entries keep the id of an erased user, or a keyed hash instead',
      only: ['audit.record', 'all', 'writes'],
    }),
});

const mcp = z.strictObject({
  enabled: z.enum(['on', 'off']).default('on').register(settingFacts, {
    env: 'OMP_MCP',
    description: 'Whether agents reach their tools at /mcp',
  }),
  tools: z
    .array(z.enum(TOOL_NAMES))
    .min(1)
    .optional()
    .register(settingFacts, {
      env: 'OMP_MCP_TOOLS',
      description:
        'Tools that agents may use; unset: all except search and fetch, which are for clients that call no others',
      allowed: `some of ${TOOL_NAMES.join(', ')}`,
      example: ['search_memories', 'get_context'],
    }),
});

const compat = z.strictObject({
  interface: z.enum(['mem0']).optional().register(settingFacts, {
    env: 'OMP_COMPAT',
    description: "Another interface to serve beside the protocol's own: mem0's, at /compat/mem0",
    example: 'mem0',
  }),
  infer: z
    .enum(['reject', 'verbatim'])
    .default('reject')
    .register(settingFacts, {
      env: 'OMP_COMPAT_INFER',
      description:
        'Whether an add that asks for facts to be extracted is rejected, or its messages are stored as they are',
      only: ['compat.interface', 'mem0'],
    }),
});

/** `*`, or what a browser sends as `Origin`. */
const origin = z
  .string()
  .refine(
    (value) => value === '*' || (/^https?:/.test(value) && URL.canParse(value) && new URL(value).origin === value),
  );

/** Who may use the gateway, from where, and what is recorded about it. */
export const access = {
  auth: auth.prefault({}),
  jwt: jwt.prefault({}),
  allowed_hosts: z
    .array(z.string().regex(/^[^\s/@*]+$/))
    .min(1)
    .optional()
    .register(settingFacts, {
      env: 'OMP_ALLOWED_HOSTS',
      description:
        'Host names that clients may use; unset: all names, or only localhost if the gateway listens on loopback without keys',
      allowed: 'host names or addresses, with a port to allow only that port',
      example: ['memory.example.com'],
    }),
  cors_origins: z
    .array(origin)
    .default([])
    .register(settingFacts, {
      env: 'OMP_CORS_ORIGINS',
      description: 'Origins of web pages that may call the gateway; unset: none',
      allowed: 'origins such as https://app.example.com, or * for any',
      example: ['https://app.example.com'],
    }),
  trusted_proxies: z
    .array(z.string().refine(isAddressOrRange))
    .default([])
    .register(settingFacts, {
      env: 'OMP_TRUSTED_PROXIES',
      description: 'Proxies whose X-Forwarded-For header names the client address; unset: none',
      allowed: 'IP addresses or networks such as 10.0.0.0/8',
      example: ['10.0.0.0/8', '::1'],
    }),
  audit: audit.prefault({}),
  ...FEATURE_SETTINGS.Access,
  console: z.enum(['on', 'off']).default('on').register(settingFacts, {
    env: 'OMP_CONSOLE',
    description: 'Whether the console is served at /console/',
  }),
  mcp: mcp.prefault({}),
  compat: compat.prefault({}),
};

const rateLimit = z.strictObject({
  per_minute: z.int().min(1).max(1_000_000).optional().register(settingFacts, {
    env: 'OMP_RATE_LIMIT_PER_MINUTE',
    description: 'Requests per minute for each key or token, or for each client address without one; unset: no limit',
    example: 600,
  }),
  auth_failures_per_minute: z.int().min(0).max(1_000_000).default(30).register(settingFacts, {
    env: 'OMP_AUTH_FAILURES_PER_MINUTE',
    description:
      'Wrong keys or tokens per minute from one client address, and as many requests without one; 0: no limit',
  }),
  store: z.enum(['memory', 'postgres', 'redis']).default('memory').register(settingFacts, {
    env: 'OMP_RATE_LIMIT_STORE',
    description: 'Where requests are counted; memory: by each gateway alone, otherwise by all replicas together',
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
});

const limit = z.int().min(0).max(1_000_000_000_000);

/** What a glob of users, or of names of keys, may be. */
const LONGEST_GLOB = 256;

const overrideSchema = z
  .strictObject({
    users: text.max(LONGEST_GLOB).optional(),
    keys: text.max(LONGEST_GLOB).optional(),
    memories: limit.nullable().optional(),
    bytes: limit.nullable().optional(),
    adds_per_day: limit.nullable().optional(),
  })
  .refine(({ users, keys }) => users !== undefined || keys !== undefined, 'must name users or keys')
  .refine(({ users, keys, ...limits }) => Object.keys(limits).length > 0, 'must set memories, bytes or adds_per_day');

const userLimits = z.strictObject({
  memories: limit.optional().register(settingFacts, {
    env: 'OMP_USER_LIMIT_MEMORIES',
    description: 'Memories that each user may have in a store; unset: no limit',
    example: 100_000,
  }),
  bytes: limit.optional().register(settingFacts, {
    env: 'OMP_USER_LIMIT_BYTES',
    description: 'Bytes of all contents that each user may have in a store, in UTF-8; unset: no limit',
    example: 100_000_000,
  }),
  adds_per_day: limit.optional().register(settingFacts, {
    env: 'OMP_USER_LIMIT_ADDS_PER_DAY',
    description: 'Memories of each user that may be added to a store a day, from 00:00 UTC; unset: no limit',
    example: 5_000,
  }),
  overrides: z
    .array(overrideSchema)
    .max(1_000)
    .default([])
    .register(settingFacts, {
      env: 'OMP_USER_LIMIT_OVERRIDES',
      description:
        'Other limits for the users, or for what the keys add, whose ids or names match a glob; the first that sets a limit decides it, null: no limit; in the environment as JSON',
      allowed: 'globs "users" or "keys" with memories, bytes or adds_per_day',
      example: [{ keys: 'importer', adds_per_day: null }],
    }),
});

/** How much a caller may ask for. */
export const limits = {
  rate_limit: rateLimit.prefault({}),
  user_limits: userLimits.prefault({}),
  max_requests: z.int().min(1).max(1_000_000).default(2000).register(settingFacts, {
    env: 'OMP_MAX_REQUESTS',
    description: 'Concurrent requests of one process; more are rejected with 429',
  }),
  max_requests_per_caller: z.int().min(1).max(1_000_000).optional().register(settingFacts, {
    env: 'OMP_MAX_REQUESTS_PER_CALLER',
    description:
      'Concurrent requests of one key or token subject, or of one client address without one; unset: half of max_requests',
    example: 500,
  }),
  max_request_bytes: z
    .int()
    .min(1024)
    .max(100 * 1024 * 1024)
    .default(1024 * 1024)
    .register(settingFacts, { env: 'OMP_MAX_REQUEST_BYTES', description: 'Largest request body, in bytes' }),
};
