import { describe, expect, it } from 'vitest';
import {
  type AuditLog,
  type Call,
  type ErrorCode,
  type IdempotencyKey,
  type KeyStore,
  type NewKey,
  OmpError,
  type Provider,
} from '#contract';
import { withGuard } from '../../src/core/with-guard.ts';
import { callOf } from '../embedding/observed-embedder.ts';
import { auditOf, call, listOf, memoryOf, openMemory, refTo, searchFor } from '../support/requests.ts';

const SECRET = 'select * from secrets at db.internal:5432';
const ref = refTo('mem_1');
const input = memoryOf('u', 'x');
const key: IdempotencyKey = { caller: 'c', kind: 'add', key: 'k' };
const newKey: NewKey = { id: 'i', name: 'n', hash: 'h', users: null, grants: [], expires_at: null };
const NOW = '2025-01-01T00:00:00.000Z';

type Full = Required<Provider>;
/** Every function of a provider, with its arguments before the call. */
const EVERYTHING: readonly (readonly [part: 'audit' | 'keys' | '', name: string, args: unknown[]])[] = [
  ['', 'add', [{ input, vector: null }]],
  ['', 'keyUse', [key]],
  ['', 'get', [ref]],
  ['', 'update', [{ ref, patch: { tags: [] }, vector: null }]],
  ['', 'delete', [ref]],
  ['', 'list', [listOf('u')]],
  ['', 'search', [searchFor('u', 'x')]],
  ['', 'batch', [{ items: [{ input, vector: null }] }]],
  ['', 'ping', []],
  ['audit', 'record', [[]]],
  ['audit', 'read', [auditOf('u')]],
  ['keys', 'find', ['i']],
  ['keys', 'hasAny', []],
  ['keys', 'list', [{}]],
  ['keys', 'create', [newKey]],
  ['keys', 'revoke', ['i']],
  ['keys', 'touch', [{ ids: ['i'], time: NOW }]],
];
type Functions = Readonly<Record<string, (...args: unknown[]) => Promise<unknown>>>;
const functionsOf = (provider: Full, part: (typeof EVERYTHING)[number][0]) =>
  (part === '' ? provider : provider[part]) as unknown as Functions;

/** The memory provider and a key store, with every function replaced by this one. */
const guarded = async (does: (...given: unknown[]) => Promise<never>): Promise<Full> => {
  const all = (wanted: string) =>
    Object.fromEntries(EVERYTHING.filter(([part]) => part === wanted).map(([, name]) => [name, does]));
  const keys = { ...all('keys'), close: async () => {} } as unknown as KeyStore;
  const audit = all('audit') as unknown as AuditLog;
  return withGuard({ ...(await openMemory()), ...all(''), audit, keys }) as Full;
};
/** The error of each function. */
const failures = async (does: (...given: unknown[]) => Promise<never>, by: Call = call): Promise<OmpError[]> => {
  const provider = await guarded(does);
  return Promise.all(
    EVERYTHING.map(([part, name, args]) =>
      (functionsOf(provider, part)[name] as Functions[string])(...args, by).then(
        () => expect.fail(`${part} ${name} did not fail`),
        (error: unknown) => error as OmpError,
      ),
    ),
  );
};

describe('every function of a guarded provider', () => {
  const cause = new TypeError(SECRET);
  it.each<[string, () => Promise<never>]>([
    ['an unexpected error', () => Promise.reject(cause)],
    ['a text', () => Promise.reject(SECRET)],
    ['undefined', () => Promise.reject(undefined)],
    ['null', () => Promise.reject(null)],
    // Of a provider that was written for another version.
    ['a code that is unknown here', () => Promise.reject(new OmpError('conflict' as ErrorCode, SECRET))],
    ['something like an OmpError', () => Promise.reject({ code: 'invalid_request' })],
    [
      'a synchronous throw',
      () => {
        throw cause;
      },
    ],
  ])('turns %s into an OmpError without internal details', async (title, does) => {
    for (const error of await failures(does)) {
      expect(error).toBeInstanceOf(OmpError);
      expect(error).toMatchObject({ code: 'provider_error', provider: 'memory' });
      expect(error.message).not.toContain('secrets');
      if (title.includes('unexpected')) expect(error.cause).toBe(cause);
    }
  });

  it('adds the backend to an error without a provider, and changes nothing else', async () => {
    const options = { retryAfter: 3, retry: 'safe', down: true, version: NOW, cause } as const;
    const nameless = new OmpError('provider_error', 'it broke', options);
    for (const error of await failures(() => Promise.reject(nameless))) {
      expect(error).toMatchObject({ ...options, code: 'provider_error', message: 'it broke', provider: 'memory' });
    }
  });

  it.each([
    new OmpError('provider_error', 'the embedding service broke', { provider: 'openai' }),
    new OmpError('rate_limited', 'slow down', { provider: 'openai', retryAfter: 7 }),
    new OmpError('invalid_request', 'content: too long'),
    new OmpError('not_found', 'gone'),
  ])('passes on "$message" unchanged', async (error) => {
    for (const passed of await failures(() => Promise.reject(error))) expect(passed).toBe(error);
  });

  it('rejects with the reason when its call is aborted, even if the backend continues', async () => {
    const reason = new OmpError('provider_error', 'too slow', { provider: 'memory' });
    const by = callOf(AbortSignal.abort(reason));
    for (const error of await failures(() => new Promise(() => {}), by)) {
      expect(error).toBe(reason);
    }
  });

  it('gets its arguments, in order', async () => {
    const given: unknown[][] = [];
    await failures((...args) => {
      given.push(args);
      return Promise.reject(new OmpError('not_found', 'gone'));
    });
    expect(given).toEqual(EVERYTHING.map(([, , args]) => [...args, call]));
  });
});

it('a guarded provider gets no verbs that the provider lacks', async () => {
  const { name, capabilities, get, ping, close } = await openMemory();
  const defined = Object.entries(withGuard({ name, capabilities, get, ping, close })).filter(([, part]) => part);
  expect(defined.map(([part]) => part).sort()).toEqual(['capabilities', 'check', 'close', 'get', 'name', 'ping']);
});
