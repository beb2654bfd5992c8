import { request } from 'node:http';
import { describe, expect, onTestFinished, test } from 'vitest';
import { toHashedKey } from '../../src/auth/configured-keys.ts';
import { newKey } from '../../src/auth/credentials.ts';
import { AUDIENCE, ISSUER, makeKey, openIdentityProvider, sign } from '../auth/identity-provider.ts';
import { clientOf } from '../support/client.ts';
import { expectError } from '../support/expect-error.ts';
import { FULL } from '../support/full.ts';
import { freshUser } from '../support/subject.ts';
import { type RunningGateway, runProgram, startGateway, temporaryFolder } from './gateway.ts';

const MEMORY = { OMP_PROVIDER: 'memory' };
const BEYOND_LOOPBACK = /anybody who reaches this address can read and write/;

const as = ({ url }: RunningGateway, credential: string) =>
  clientOf((path, init) => {
    const headers = new Headers(init?.headers);
    headers.set('authorization', `Bearer ${credential}`);
    return fetch(url + path, { ...init, headers });
  });

/** A key and the environment that configures it. */
function configuredKey(grants: readonly string[] = ['*:*']) {
  const fresh = newKey();
  const keys = [{ name: 'laptop', key: toHashedKey(fresh), grants }];
  return { key: fresh.key, env: { OMP_AUTH_KEYS: JSON.stringify(keys) } };
}

/** The status of a request that says it was meant for `host`. */
const statusAs = (host: string, { url }: RunningGateway): Promise<number | undefined> =>
  new Promise((resolve, reject) => {
    const { hostname, port } = new URL(url);
    request({ hostname, port, path: '/capabilities', headers: { host } }, (response) => {
      response.resume();
      resolve(response.statusCode);
    })
      .on('error', reject)
      .end();
  });

describe('[Decision 13] [SPEC Authentication 2|3|4|5] a gateway', () => {
  test('without keys is open, and says so when it starts', async () => {
    const { client, output, stop } = await startGateway({ env: MEMORY });
    await output(/listens on \S+ \(open: no key is needed\)/);
    await client.add({ user_id: freshUser(), content: 'anything' });
    expect((await stop()).stdout).not.toMatch(BEYOND_LOOPBACK);
  });

  test('with a key answers 401 without it, 200 with it, and prints neither key nor hash', async () => {
    const { key, env } = configuredKey();
    const gateway = await startGateway({ env: { ...MEMORY, ...env, OMP_LOG_LEVEL: 'trace' } });
    await gateway.output(/listens on \S+ \(closed: a key is needed\)/);
    const user_id = freshUser();
    const stranger = newKey().key;
    for (const client of [gateway.client, as(gateway, stranger)]) {
      expectError(await client.ask('/memories', { user_id }), 'unauthorized');
      expectError(await client.ask('/no-such-path'), 'unauthorized');
      for (const path of ['/capabilities', '/healthz', '/openapi.json']) {
        expect((await client.ask(path)).status, path).toBe(200);
      }
    }
    const { id } = await as(gateway, key).add({ user_id, content: 'mine' });
    expect((await as(gateway, key).list({ user_id })).items).toMatchObject([{ id }]);
    const { stdout, stderr } = await gateway.stop();
    for (const secret of [key, stranger]) {
      expect(stdout + stderr).not.toContain(secret);
      expect(stdout + stderr).not.toContain(secret.slice(-43));
    }
    expect(stdout + stderr).not.toMatch(/sha256:[0-9a-f]{64}/);
  });

  test('that requires keys is closed before there is one, and logs that no key exists', async () => {
    const { client, output } = await startGateway({ env: { ...MEMORY, OMP_AUTH: 'required' } });
    expectError(await client.ask('/memories', { user_id: freshUser() }), 'unauthorized');
    await output(/no key exists; create one/);
  });

  test('accepts tokens of the configured identity provider', async () => {
    const [published, foreign] = await Promise.all([makeKey('one'), makeKey('one')]);
    const identity = await openIdentityProvider(published);
    onTestFinished(() => identity.close());
    const gateway = await startGateway({
      env: {
        ...MEMORY,
        OMP_JWT_JWKS_URL: identity.url,
        OMP_JWT_ISSUER: ISSUER,
        OMP_JWT_AUDIENCE: AUDIENCE,
        OMP_JWT_ALGORITHMS: 'ES256',
        OMP_JWT_USER_CLAIM: 'users',
        OMP_JWT_GRANTS: 'write:*',
      },
    });
    const user_id = freshUser();
    // One grant comes from the token, the other from the configuration.
    const claims = { users: [user_id], scope: 'read:*' };
    const client = as(gateway, await sign(published, claims));
    const { id } = await client.add({ user_id, content: 'mine' });
    expect(await client.get(id)).toMatchObject({ content: 'mine' });
    expectError(await client.tell('DELETE', client.byId(id)), 'scope_denied');
    expectError(await gateway.client.ask('/memories', { user_id }), 'unauthorized');
    expectError(await as(gateway, await sign(foreign, claims)).ask('/memories', { user_id }), 'unauthorized');
    // The subject of a token is often a user id, which does not belong in logs.
    await gateway.output(/"app":"token:[0-9a-f]{16}",.*"status":403/);
  });

  test('is closed by the first key that is kept in its database, and stays closed when that is revoked', async () => {
    const env = { OMP_DATA_DIR: temporaryFolder() };
    const made = await runProgram({ args: ['keys', 'create', 'laptop', '--grant', 'read:*'], env });
    expect(made.status, made.stderr).toBe(0);
    const key = made.stdout.trim();
    const user_id = freshUser();

    const closed = await startGateway({ env });
    await closed.output(/\(closed: a key is needed\)/);
    expectError(await closed.client.ask('/memories', { user_id }), 'unauthorized');
    expect((await as(closed, key).list({ user_id })).items).toEqual([]);
    await closed.stop();

    expect(await runProgram({ args: ['keys', 'revoke', 'laptop'], env })).toMatchObject({ status: 0 });
    const still = await startGateway({ env });
    for (const client of [still.client, as(still, key)]) {
      expectError(await client.ask('/memories', { user_id }), 'unauthorized');
    }
  });

  test('warns beyond loopback only while it is open', async () => {
    const everywhere = { ...MEMORY, OMP_HOST: '0.0.0.0' };
    const open = await startGateway({ env: everywhere });
    const closed = await startGateway({ env: { ...everywhere, ...configuredKey().env } });
    expect((await open.stop()).stdout).toMatch(BEYOND_LOOPBACK);
    expect((await closed.stop()).stdout).not.toMatch(BEYOND_LOOPBACK);
  });
});

describe('[Decision 22] the name a gateway is called by', () => {
  const admitted = async (env: Record<string, string>, hosts: readonly string[]) => {
    const gateway = await startGateway({ env: { ...MEMORY, ...env } });
    const statuses = await Promise.all(hosts.map((host) => statusAs(host, gateway)));
    await gateway.stop();
    return hosts.filter((_, index) => statuses[index] === 200);
  };
  const loopback = ['localhost', 'LOCALHOST:8080', '127.0.0.1', '[::1]:1'];
  const others = ['rebound.example.com', '192.168.1.1', 'localhost.example.com'];

  test('is one of loopback while it is open there, and any otherwise', async () => {
    expect(await admitted({}, [...loopback, ...others])).toEqual(loopback);
    expect(await admitted({ OMP_HOST: 'localhost' }, [...loopback, ...others])).toEqual(loopback);
    expect(await admitted({ OMP_HOST: '127.0.0.2' }, [...others, '127.0.0.2:80'])).toEqual(['127.0.0.2:80']);
    expect(await admitted({ OMP_HOST: '0.0.0.0' }, others)).toEqual(others);
    expect(await admitted(configuredKey().env, others)).toEqual(others);
  });

  test('is what OMP_ALLOWED_HOSTS says', async () => {
    const hosts = [...loopback, ...others];
    const env = { OMP_ALLOWED_HOSTS: '192.168.1.1,rebound.example.com' };
    expect(await admitted(env, hosts)).toEqual(['rebound.example.com', '192.168.1.1']);
    expect(await admitted({ ...env, ...configuredKey().env }, hosts)).toEqual(['rebound.example.com', '192.168.1.1']);
  });
});

describe('[Decision 17] rate limits', () => {
  test('are what is configured and declared', async () => {
    const { client } = await startGateway({ env: { ...MEMORY, OMP_RATE_LIMIT_PER_MINUTE: '3' } });
    expect((await client.capabilities()).limits?.rate_limit_per_minute).toBe(3);
    const user_id = freshUser();
    // The capabilities were the first.
    for (const status of [200, 200]) expect((await client.ask('/memories', { user_id })).status).toBe(status);
    expectError(await client.ask('/memories', { user_id }), 'rate_limited');
  });

  test('count failed authentications by themselves', async () => {
    const env = { ...MEMORY, OMP_AUTH: 'required', OMP_AUTH_FAILURES_PER_MINUTE: '2' };
    const gateway = await startGateway({ env });
    const ask = () => as(gateway, newKey().key).ask('/memories', { user_id: freshUser() });
    for (let failed = 1; failed <= 2; failed++) expectError(await ask(), 'unauthorized');
    expectError(await ask(), 'rate_limited');
    expect((await gateway.client.capabilities()).limits?.rate_limit_per_minute).toBeNull();
  });

  test('count by the address that a trusted proxy passes on', async () => {
    const env = { ...MEMORY, OMP_RATE_LIMIT_PER_MINUTE: '1', OMP_TRUSTED_PROXIES: '127.0.0.0/8' };
    const { client } = await startGateway({ env });
    const from = (address: string) => client.ask('/memories', { user_id: 'ana' }, { 'x-forwarded-for': address });
    for (const address of ['192.0.2.1', '192.0.2.2']) {
      expect((await from(address)).status).toBe(200);
      expectError(await from(address), 'rate_limited');
    }
  });
});

test('pages of other origins are admitted as configured', async () => {
  const origin = 'https://app.example.com';
  const allowed = async (env: Record<string, string>) => {
    const { client } = await startGateway({ env: { ...MEMORY, ...env } });
    return (await client.ask('/capabilities', {}, { origin })).headers.get('access-control-allow-origin');
  };
  expect(await allowed({})).toBeNull();
  expect(await allowed({ OMP_CORS_ORIGINS: origin })).toBe(origin);
});

describe('[Decision 11] the audit log', () => {
  interface Entry {
    readonly action: string;
    readonly app: string | null;
    readonly outcome: string;
  }
  const entriesOf = async ({ client }: RunningGateway, user_id: string): Promise<readonly Entry[]> => {
    const { status, text, body } = await client.ask('/audit', { user_id });
    expect(status, text).toBe(200);
    return (body as { entries: Entry[] }).entries;
  };

  /** One add and two reads by one user, the last answered just before the gateway stops; then what the log has. */
  async function lifeAndLog(settings: Record<string, string>): Promise<readonly string[]> {
    const env = { OMP_DATA_DIR: temporaryFolder(), ...settings };
    const gateway = await startGateway({ env });
    const user_id = freshUser();
    const { id } = await gateway.client.add({ user_id, content: 'kept' });
    await gateway.client.search({ user_id, q: 'kept' });
    await gateway.client.get(id);
    expect(await gateway.stop()).toMatchObject({ status: 0, stderr: '' });
    const entries = await entriesOf(await startGateway({ env }), user_id);
    return entries.map(({ action, outcome }) => `${action} ${outcome}`);
  }

  test('has the reads that were answered before the gateway was stopped', async () => {
    expect(await lifeAndLog({})).toEqual(['get ok', 'search ok', 'add ok']);
  });

  test.runIf(FULL)('has only writes where that is configured', async () => {
    expect(await lifeAndLog({ OMP_AUDIT: 'writes' })).toEqual(['add ok']);
  });

  test('is not there when it is off', async () => {
    const { client } = await startGateway({ env: { OMP_AUDIT: 'off' } });
    expect((await client.capabilities()).features.supports_audit).toBe(false);
    expectError(await client.ask('/audit', { user_id: freshUser() }), 'unsupported_capability');
  });

  test('names the key', async () => {
    const { key, env } = configuredKey();
    const gateway = await startGateway({ env });
    const client = as(gateway, key);
    const user_id = freshUser();
    await client.add({ user_id, content: 'mine' });
    await client.list({ user_id });
    const entries = await entriesOf({ ...gateway, client }, user_id);
    expect(entries.map(({ action, app }) => [action, app])).toEqual([
      ['list', 'laptop'],
      ['add', 'laptop'],
    ]);
  });
});
