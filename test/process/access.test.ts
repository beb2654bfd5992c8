import { request } from 'node:http';
import { describe, expect, onTestFinished, test } from 'vitest';
import { toHashedKey } from '../../src/auth/configured-keys.ts';
import { newKey } from '../../src/auth/credentials.ts';
import { AUDIENCE, ISSUER, makeKey, openIdentityProvider, sign } from '../auth/identity-provider.ts';
import { clientOf } from '../support/client.ts';
import { eventually } from '../support/eventually.ts';
import { expectError } from '../support/expect-error.ts';
import { FULL } from '../support/full.ts';
import { freshUser } from '../support/subject.ts';
import { dataFolder, type RunningGateway, serveHere, startGateway } from './gateway.ts';

const BEYOND_LOOPBACK = /anybody who reaches this address can read and write/;
type Serving = Pick<RunningGateway, 'url'>;

const as = ({ url }: Serving, credential: string) =>
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

/** The status of a request with this `Host`. */
const statusAs = (host: string, { url }: Serving): Promise<number | undefined> =>
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
  test('[Decision 17] that requires keys is closed before there is one, logs it, and limits failed authentications', async () => {
    const gateway = await serveHere({ OMP_AUTH: 'required', OMP_AUTH_FAILURES_PER_MINUTE: '2' });
    expect(gateway.log.lines.map(({ message }) => message)).toContainEqual(
      expect.stringContaining('no key exists; create'),
    );
    const ask = () => as(gateway, newKey().key).ask('/memories', { user_id: freshUser() });
    for (let failed = 1; failed <= 2; failed++) expectError(await ask(), 'unauthorized');
    expectError(await ask(), 'rate_limited');
    expect((await gateway.client.capabilities()).limits?.rate_limit_per_minute).toBeNull();
  });

  test('accepts tokens of the configured identity provider', async () => {
    const [published, foreign] = await Promise.all([makeKey('one'), makeKey('one')]);
    const identity = await openIdentityProvider(published);
    onTestFinished(() => identity.close());
    const gateway = await serveHere({
      ...{ OMP_JWT_JWKS_URL: identity.url, OMP_JWT_ISSUER: ISSUER, OMP_JWT_AUDIENCE: AUDIENCE },
      ...{ OMP_JWT_ALGORITHMS: 'ES256', OMP_JWT_USER_CLAIM: 'users', OMP_JWT_GRANTS: 'write:*' },
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
    const denied = { app: expect.stringMatching(/^token:[0-9a-f]{16}$/), status: 403 };
    await eventually(() =>
      expect(gateway.log.lines).toContainEqual(expect.objectContaining({ fields: expect.objectContaining(denied) })),
    );
  });
});

describe('[Decision 22] allowed hosts and the warning beyond loopback', () => {
  const loopback = ['localhost', 'LOCALHOST:8080', '127.0.0.1', '[::1]:1'];
  const others = ['rebound.example.com', '192.168.1.1', '127.0.0.2:80'];
  const all = [...loopback, ...others];
  const named = { OMP_ALLOWED_HOSTS: '192.168.1.1,rebound.example.com' };
  const { env: withKey } = configuredKey();

  test.each([
    ['open on localhost', { OMP_HOST: 'localhost' }, loopback, false],
    ['open on another loopback address', { OMP_HOST: '127.0.0.2' }, [...loopback, '127.0.0.2:80'], false],
    ['open on every address', { OMP_HOST: '0.0.0.0', OMP_AUTH: 'open' }, all, true],
    ['closed by a key in spite of open', { ...withKey, OMP_HOST: '0.0.0.0', OMP_AUTH: 'open' }, all, false],
    ['closed by required', { OMP_HOST: '0.0.0.0', OMP_AUTH: 'required' }, all, false],
    ['closed on loopback', withKey, all, false],
    ['closed on every address', { ...withKey, OMP_HOST: '0.0.0.0' }, all, false],
    ['open, OMP_ALLOWED_HOSTS', named, others.slice(0, 2), false],
    ['closed, OMP_ALLOWED_HOSTS', { ...named, ...withKey }, others.slice(0, 2), false],
  ])('%s', async (name, env: Record<string, string>, admitted, warns) => {
    const gateway = await serveHere(env);
    const statuses = await Promise.all(all.map((host) => statusAs(host, gateway)));
    expect(all.filter((_, index) => statuses[index] === 200)).toEqual(admitted);
    expect(gateway.open).toBe(name.startsWith('open'));
    expect(gateway.log.lines.some(({ message }) => BEYOND_LOOPBACK.test(message))).toBe(warns);
  });
});

test('[Decision 17] [Decision 22] rate limit, trusted proxies and CORS origins are as configured', async () => {
  const origin = 'https://app.example.com';
  const limited = { OMP_RATE_LIMIT_PER_MINUTE: '1', OMP_TRUSTED_PROXIES: '127.0.0.0/8', OMP_CORS_ORIGINS: origin };
  const { client } = await serveHere(limited);
  expect((await client.capabilities()).limits?.rate_limit_per_minute).toBe(1);
  for (const address of ['192.0.2.1', '192.0.2.2']) {
    const ask = () => client.ask('/memories', { user_id: 'ana' }, { 'x-forwarded-for': address, origin });
    const { status, headers } = await ask();
    expect([status, headers.get('access-control-allow-origin')]).toEqual([200, origin]);
    expectError(await ask(), 'rate_limited');
  }
});

describe('[Decision 11] the audit log', () => {
  const logs: [Record<string, string>, string[]][] = [[{}, ['get ok laptop', 'search ok laptop', 'add ok laptop']]];
  if (FULL) logs.push([{ OMP_AUDIT: 'writes' }, ['add ok laptop']]);

  test.each(logs)(
    'with %j has the last requests before a stop, with the name of their key',
    async (settings, expected) => {
      const { key, env: withKey } = configuredKey();
      const env = { OMP_DATA_DIR: await dataFolder(), ...withKey, ...settings };
      const gateway = await startGateway({ env });
      const client = as(gateway, key);
      const user_id = freshUser();
      const { id } = await client.add({ user_id, content: 'kept' });
      await client.search({ user_id, q: 'kept' });
      await client.get(id);
      expect(await gateway.stop()).toMatchObject({ status: 0, stderr: '' });
      const entries = await as(await startGateway({ env }), key).audit({ user_id });
      expect(entries.map(({ action, outcome, app }) => `${action} ${outcome} ${app}`)).toEqual(expected);
    },
  );

  test('does not exist when it is off', async () => {
    const { client } = await serveHere({ OMP_AUDIT: 'off' });
    expect((await client.capabilities()).features.supports_audit).toBe(false);
    expectError(await client.ask('/audit', { user_id: freshUser() }), 'unsupported_capability');
  });
});

test.each(['0.0.0.0', '::'])('[Decision 13] without a key a gateway does not start on %s', async (OMP_HOST) => {
  const { message } = (await serveHere({ OMP_HOST }).catch((error) => error)) as Error;
  for (const remedy of ['omp-gateway keys create', 'OMP_AUTH=required', 'OMP_AUTH=open'])
    expect(message).toContain(remedy);
});
