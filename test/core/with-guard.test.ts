import { describe, expect, it } from 'vitest';
import {
  type AuditLog,
  type Call,
  type IdempotencyKey,
  type IdempotentAdd,
  type KeyStore,
  type NewKey,
  OmpError,
  type Provider,
} from '#contract';
import { withGuard } from '../../src/core/with-guard.ts';
import { memoriesOf } from '../support/memories.ts';
import { auditOf, call, callBy, listOf, memoryOf, openMemory, refTo, searchFor } from '../support/requests.ts';

const SECRET = 'select * from secrets at db.internal:5432';
const ref = refTo('mem_1');
const input = memoryOf('u', 'x');
const key: IdempotencyKey = { caller: 'c', key: 'k', fingerprint: 'f' };
const newKey: NewKey = { id: 'i', name: 'n', hash: 'h', users: null, grants: [], expires_at: null };

type Full = Required<Provider>;
type Perform = (provider: Full, by: Call) => Promise<unknown>;
/** Every verb, with arguments it would take. */
const VERBS: readonly (readonly [keyof Provider, Perform])[] = [
  ['add', (provider, by) => provider.add(input, null, by)],
  ['get', (provider, by) => provider.get(ref, by)],
  ['update', (provider, by) => provider.update(ref, { tags: [] }, null, by)],
  ['delete', (provider, by) => provider.delete(ref, by)],
  ['list', (provider, by) => provider.list(listOf('u'), by)],
  ['search', (provider, by) => provider.search(searchFor('u', 'x'), by)],
  ['ping', (provider, by) => provider.ping(by)],
];
const IDEMPOTENCY: readonly (readonly [keyof IdempotentAdd, Perform])[] = [
  ['firstAnswer', ({ idempotency }, by) => idempotency.firstAnswer(input, key, by)],
  ['add', ({ idempotency }, by) => idempotency.add(input, null, key, by)],
];
const AUDIT: readonly (readonly [keyof AuditLog, Perform])[] = [
  ['record', ({ audit }, by) => audit.record([], by)],
  ['read', ({ audit }, by) => audit.read(auditOf('u'), by)],
];
const KEYS: readonly (readonly [Exclude<keyof KeyStore, 'close'>, Perform])[] = [
  ['find', ({ keys }, by) => keys.find('i', by)],
  ['hasAny', ({ keys }, by) => keys.hasAny(by)],
  ['list', ({ keys }, by) => keys.list(by)],
  ['create', ({ keys }, by) => keys.create(newKey, by)],
  ['revoke', ({ keys }, by) => keys.revoke('i', by)],
  ['touch', ({ keys }, by) => keys.touch(['i'], '2025-01-01T00:00:00.000Z', by)],
];
const EVERYTHING = [
  ...VERBS,
  ...IDEMPOTENCY.map(([name, perform]) => [`idempotency.${name}`, perform] as const),
  ...AUDIT.map(([name, perform]) => [`audit.${name}`, perform] as const),
  ...KEYS.map(([name, perform]) => [`keys.${name}`, perform] as const),
];

/** The memory provider with everything it does, and a key store, replaced by the same. */
const guarded = async (does: (...given: unknown[]) => Promise<never>): Promise<Full> => {
  const all = (names: readonly (readonly [string, unknown])[]) =>
    Object.fromEntries(names.map(([name]) => [name, does]));
  const replaced = {
    ...(await openMemory()),
    ...all(VERBS),
    idempotency: all(IDEMPOTENCY) as unknown as IdempotentAdd,
    audit: all(AUDIT) as unknown as AuditLog,
    keys: { ...(all(KEYS) as unknown as KeyStore), close: async () => {} },
  };
  return withGuard(replaced) as Full;
};
const failure = (pending: Promise<unknown>): Promise<OmpError> =>
  pending.then(
    () => expect.fail('it was expected to fail'),
    (error: unknown) => error as OmpError,
  );

describe.each(EVERYTHING)('a guarded %s', (_, perform) => {
  it('turns an unexpected error into an OmpError without internal details', async () => {
    const cause = new TypeError(SECRET);
    const provider = await guarded(() => Promise.reject(cause));
    const error = await failure(perform(provider, call));
    expect(error).toBeInstanceOf(OmpError);
    expect(error).toMatchObject({ code: 'provider_error', provider: 'memory', cause });
    expect(error.message).not.toContain('secrets');
  });

  it('does so for any thrown value', async () => {
    for (const thrown of [SECRET, undefined, null, { code: 'invalid_request' }]) {
      const error = await failure(perform(await guarded(() => Promise.reject(thrown)), call));
      expect(error).toMatchObject({ code: 'provider_error', provider: 'memory' });
      expect(error.message).not.toContain('secrets');
    }
  });

  it('does so for a synchronous throw', async () => {
    const provider = await guarded(() => {
      throw new TypeError(SECRET);
    });
    const error = await failure(perform(provider, call));
    expect(error).toMatchObject({ code: 'provider_error', provider: 'memory' });
  });

  it('adds the backend to an error without a provider', async () => {
    const nameless = new OmpError('provider_error', 'it broke', { retryAfter: 3 });
    const error = await failure(perform(await guarded(() => Promise.reject(nameless)), call));
    expect(error).toMatchObject({ code: 'provider_error', message: 'it broke', provider: 'memory' });
  });

  it.each([
    new OmpError('provider_error', 'the embedding service broke', { provider: 'openai' }),
    new OmpError('rate_limited', 'slow down', { provider: 'openai', retryAfter: 7 }),
    new OmpError('invalid_request', 'content: too long'),
    new OmpError('not_found', 'gone'),
  ])('passes on "$message" as it is', async (error) => {
    expect(await failure(perform(await guarded(() => Promise.reject(error)), call))).toBe(error);
  });
});

describe.each(EVERYTHING)('a guarded %s that is aborted', (_, perform) => {
  it('rejects with the reason, even if the backend continues', async () => {
    const reason = new OmpError('provider_error', 'too slow', { provider: 'memory' });
    const provider = await guarded(() => new Promise(() => {}));
    const unlessAborted = <Result>(work: Promise<Result>) => Promise.race([work, Promise.reject<Result>(reason)]);
    expect(await failure(perform(provider, callBy({}, { unlessAborted })))).toBe(reason);
  });
});

describe('a guarded provider', () => {
  it('otherwise behaves like the provider', async () => {
    const inner = await openMemory();
    const provider = memoriesOf(withGuard(inner));
    expect({ name: provider.name, capabilities: provider.capabilities }).toEqual({
      name: inner.name,
      capabilities: inner.capabilities,
    });
    const added = await provider.addIdempotent(input, key, call);
    expect(await provider.addIdempotent(input, key, call)).toEqual(added);
    const own = refTo(added.id);
    expect(await provider.get(own, call)).toEqual(added);
    expect(await provider.get(refTo(added.id, { users: ['other'] }), call)).toBeUndefined();
    expect(await provider.update(own, { tags: ['t'] }, call)).toMatchObject({ tags: ['t'] });
    expect(await provider.list(listOf('u'), call)).toHaveLength(1);
    expect(await provider.search(searchFor('u', 'x'), call)).toHaveLength(1);
    expect(await provider.delete(own, call)).toBe(true);
    const entries = await provider.audit.read(auditOf('u'), call);
    expect(entries.map(({ action }) => action)).toEqual(['delete', 'update', 'add', 'add']);
    await provider.audit.record(entries, call);
    expect(await provider.audit.read(auditOf('u'), call)).toHaveLength(8);
  });

  it('passes on its arguments, in order', async () => {
    const given: unknown[][] = [];
    const provider = await guarded((...parts) => {
      given.push(parts);
      return Promise.reject(new OmpError('not_found', 'gone'));
    });
    for (const [, perform] of EVERYTHING) await failure(perform(provider, call));
    expect(given).toEqual([
      [input, null, call],
      [ref, call],
      [ref, { tags: [] }, null, call],
      [ref, call],
      [listOf('u'), call],
      [searchFor('u', 'x'), call],
      [call],
      [input, key, call],
      [input, null, key, call],
      [[], call],
      [auditOf('u'), call],
      ['i', call],
      [call],
      [call],
      [newKey, call],
      ['i', call],
      [['i'], '2025-01-01T00:00:00.000Z', call],
    ]);
  });

  it('has no verb that the provider lacks', async () => {
    const { name, capabilities, get, ping, close } = await openMemory();
    const provider = withGuard({ name, capabilities, get, ping, close });
    const { add, idempotency, update, delete: remove, list, search, audit, keys } = provider;
    expect([add, idempotency, update, remove, list, search, audit, keys]).toEqual(Array(8).fill(undefined));
  });
});
