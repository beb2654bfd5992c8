import { describe, expect, it } from 'vitest';
import { type ConfiguredKey, toHashedKey } from '../../src/auth/configured-keys.ts';
import { newKey } from '../../src/auth/credentials.ts';
import { load, mistakesOf, type Written } from './sources.ts';

const JWT = {
  OMP_JWT_JWKS_URL: 'https://login.example.com/keys',
  OMP_JWT_ISSUER: 'https://login.example.com/',
  OMP_JWT_AUDIENCE: 'memories',
};

describe('lists', () => {
  it('are native in the file, separated by commas in the environment', () => {
    const hosts = ['memory.example.com', 'localhost:8080'];
    expect(load({ yaml: `allowed_hosts: [${hosts.join(', ')}]\n` }).config.allowed_hosts).toEqual(hosts);
    expect(load({ env: { OMP_ALLOWED_HOSTS: ' memory.example.com,localhost:8080 , ' } }).config.allowed_hosts).toEqual(
      hosts,
    );
  });

  it('resolve references, of one item and of the whole list', () => {
    const env = { NETWORK: '10.0.0.0/8', NETWORKS: '10.0.0.0/8,::1' };
    const inside = `trusted_proxies: ["$\{NETWORK}", "$\{OTHER:-::1}"]\n`;
    for (const yaml of [inside, `trusted_proxies: $\{NETWORKS}\n`]) {
      expect(load({ env, yaml }).config.trusted_proxies).toEqual(['10.0.0.0/8', '::1']);
    }
    expect(mistakesOf({ yaml: inside })).toEqual([
      'trusted_proxies in gateway.yaml: the environment variable NETWORK is not set',
    ]);
  });

  it('name the invalid entry, and never show the value of a reference', () => {
    const allowed = 'must be a list of IP addresses or networks such as 10.0.0.0/8';
    expect(mistakesOf({ env: { OMP_TRUSTED_PROXIES: '10.0.0.1,proxy' } })).toEqual([
      `OMP_TRUSTED_PROXIES ${allowed}, not '10.0.0.1,proxy'`,
    ]);
    expect(mistakesOf({ env: { P: 'hush' }, yaml: `trusted_proxies: [10.0.0.1, "$\{P}"]\n` })).toEqual([
      `trusted_proxies in gateway.yaml ${allowed}; entry 2 is not`,
    ]);
    expect(mistakesOf({ yaml: 'trusted_proxies: 10.0.0.1\n' })).toEqual([
      `trusted_proxies in gateway.yaml ${allowed}, not '10.0.0.1'`,
    ]);
  });

  it.each([
    [
      'OMP_TRUSTED_PROXIES',
      ['0.0.0.0/0,::/0,2001:db8::/32'],
      ['10.0.0.0/33', '::1/129', '10.0.0.0/8/8', '10.0.0.0/', 'fe80::1%eth0'],
    ],
    ['OMP_ALLOWED_HOSTS', ['[::1]:8080,::1,memory'], ['http://localhost', '*.example.com']],
    [
      'OMP_CORS_ORIGINS',
      ['*', 'http://localhost:3000,https://app.example.com'],
      ['app.example.com', 'https://app.example.com/', 'https://App.example.com', 'null'],
    ],
    ['OMP_AUTH', ['auto', 'open'], ['none']],
    ['OMP_AUDIT', ['writes'], ['reads']],
    ['OMP_AUDIT_RETENTION_DAYS', ['0'], ['-1']],
    ['OMP_AUDIT_ERASED_USERS', ['keep', 'hash'], ['no']],
    ['OMP_RATE_LIMIT_PER_MINUTE', ['1'], ['0']],
    ['OMP_USER_LIMIT_MEMORIES', ['0', '5000'], ['-1', '1.5']],
    ['OMP_AUTH_FAILURES_PER_MINUTE', ['0'], ['-1']],
    ['OMP_RATE_LIMIT_STORE', ['memory'], ['files']],
  ])('%s can be each of %j, none of %j', (name, valid, invalid) => {
    for (const value of valid) expect(mistakesOf({ env: { [name]: value } })).toEqual([]);
    for (const value of invalid)
      expect(mistakesOf({ env: { [name]: value } })).toEqual([expect.stringMatching(`^${name} must be `)]);
  });
});

it('[Decision 59] overrides of limits name users or keys, and set a limit', () => {
  const overrides = (value: unknown) => mistakesOf({ env: { OMP_USER_LIMIT_OVERRIDES: JSON.stringify(value) } });
  expect(overrides([{ users: 'org-*', memories: null }])).toEqual([]);
  for (const wrong of [{ memories: 1 }, { keys: 'a' }, { users: 'a', bytes: -1 }, { user: 'a', bytes: 1 }])
    expect(overrides([wrong])[0]).toMatch(/^OMP_USER_LIMIT_OVERRIDES: entry 1/);
});

describe('[Decision 13] keys', () => {
  const [editor, backup] = [newKey(), newKey()];
  const keys: ConfiguredKey[] = [
    { name: 'editor', key: toHashedKey(editor), users: ['ana'], grants: ['read:coding/*'], expires_at: '2030-01-01' },
    { name: 'backup', key: toHashedKey(backup), grants: ['read:*'] },
  ];

  it('are given in the file, as JSON in a variable, and as JSON in the file it names', () => {
    const json = JSON.stringify(keys);
    const ways: Written[] = [
      // A JSON text is YAML too.
      { yaml: `auth:\n  keys: ${json}\n` },
      { env: { OMP_AUTH_KEYS: json } },
      { env: { OMP_AUTH_KEYS_FILE: 'keys.json' }, files: { 'keys.json': `${json}\n` } },
      { env: { KEYS: json }, yaml: `auth:\n  keys: $\{KEYS}\n` },
    ];
    for (const way of ways) expect(load(way).config.auth.keys).toEqual(keys);
    expect(load({}).config.auth).toEqual({ mode: 'auto', keys: [] });
  });

  it('may take their parts from the environment', () => {
    const env = { EDITOR: toHashedKey(editor), WHO: 'ana' };
    const yaml = `auth:\n  keys:\n    - {name: editor, key: "$\{EDITOR}", users: ["$\{WHO}"], grants: ["read:*"]}\n`;
    expect(load({ env, yaml }).config.auth.keys).toEqual([
      { name: 'editor', key: env.EDITOR, users: ['ana'], grants: ['read:*'] },
    ]);
    // An empty list of users must not mean every user.
    expect(mistakesOf({ env, yaml: yaml.replace('WHO', 'NOBODY:-') })).toEqual([
      expect.stringMatching(/^auth\.keys in gateway\.yaml: entry 1, users, entry 1: must not be blank$/),
    ]);
  });

  it('say what is wrong with each, all at once', () => {
    const wrong = [
      { name: 'a', key: toHashedKey(editor), grants: ['reed:*'] },
      { name: 'b', key: backup.key, grants: ['read:*'], expires_at: 'soon' },
      { name: 'c', key: toHashedKey(newKey()), grants: ['read:*'], user: 'ana' },
    ];
    expect([...mistakesOf({ env: { OMP_AUTH_KEYS: JSON.stringify(wrong), OMP_AUTH: 'yes' } })].sort()).toEqual([
      "OMP_AUTH must be one of auto, open, required, not 'yes'",
      expect.stringMatching(/^OMP_AUTH_KEYS: entry 1, grants, entry 1: must be <action>:<scope glob>/),
      expect.stringMatching(/^OMP_AUTH_KEYS: entry 2, expires_at: must be a date/),
      expect.stringMatching(/^OMP_AUTH_KEYS: entry 2, key: must be the hash of a key, not the key itself/),
      'OMP_AUTH_KEYS: entry 3: has an unknown field',
    ]);
  });

  it('have unique names and ids', () => {
    expect(mistakesOf({ env: { OMP_AUTH_KEYS: JSON.stringify([keys[0], keys[0]]) } })).toEqual([
      'OMP_AUTH_KEYS: entry 2, name: is the same as in entry 1',
      'OMP_AUTH_KEYS: entry 2, key: is the same as in entry 1',
    ]);
  });

  const secret = editor.key;
  it.each<[string, Written]>([
    ['where the hash belongs', { env: { OMP_AUTH_KEYS: JSON.stringify([{ ...keys[0], key: secret }]) } }],
    ['as a field', { env: { OMP_AUTH_KEYS: JSON.stringify([{ [secret]: 1 }]) } }],
    ['as an entry', { env: { OMP_AUTH_KEYS: JSON.stringify([secret]) } }],
    ['as the whole', { env: { OMP_AUTH_KEYS: secret } }],
    ['in broken JSON', { env: { OMP_AUTH_KEYS: `[{"key": "${secret}"` } }],
    ['as a grant', { env: { OMP_AUTH_KEYS: JSON.stringify([{ ...keys[0], grants: [secret] }]) } }],
    ['as an expiry', { env: { OMP_AUTH_KEYS: JSON.stringify([{ ...keys[0], expires_at: secret }]) } }],
    ['in a file', { env: { OMP_AUTH_KEYS_FILE: 'keys' }, files: { keys: secret } }],
    ['in the YAML file', { yaml: `auth:\n  keys: [{name: a, key: ${secret}, grants: ["*:*"]}]\n` }],
    ['in YAML that is broken', { yaml: `auth:\n  keys: [{name: a, key: ${secret}}} \n` }],
    ['instead of the mode', { env: { OMP_AUTH: secret } }],
    ['among the hosts', { env: { OMP_ALLOWED_HOSTS: `a/b,${secret}` } }],
  ])('are never shown when the secret is given %s', (_, written) => {
    const mistakes = mistakesOf(written);
    expect(mistakes).not.toEqual([]);
    expect(mistakes.join('\n')).not.toContain(secret);
    expect(mistakes.join('\n')).not.toContain(secret.slice(-43));
  });
});

describe('tokens', () => {
  it('are accepted once the address of the public keys is set', () => {
    const { jwt } = load({
      env: { ...JWT, OMP_JWT_ALGORITHMS: 'PS512,EdDSA', OMP_JWT_GRANTS: 'read:*,write:a/*' },
    }).config;
    expect(jwt).toEqual({
      jwks_url: JWT.OMP_JWT_JWKS_URL,
      issuer: JWT.OMP_JWT_ISSUER,
      audience: JWT.OMP_JWT_AUDIENCE,
      algorithms: ['PS512', 'EdDSA'],
      user_claim: 'sub',
      grants_claim: 'scope',
      grants: ['read:*', 'write:a/*'],
    });
  });

  it('need issuer and audience', () => {
    expect(mistakesOf({ env: { OMP_JWT_JWKS_URL: JWT.OMP_JWT_JWKS_URL } })).toEqual([
      'jwt.issuer (OMP_JWT_ISSUER) is required while jwt.jwks_url is set',
      'jwt.audience (OMP_JWT_AUDIENCE) is required while jwt.jwks_url is set',
    ]);
  });

  it('have no other settings without that address', () => {
    expect([...mistakesOf({ env: { OMP_JWT_ISSUER: 'x' }, yaml: 'jwt:\n  grants: ["read:*"]\n' })].sort()).toEqual([
      'OMP_JWT_ISSUER has no effect while jwt.jwks_url is not set',
      'jwt.grants in gateway.yaml has no effect while jwt.jwks_url is not set',
    ]);
  });

  // Who can verify with a secret can also sign; anybody can write an unsigned token.
  it.each(['HS256', 'none', 'RS256,HS512', 'rs256', 'RSA-OAEP'])('are not verified by %s', (algorithms) => {
    expect(mistakesOf({ env: { ...JWT, OMP_JWT_ALGORITHMS: algorithms } })).toEqual([
      expect.stringMatching(/^OMP_JWT_ALGORITHMS must be a list of some of RS256, /),
    ]);
  });

  it.each([
    ['OMP_JWT_JWKS_URL', 'file:///keys'],
    ['OMP_JWT_GRANTS', 'read'],
    ['OMP_JWT_GRANTS', 'read:*,admin:*'],
  ])('%s=%j is a mistake', (name, value) => {
    expect(mistakesOf({ env: { ...JWT, [name]: value } })).toEqual([expect.stringMatching(`^${name} must be `)]);
  });
});

it('[Decision 52] webhooks need a long secret and the audit log', () => {
  const secret = 'x'.repeat(32);
  expect(mistakesOf({ env: { OMP_WEBHOOK_SECRET: secret, OMP_WEBHOOK_PRIVATE: 'on' } })).toEqual([]);
  expect(mistakesOf({ env: { OMP_WEBHOOK_SECRET: secret.slice(1) } })).toEqual([
    expect.stringMatching(/^OMP_WEBHOOK_SECRET must be at least 32/),
  ]);
  expect(mistakesOf({ env: { OMP_WEBHOOK_SECRET: secret, OMP_AUDIT: 'off' } })).toEqual([
    'OMP_WEBHOOK_SECRET has no effect while audit.record is off',
  ]);
  expect(mistakesOf({ env: { OMP_WEBHOOK_PRIVATE: 'on' } })).toEqual([
    'webhooks.secret (OMP_WEBHOOK_SECRET or OMP_WEBHOOK_SECRET_FILE) is required while webhooks.private is on',
  ]);
});

describe('[Decision 17] the store of rate limits', () => {
  it('redis needs its address, which has no effect otherwise', () => {
    expect(mistakesOf({ env: { OMP_RATE_LIMIT_STORE: 'redis' } })).toEqual([
      'rate_limit.redis_url (OMP_REDIS_URL or OMP_REDIS_URL_FILE) is required while rate_limit.store is redis',
    ]);
    expect(mistakesOf({ env: { OMP_REDIS_URL: 'redis://localhost' } })).toEqual([
      'OMP_REDIS_URL has no effect while rate_limit.store is memory',
    ]);
    expect(mistakesOf({ env: { OMP_REDIS_URL_FILE: 'url' } })).toEqual([
      'OMP_REDIS_URL_FILE has no effect while rate_limit.store is memory',
    ]);
    const env = { OMP_RATE_LIMIT_STORE: 'redis', OMP_REDIS_URL_FILE: 'url' };
    expect(load({ env, files: { url: 'rediss://:p@redis:6380/1\n' } }).config.rate_limit).toEqual({
      store: 'redis',
      redis_url: 'rediss://:p@redis:6380/1',
      auth_failures_per_minute: 30,
    });
  });

  it('postgres needs the server of the memories', () => {
    const env = { OMP_RATE_LIMIT_STORE: 'postgres' };
    expect(mistakesOf({ env })).toEqual([
      expect.stringMatching(/^postgres\.url \(DATABASE_URL .*\) is required while rate_limit\.store is postgres/),
    ]);
    expect(mistakesOf({ env: { ...env, OMP_PROVIDER: 'memory', DATABASE_URL: 'postgres://db' } })).toEqual([
      'rate_limit.store can be postgres only while provider is, but provider is memory',
    ]);
    expect(mistakesOf({ env: { ...env, OMP_PROVIDER: 'postgress' } })).toEqual([
      expect.stringMatching(/^OMP_PROVIDER must be /),
    ]);
    expect(mistakesOf({ env: { ...env, DATABASE_URL: 'postgres://db' } })).toEqual([]);
  });
});

it('entries of an audit log that is off have no retention', () => {
  expect(mistakesOf({ env: { OMP_AUDIT: 'off', OMP_AUDIT_RETENTION_DAYS: '1' } })).toEqual([
    'OMP_AUDIT_RETENTION_DAYS has no effect while audit.record is off',
  ]);
  expect(load({ env: { OMP_AUDIT: 'writes', OMP_AUDIT_RETENTION_DAYS: '1' } }).config.audit).toEqual({
    record: 'writes',
    retention_days: 1,
    erased_users: 'keep',
  });
});
