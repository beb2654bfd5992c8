import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { openTokens, type Tokens } from '../../src/auth/tokens.ts';
import { call, expectRefused, rejection } from './call.ts';
import { AUDIENCE, ISSUER, makeKey, openIdentityProvider, type SigningKey, sign } from './identity-provider.ts';

let key: SigningKey;
let provider: Awaited<ReturnType<typeof openIdentityProvider>>;
let tokens: Tokens;
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

/** Lets the clocks run ahead; timers are not touched. */
const later = (milliseconds: number) => {
  if (!vi.isFakeTimers()) vi.useFakeTimers({ toFake: ['Date', 'performance'], now: Date.now() });
  vi.advanceTimersByTime(milliseconds);
};
/** A token of its own every time: none is remembered. */
let count = 0;
const fresh = (by = key) => sign(by, { jti: String(count++), exp: Math.floor(Date.now() / 1_000) + 86_400 });
const DOWN = { code: 'provider_error', provider: 'jwks' };

describe('the keys of an identity provider', () => {
  it('are asked for once, also by many tokens at the same time', async () => {
    expect(provider.state.asked).toBe(0);
    await Promise.all(Array.from({ length: 10 }, async () => tokens.principal(await fresh(), call)));
    await tokens.principal(await fresh(), call);
    expect(provider.state.asked).toBe(1);
  });

  it('may change: a new one is taken, a withdrawn one no longer', async () => {
    await tokens.principal(await fresh(), call);
    const second = await makeKey('second');
    provider.state.keys = [second];
    later(31_000);
    await tokens.principal(await fresh(second), call);
    await expectRefused(tokens.principal(await fresh(), call));
    expect(provider.state.asked).toBe(2);
  });

  it('are asked for again after a while, so that a withdrawn one is noticed', async () => {
    const known = await fresh();
    await tokens.principal(known, call);
    provider.state.keys = [await makeKey('second')];
    later(601_000);
    await expectRefused(tokens.principal(known, call));
  });

  it('are not asked for by every token that names a key there is not', async () => {
    await tokens.principal(await fresh(), call);
    for (let i = 0; i < 50; i++) {
      await expectRefused(tokens.principal(await fresh({ ...key, kid: `unknown-${i}` }), call));
    }
    expect(provider.state.asked).toBe(1);
  });

  it('are not asked for by what is no token, or one of an algorithm that is not allowed', async () => {
    const other = await makeKey('other', 'ES384');
    for (const token of ['x', 'a.b.c', `${await fresh()}.x`, await fresh(other)]) {
      await expectRefused(tokens.principal(token, call));
    }
    expect(provider.state.asked).toBe(0);
  });
});

describe('[SPEC Errors provider_error] an identity provider that', () => {
  it.each(['failing', 'babbling', 'malformed', 'endless'] as const)('is %s is named, not the token', async (mood) => {
    provider.state.mood = mood;
    const error = await rejection(tokens.principal(await fresh(), call));
    expect(error).toMatchObject(DOWN);
    expect(error?.message).not.toContain('127.0.0.1');
  });

  it('is silent does not keep a request waiting for ever', async () => {
    provider.state.mood = 'silent';
    expect(await rejection(tokens.principal(await fresh(), call))).toMatchObject(DOWN);
  });

  it('is silent does not keep a request waiting longer than its caller does', async () => {
    provider.state.mood = 'silent';
    const gone = new Error('the client has gone');
    const impatient = { ...call, unlessAborted: <R>(work: Promise<R>) => Promise.race([work, Promise.reject(gone)]) };
    await expect(tokens.principal(await fresh(), impatient)).rejects.toBe(gone);
  });

  it('is gone is named, and those it vouched for are still let in', async () => {
    const known = await fresh();
    await tokens.principal(known, call);
    await provider.close();
    expect((await tokens.principal(known, call)).app).not.toBeNull();
    expect((await tokens.principal(await fresh(), call)).app).not.toBeNull();
    later(601_000);
    expect(await rejection(tokens.principal(await fresh(), call))).toMatchObject(DOWN);
  });

  it('fails is left alone for a moment, whatever comes in meanwhile, and then asked again', async () => {
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
