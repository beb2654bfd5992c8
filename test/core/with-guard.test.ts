import { tmpdir } from 'node:os';
import { describe, expect, it } from 'vitest';
import { type Call, OmpError, type Provider } from '#contract';
import { withGuard } from '../../src/core/with-guard.ts';
import { openProvider } from '../../src/registry.ts';
import { recordingLog } from '../support/subject.ts';

const SECRET = 'select * from secrets at db.internal:5432';
const ref = { id: 'mem_1' };
const query = { user_id: 'u', text: 'x', tags: [], limit: 1 };
const input = {
  content: 'x',
  user_id: 'u',
  scope: null,
  tags: [],
  source: null,
  confidence: null,
  valid_from: null,
  valid_to: null,
  supersedes: [],
  extensions: {},
};

/** Every verb, with arguments it would take. */
const VERBS: readonly (readonly [keyof Provider, (provider: Required<Provider>, call: Call) => Promise<unknown>])[] = [
  ['add', (provider, call) => provider.add(input, call)],
  ['get', (provider, call) => provider.get(ref, call)],
  ['update', (provider, call) => provider.update(ref, { tags: [] }, call)],
  ['delete', (provider, call) => provider.delete(ref, call)],
  ['list', (provider, call) => provider.list(query, call)],
  ['search', (provider, call) => provider.search(query, call)],
  ['ping', (provider, call) => provider.ping(call)],
];

const memory = (): Promise<Provider> =>
  openProvider(
    'memory',
    {},
    { embedder: undefined, ranking: { mode: 'keyword', keyword_weight: 1 }, data_dir: tmpdir(), log: recordingLog() },
  );
/** The memory provider with every verb replaced. */
const guarded = async (verb: () => Promise<never>): Promise<Required<Provider>> => {
  const replaced = Object.fromEntries(VERBS.map(([name]) => [name, verb]));
  return withGuard({ ...(await memory()), ...replaced }) as Required<Provider>;
};
const callWith = (signal = new AbortController().signal): Call => ({ signal, requestId: 'test' });
const failure = (pending: Promise<unknown>): Promise<OmpError> =>
  pending.then(
    () => expect.fail('it was expected to fail'),
    (error: unknown) => error as OmpError,
  );

describe.each(VERBS)('a guarded %s', (_, perform) => {
  it('turns a stray error into one that tells nothing inner', async () => {
    const cause = new TypeError(SECRET);
    const provider = await guarded(() => Promise.reject(cause));
    const error = await failure(perform(provider, callWith()));
    expect(error).toBeInstanceOf(OmpError);
    expect(error).toMatchObject({ code: 'provider_error', provider: 'memory', cause });
    expect(error.message).not.toContain('secrets');
  });

  it('does so whatever is thrown', async () => {
    for (const thrown of [SECRET, undefined, null, { code: 'invalid_request' }]) {
      const error = await failure(perform(await guarded(() => Promise.reject(thrown)), callWith()));
      expect(error).toMatchObject({ code: 'provider_error', provider: 'memory' });
      expect(error.message).not.toContain('secrets');
    }
  });

  it('does so also for what is thrown before there is a promise', async () => {
    const provider = await guarded(() => {
      throw new TypeError(SECRET);
    });
    const error = await failure(perform(provider, callWith()));
    expect(error).toMatchObject({ code: 'provider_error', provider: 'memory' });
  });

  it('names the backend in an error that names nobody', async () => {
    const nameless = new OmpError('provider_error', 'it broke', { retryAfter: 3 });
    const error = await failure(perform(await guarded(() => Promise.reject(nameless)), callWith()));
    expect(error).toMatchObject({ code: 'provider_error', message: 'it broke', provider: 'memory' });
  });

  it.each([
    new OmpError('provider_error', 'the embedding service broke', { provider: 'openai' }),
    new OmpError('rate_limited', 'slow down', { provider: 'openai', retryAfter: 7 }),
    new OmpError('invalid_request', 'content: too long'),
    new OmpError('not_found', 'gone'),
  ])('passes on "$message" as it is', async (error) => {
    expect(await failure(perform(await guarded(() => Promise.reject(error)), callWith()))).toBe(error);
  });
});

describe('a guarded provider', () => {
  it('is otherwise the same', async () => {
    const inner = await memory();
    const provider = withGuard(inner) as Required<Provider>;
    expect({ name: provider.name, capabilities: provider.capabilities }).toEqual({
      name: inner.name,
      capabilities: inner.capabilities,
    });
    const added = await provider.add(input, callWith());
    expect(await provider.get({ id: added.id }, callWith())).toEqual(added);
    expect(await provider.get({ id: added.id, user_id: 'other' }, callWith())).toBeUndefined();
    expect(await provider.update({ id: added.id }, { tags: ['t'] }, callWith())).toMatchObject({ tags: ['t'] });
    expect(await provider.delete({ id: added.id }, callWith())).toBe(true);
  });

  it('has no verb that the provider lacks', async () => {
    const { name, capabilities, add, get, ping, close } = await memory();
    const provider = withGuard({ name, capabilities, add, get, ping, close });
    expect([provider.update, provider.delete, provider.list, provider.search]).toEqual(Array(4).fill(undefined));
  });
});
