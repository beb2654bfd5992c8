import { describe, expect, it } from 'vitest';
import {
  type Call,
  type ErrorCode,
  isMethod,
  METHODS,
  type Method,
  type Methods,
  OmpError,
  type Provider,
} from '#contract';
import { UNPROTECTED } from '../../src/core/telemetry.ts';
import { withGuard } from '../../src/core/with-guard.ts';
import { callOf } from '../embedding/observed-embedder.ts';
import { call, openMemory } from '../support/requests.ts';

const SECRET = 'select * from secrets at db.internal:5432';
const NOW = '2025-01-01T00:00:00.000Z';

type Anything = (...args: unknown[]) => Promise<unknown>;
/** Every method of a provider, and where it is. */
const methodsIn = (methods: Methods, ...path: string[]): { path: string[]; entry: Method }[] =>
  Object.entries(methods).flatMap(([name, entry]) =>
    isMethod(entry) ? [{ path: [...path, name], entry }] : methodsIn(entry, ...path, name),
  );
const EVERYTHING = methodsIn(METHODS);
const functionsOf = (methods: Methods, of: Anything): object =>
  Object.fromEntries(
    Object.entries(methods).map(([name, entry]) => [name, isMethod(entry) ? of : functionsOf(entry, of)]),
  );
const at = (provider: unknown, path: readonly string[]) =>
  path.reduce((part, name) => (part as Record<string, unknown>)[name], provider) as Anything;

/** Some methods take a request, and others do not: each is called both ways. */
const REQUESTS: readonly unknown[][] = [[{ a: 'request' }], []];

/** The error of each function, when this stands for all of them. */
const failures = async (does: (...given: unknown[]) => Promise<never>, by: Call = call): Promise<OmpError[]> => {
  const provider = withGuard({ ...(await openMemory()), ...functionsOf(METHODS, does) });
  return Promise.all(
    EVERYTHING.flatMap(({ path }) =>
      REQUESTS.map((request) =>
        at(provider, path)(...request, by).then(
          () => expect.fail(`${path.join('.')} did not fail`),
          (error: unknown) => error as OmpError,
        ),
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
    expect(given).toEqual(EVERYTHING.flatMap(() => REQUESTS.map((request) => [...request, call])));
  });

  it('is observed by its name, and as a read if it is one', async () => {
    const seen: object[] = [];
    const provider = withGuard(
      { ...(await openMemory()), ...functionsOf(METHODS, async () => undefined) },
      {
        ...UNPROTECTED,
        run(operation, by, work) {
          seen.push(operation);
          return work(by);
        },
      },
    );
    for (const { path } of EVERYTHING) await at(provider, path)(call);
    const names = EVERYTHING.map(({ entry: { name, reads } }) => ({ name, reads }));
    expect(seen).toEqual(names.map((entry) => ({ kind: 'backend', dependency: 'memory', ...entry })));
    expect(new Set(names.map(({ name }) => name)).size).toBe(names.length);
  });
});

it('a guarded provider gets no verbs that the provider lacks', async () => {
  const { name, capabilities, get, ping, close } = await openMemory();
  const defined = Object.entries(withGuard({ name, capabilities, get, ping, close } satisfies Provider)).filter(
    ([, part]) => part,
  );
  expect(defined.map(([part]) => part).sort()).toEqual(['capabilities', 'check', 'close', 'get', 'name', 'ping']);
});
