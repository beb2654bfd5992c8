import { createHash } from 'node:crypto';
import { type CryptoKey, exportSPKI, importJWK, SignJWT, UnsecuredJWT } from 'jose';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it, onTestFinished, vi } from 'vitest';
import { Call } from '#contract';
import { ALGORITHMS } from '../../src/auth/credentials.ts';
import { openTokens, type TokenOptions, type TokenVerifier } from '../../src/auth/tokens.ts';
import { eventually } from '../support/eventually.ts';
import { call, expectInvalid, rejection } from './call.ts';
import {
  AUDIENCE,
  claims,
  ISSUER,
  inSeconds,
  makeKey,
  openIdentityProvider,
  type SigningKey,
  SUBJECT,
  sign,
} from './identity-provider.ts';

let key: SigningKey;
let rsa: SigningKey;
let provider: Awaited<ReturnType<typeof openIdentityProvider>>;
beforeAll(async () => {
  [key, rsa] = await Promise.all([makeKey('first'), makeKey('rsa', 'RS256')]);
  provider = await openIdentityProvider(key, rsa);
});
afterAll(() => provider.close());

const tokensWith = (more: Partial<TokenOptions> = {}) =>
  openTokens({
    jwks_url: provider.url,
    issuer: ISSUER,
    audience: AUDIENCE,
    algorithms: ['ES256'],
    user_claim: 'sub',
    grants_claim: 'scope',
    grants: [],
    ...more,
  });

describe('a valid token', () => {
  it('[Decision 13|14] [Decision 41] has the subject, users and grants of its claims, and is no admin', async () => {
    const scope = 'openid read:coding/* profile admin:* write:*';
    expect(await tokensWith().principal(await sign(key, { scope }), call)).toEqual({
      id: `token:${createHash('sha256').update(`${ISSUER}\0${SUBJECT}`).digest('hex')}`,
      app: SUBJECT,
      users: [SUBJECT],
      grants: { read: ['coding/*'], write: null, delete: [], admin: false },
    });
  });

  it('may have several users, and grants as a list', async () => {
    const tokens = tokensWith({ user_claim: 'https://omp.example/users', grants_claim: 'permissions' });
    const token = await sign(key, {
      'https://omp.example/users': ['ana', 'bob'],
      permissions: ['delete:*', 7, 'admin'],
    });
    expect(await tokens.principal(token, call)).toMatchObject({
      users: ['ana', 'bob'],
      grants: { read: [], write: [], delete: null, admin: false },
    });
  });

  it('has the configured grants in addition', async () => {
    const grants = ['read:*'];
    const token = await sign(key, { scope: 'write:a/*' });
    const both = { read: null, write: ['a/*'], delete: [], admin: false };
    expect((await tokensWith({ grants }).principal(token, call)).grants).toEqual(both);
    const given = { read: null, write: [], delete: [], admin: false };
    expect((await tokensWith({ grants, grants_claim: undefined }).principal(token, call)).grants).toEqual(given);
    expect((await tokensWith({ grants, grants_claim: 'absent' }).principal(token, call)).grants).toEqual(given);
  });

  it('[SPEC Errors scope_denied] without grants is valid and may do nothing', async () => {
    const { grants } = await tokensWith().principal(await sign(key, { scope: 'openid' }), call);
    expect(grants).toEqual({ read: [], write: [], delete: [], admin: false });
  });

  it('[Decision 54] is untrusted if it says so, in whatever way', async () => {
    const trustOf = async (omp_untrusted?: unknown) =>
      (await tokensWith().principal(await sign(key, { omp_untrusted }), call)).untrusted;
    for (const value of [true, 'true', 1, 'yes', '', {}]) expect(await trustOf(value)).toBe(true);
    for (const value of [undefined, null, false, 'false']) expect(await trustOf(value)).toBeUndefined();
  });

  it('has the caller id of its issuer and subject', async () => {
    const tokens = tokensWith();
    const [one, two] = [await sign(key), await sign(key, { scope: 'read:*' })];
    expect((await tokens.principal(one, call)).id).toBe((await tokens.principal(two, call)).id);
    const elsewhere = await tokensWith({ issuer: 'x' }).principal(await sign(key, { iss: 'x' }), call);
    expect(elsewhere.id).not.toBe((await tokens.principal(one, call)).id);
  });

  it('has at most 256 characters of its subject in logs', async () => {
    const sub = `${'é'.repeat(255)}🙂more`;
    const { app } = await tokensWith({ user_claim: 'user' }).principal(await sign(key, { sub }), call);
    expect(app).toBe(`${'é'.repeat(255)}🙂`);
  });

  it('is cached for a minute', async () => {
    const tokens = tokensWith();
    const [long, short] = [await sign(key), await sign(key, { exp: inSeconds(20) })];
    const principal = await tokens.principal(long, call);
    expect(await tokens.principal(long, call)).toBe(principal);
    await tokens.principal(short, call);
    vi.useFakeTimers({ toFake: ['Date'], now: Date.now() + 20_000 });
    onTestFinished(() => void vi.useRealTimers());
    vi.setSystemTime(Date.now() + 40_000);
    expect(await tokens.principal(long, call)).not.toBe(principal);
    vi.setSystemTime(Date.now() + 240_000);
  });

  it('may be a few seconds early or expired', async () => {
    const tokens = tokensWith();
    const now = Math.floor(Date.now() / 1_000) * 1_000;
    vi.useFakeTimers({ toFake: ['Date'], now });
    onTestFinished(() => void vi.useRealTimers());
    const late = await sign(key, { exp: inSeconds(-4) });
    await tokens.principal(late, call);
    await tokens.principal(await sign(key, { nbf: inSeconds(5) }), call);
    await expectInvalid(tokens.principal(await sign(key, { exp: inSeconds(-5) }), call));
    await expectInvalid(tokens.principal(await sign(key, { nbf: inSeconds(6) }), call));
  });

  it.each(ALGORITHMS)('may be signed with %s', async (alg) => {
    const own = await makeKey('own', alg);
    const server = await openIdentityProvider(own);
    onTestFinished(server.close);
    const tokens = tokensWith({ jwks_url: server.url, algorithms: [alg] });
    expect((await tokens.principal(await sign(own), call)).app).toBe(SUBJECT);
  });
});

const parts = (token: string) => token.split('.') as [string, string, string];
const encode = (value: object) => Buffer.from(JSON.stringify(value)).toString('base64url');
const signedBySecret = (secret: Uint8Array, alg = 'HS256') =>
  new SignJWT(claims()).setProtectedHeader({ alg, kid: 'first' }).sign(secret);
const text = new TextEncoder();

/** Invalid tokens, and what the log says about them. */
const FORGED: Readonly<Record<string, readonly [reason: string, forge: () => Promise<string> | string]>> = {
  'no token at all': ['Invalid Compact JWS', () => 'hunter2'],
  'nothing but dots': ['JWS', () => '..'],
  'no signature': ['"alg" (Algorithm)', () => new UnsecuredJWT(claims()).encode()],
  'no signature, in other letters': [
    '"alg" (Algorithm)',
    () => `${encode({ alg: 'nOnE', kid: 'first' })}.${encode(claims())}.`,
  ],
  'the signature cut off': [
    'signature verification failed',
    async () =>
      `${parts(await sign(key))
        .slice(0, 2)
        .join('.')}.`,
  ],
  'the public key as a shared secret, in PEM': [
    '"alg" (Algorithm)',
    async () => signedBySecret(text.encode(await exportSPKI((await importJWK(rsa.jwk, 'RS256')) as CryptoKey))),
  ],
  'the public key as a shared secret, in JSON': [
    '"alg" (Algorithm)',
    () => signedBySecret(text.encode(JSON.stringify(key.jwk))),
  ],
  'another shared secret': ['"alg" (Algorithm)', () => signedBySecret(new Uint8Array(64), 'HS512')],
  'changed claims': [
    'signature verification failed',
    async () => {
      const [header, , signature] = parts(await sign(key));
      return [header, encode(claims({ sub: 'root' })), signature].join('.');
    },
  ],
  'a changed signature': [
    'signature verification failed',
    async () => {
      const [header, payload, signature] = parts(await sign(key));
      return [header, payload, (signature.startsWith('A') ? 'B' : 'A') + signature.slice(1)].join('.');
    },
  ],
  'the signature of another key with a known id': [
    'signature verification failed',
    async () => sign({ ...(await makeKey('x')), kid: 'first' }),
  ],
  'its own key in the header': [
    'no applicable key',
    async () => {
      const own = await makeKey('own');
      return sign(own, {}, { jwk: own.jwk });
    },
  ],
  'a known key with an algorithm that is not allowed': ['"alg" (Algorithm)', () => sign(rsa)],
  'an unknown critical extension': [
    '"exp"',
    async () => {
      const header = { alg: 'ES256', kid: 'first', crit: ['exp'], exp: 1 };
      return new SignJWT(claims()).setProtectedHeader(header).sign(key.privateKey, { crit: { exp: true } });
    },
  ],
  'another issuer': ['"iss"', () => sign(key, { iss: 'https://evil.example.com/' })],
  'no issuer': ['"iss"', () => sign(key, { iss: undefined })],
  'another audience': ['"aud"', () => sign(key, { aud: ['other', 'omp-gateway-2'] })],
  'no audience': ['"aud"', () => sign(key, { aud: undefined })],
  'an expiry in the past': ['"exp"', () => sign(key, { exp: inSeconds(-60) })],
  'no expiry': ['"exp"', () => sign(key, { exp: undefined })],
  'an expiry that is no number': ['"exp"', () => sign(key, { exp: 'never' })],
  'a beginning in the future': ['"nbf"', () => sign(key, { nbf: inSeconds(60) })],
  'no subject': ['no subject', () => sign(key, { sub: undefined })],
  'a blank subject': ['no subject', () => sign(key, { sub: ' ' })],
  'a subject with NUL': ['no subject', () => sign(key, { sub: 'a\0b' })],
  'no user': ['no user', () => sign(key, { user: undefined })],
  'a list of no users': ['no user', () => sign(key, { user: [] })],
  'an empty user': ['no user', () => sign(key, { user: '' })],
  'a user that is no text': ['no user', () => sign(key, { user: ['ana', 7] })],
  'users in an object': ['no user', () => sign(key, { user: { ana: true } })],
  'a user with a lone surrogate': ['no user', () => sign(key, { user: ['\ud800'] })],
};

describe('[SPEC Errors unauthorized] a token is rejected with the same message if it has', () => {
  const tokens = () => tokensWith({ user_claim: 'user' });

  it('nothing of these (it is valid)', async () => {
    expect((await tokens().principal(await sign(key), call)).users).toEqual(['ana']);
  });

  it.each(Object.entries(FORGED))('%s', async (_, [expected, forge]) => {
    const token = await forge();
    const subject = tokens();
    const error = await expectInvalid(subject.principal(token, call));
    const reason = (error.cause as Error).message;
    expect(reason).toContain(expected);
    for (const secret of [token, ...token.split('.')].filter((part) => part.length > 8)) {
      expect(reason).not.toContain(secret);
    }
    expect(Object.values(error.cause as object)).toEqual([]);
  });
});

describe('the identity provider', () => {
  let key: SigningKey;
  let provider: Awaited<ReturnType<typeof openIdentityProvider>>;
  let tokens: TokenVerifier;
  beforeEach(async () => {
    key = await makeKey('first');
    provider = await openIdentityProvider(key);
    tokens = openTokens({
      jwks_url: provider.url,
      issuer: ISSUER,
      audience: AUDIENCE,
      algorithms: ['ES256'],
      user_claim: 'sub',
      grants: [],
    });
  });
  afterEach(async () => {
    vi.useRealTimers();
    await provider.close();
  });

  /** Advances the clocks, but no timers. */
  const later = (milliseconds: number) => {
    if (!vi.isFakeTimers()) vi.useFakeTimers({ toFake: ['Date', 'performance'], now: Date.now() });
    vi.advanceTimersByTime(milliseconds);
  };
  /** A new token every time, so that none is cached. */
  let count = 0;
  const fresh = (by = key) => sign(by, { jti: String(count++), exp: Math.floor(Date.now() / 1_000) + 86_400 });
  const DOWN = { code: 'provider_error', provider: 'jwks' };

  describe('keys', () => {
    it('are fetched once by concurrent tokens', async () => {
      expect(provider.state.asked).toBe(0);
      await Promise.all(Array.from({ length: 10 }, async () => tokens.principal(await fresh(), call)));
      await tokens.principal(await fresh(), call);
      expect(provider.state.asked).toBe(1);
    });

    it('may change: a new one is used, a withdrawn one rejected', async () => {
      await tokens.principal(await fresh(), call);
      const second = await makeKey('second');
      provider.state.keys = [second];
      later(31_000);
      await tokens.principal(await fresh(second), call);
      await expectInvalid(tokens.principal(await fresh(), call));
      expect(provider.state.asked).toBe(2);
    });

    it('are fetched again after a while, so that withdrawn ones are rejected', async () => {
      const known = await fresh();
      await tokens.principal(known, call);
      provider.state.keys = [await makeKey('second')];
      later(601_000);
      await expectInvalid(tokens.principal(known, call));
    });

    it('are not fetched for every unknown key id', async () => {
      await tokens.principal(await fresh(), call);
      for (let i = 0; i < 50; i++) {
        await expectInvalid(tokens.principal(await fresh({ ...key, kid: `unknown-${i}` }), call));
      }
      expect(provider.state.asked).toBe(1);
    });

    it('are not fetched for malformed tokens or other algorithms', async () => {
      const other = await makeKey('other', 'ES384');
      for (const token of ['x', 'a.b.c', `${await fresh()}.x`, await fresh(other)]) {
        await expectInvalid(tokens.principal(token, call));
      }
      expect(provider.state.asked).toBe(0);
    });
  });

  describe('[SPEC Errors provider_error] an identity provider that', () => {
    it.each(['failing', 'babbling', 'malformed', 'endless'] as const)('is %s is a provider_error', async (mood) => {
      provider.state.mood = mood;
      const error = await rejection(tokens.principal(await fresh(), call));
      expect(error).toMatchObject(DOWN);
      expect(error?.message).not.toContain('127.0.0.1');
    });

    it('is silent is a provider_error after a deadline', async () => {
      provider.state.mood = 'silent';
      const deadline = new AbortController();
      const timeout = vi.spyOn(AbortSignal, 'timeout').mockReturnValueOnce(deadline.signal);
      onTestFinished(() => timeout.mockRestore());
      const rejected = rejection(tokens.principal(await fresh(), call));
      await eventually(() => expect(provider.state.asked).toBe(1));
      expect(timeout).toHaveBeenCalledWith(3_000);
      deadline.abort(new DOMException('the deadline has passed', 'TimeoutError'));
      expect(await rejected).toMatchObject(DOWN);
    });

    it('is silent does not delay an aborted request', async () => {
      provider.state.mood = 'silent';
      const reason = new Error('the client has disconnected');
      const leaving = new Call('test');
      const verified = tokens.principal(await fresh(), leaving);
      leaving.abort(reason);
      await expect(verified).rejects.toBe(reason);
    });

    it('is down is a provider_error once its keys expire', async () => {
      const known = await fresh();
      await tokens.principal(known, call);
      await provider.close();
      expect((await tokens.principal(known, call)).app).not.toBeNull();
      expect((await tokens.principal(await fresh(), call)).app).not.toBeNull();
      later(601_000);
      expect(await rejection(tokens.principal(await fresh(), call))).toMatchObject(DOWN);
    });

    it('fails is asked again only after a pause', async () => {
      provider.state.mood = 'failing';
      later(0);
      for (let i = 0; i < 20; i++) expect(await rejection(tokens.principal(await fresh(), call))).toMatchObject(DOWN);
      expect(provider.state.asked).toBe(1);
      provider.state.mood = 'well';
      later(4_900);
      expect(await rejection(tokens.principal(await fresh(), call))).toMatchObject(DOWN);
      later(200);
      await tokens.principal(await fresh(), call);
      expect(provider.state.asked).toBe(2);
    });
  });
});
