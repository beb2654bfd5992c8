import { describe, expect, it } from 'vitest';
import {
  isMethod,
  type Memory,
  type Method,
  type Methods,
  NO_STATS,
  NO_USAGE,
  OF_THE_ROOT,
  type Unasked,
} from '#contract';
import type { Store } from '../../src/core/store.ts';
import { STORE_METHODS } from '../../src/core/translate.ts';
import { atMount, hiding } from '../../src/stores/at-mount.ts';
import { unopenedStore } from '../../src/stores/unopened.ts';
import { call } from '../support/requests.ts';

/*
 * What the table says of each method, against a request and an answer in which every field is given. Ids begin with `id-` and scopes with
 * `in/`, in the names of the store.
 */

type AnyMethod = (...args: never[]) => Promise<unknown>;
type Whole<Of> = Of extends readonly unknown[] | AnyMethod ? Of : { readonly [Field in keyof Required<Of>]: Of[Field] };
type SampleOf<Of extends AnyMethod> = {
  readonly request: Parameters<Of> extends [infer Request, unknown] ? Whole<Request> : undefined;
  readonly answer: Awaited<ReturnType<Of>>;
};
/** A new method, or a new field of a request, does not compile until it is here. */
type SamplesOf<Of> = {
  readonly [Member in keyof Of]-?: NonNullable<Of[Member]> extends AnyMethod
    ? SampleOf<NonNullable<Of[Member]>>
    : SamplesOf<NonNullable<Of[Member]>>;
};
type Beside = 'mounts' | 'embedding' | 'idempotent' | Unasked | (typeof OF_THE_ROOT)[number];

const memory: Memory = {
  id: 'id-1',
  content: 'tea',
  user_id: 'u',
  scope: 'in/a',
  tags: ['t'],
  source: null,
  confidence: null,
  valid_from: null,
  valid_to: null,
  supersedes: ['id-2'],
  extensions: {},
  created_at: '2026-01-01T00:00:00.000Z',
  updated_at: '2026-01-01T00:00:00.000Z',
  embedding_model: null,
  status: 'done',
};
const { id: _, ...input } = memory;
const visible = { within: ['in/*', 'in/b'], outside: undefined };
const ref = { id: 'id-1', users: ['u'], versions: ['v'], ...visible };
const filters = { user_id: 'u', tags: ['t'], written: undefined, since: 's', until: 'u', limit: 1, max_bytes: 1 };
const item = { memory, vector: null, version: 2, versions: [{ version: 1, memory }], versions_left_out: 0 };
const freeze = { since: 's', by: 'b' };
const changed = { key: undefined, onRepeat: () => {}, limits: undefined };

const SAMPLES: SamplesOf<Omit<Store, Beside>> = {
  add: { request: { input, ...changed }, answer: memory },
  batch: { request: { inputs: [input], ...changed }, answer: [memory] },
  get: { request: ref, answer: memory },
  update: { request: { ref, patch: { scope: 'in/b', supersedes: ['id-2'] }, limits: undefined }, answer: memory },
  delete: { request: ref, answer: true },
  list: {
    request: { ...filters, ...visible, scope: ['in/*', 'in/c'], after: { id: 'id-3', created_at: 'c' } },
    answer: [memory],
  },
  search: {
    request: { ...filters, ...visible, scope: 'in/', text: 'tea', vector: null, max_content_bytes: 1, explain: true },
    answer: [{ memory, score: 1 }],
  },
  neighbours: {
    request: {
      ...visible,
      user_id: 'u',
      ids: ['id-1', 'id-2'],
      written: undefined,
      max_content_bytes: 1,
      max_bytes: 1,
    },
    answer: [memory],
  },
  users: {
    request: { ...visible, users: ['u'], prefix: 'u', after: 'u', limit: 1 },
    answer: { items: [], next: 'u' },
  },
  userStats: {
    request: { ...visible, user_id: 'u', limit: 1 },
    answer: { ...NO_STATS, scopes: [{ scope: 'in/a', count: 1 }] },
  },
  userUsage: { request: { user_id: 'u' }, answer: NO_USAGE },
  erase: { request: { user_id: 'u' }, answer: [] },
  versions: {
    list: {
      request: { ref, before: 2, limit: 1, max_bytes: 1 },
      answer: { current: memory, version: 2, versions: [{ version: 1, memory }] },
    },
    purge: { request: ref, answer: 1 },
    writtenIn: { request: { user_id: 'u', since: 's', key: 'k', after: 'id-1', limit: 1 }, answer: ['id-2'] },
  },
  export: {
    request: {
      ids: ['id-1'],
      after: 'a',
      user_id: 'u',
      since: 's',
      vectors: true,
      versions: true,
      limit: 1,
      max_bytes: 1,
    },
    answer: { items: [item], next: 'n' },
  },
  import: { request: { items: [item], replace: true }, answer: [true] },
  queryVector: { request: { text: 'tea', scope: 'in/' }, answer: null },
  freezing: {
    current: { request: undefined, answer: freeze },
    freeze: { request: { by: 'b' }, answer: freeze },
    unfreeze: { request: undefined, answer: freeze },
  },
  ping: { request: undefined, answer: undefined },
  backlog: { request: undefined, answer: { queued: 1, indexing: 0, failed: 0 } },
};

interface Sample {
  readonly request: unknown;
  readonly answer: unknown;
}
const at = (of: unknown, path: readonly string[]) =>
  path.reduce((part, name) => (part as Record<string, unknown>)[name], of);
const methodsIn = (methods: Methods, ...path: string[]): { name: string; path: string[]; entry: Method }[] =>
  Object.entries(methods).flatMap(([name, entry]) =>
    isMethod(entry)
      ? [{ name: [...path, name].join('.'), path: [...path, name], entry }]
      : methodsIn(entry, ...path, name),
  );
const ROOT: readonly string[] = OF_THE_ROOT;
const METHODS = methodsIn(STORE_METHODS)
  .filter(({ path: [first = ''] }) => !ROOT.includes(first))
  .map(({ path, ...rest }) => ({ ...rest, path, sample: at(SAMPLES, path) as Sample }));

/** The value, with this done to its text. */
const rewritten = (value: unknown, change: (text: string) => string): unknown => {
  const text = JSON.stringify(value);
  return text === undefined ? undefined : JSON.parse(change(text));
};
const plain = (value: unknown) => rewritten(value, (text) => text);
const inCrm = (text: string) => text.replaceAll('"in/', '"crm/in/');
/** In the names of clients. */
const shown = (value: unknown) => rewritten(value, (text) => inCrm(text).replaceAll('"id-', '"~crm~id-'));

/** Calls one method of a store that is seen in this way, and returns what reached the store, and the answer. */
async function asked(path: readonly string[], see: (store: Store) => Store, { request, answer }: Sample) {
  const reached: unknown[] = [];
  const method = async (first: unknown) => {
    reached.push(first === call ? undefined : first);
    return answer;
  };
  const [member = '', inner] = path;
  const store = {
    ...unopenedStore('crm'),
    [member]: inner === undefined ? method : { ...(at(SAMPLES, [member]) as object), [inner]: method },
  };
  const seen = at(see(store), path) as (...args: unknown[]) => Promise<unknown>;
  const got = await (request === undefined ? seen(call) : seen(request, call));
  return { reached: reached.map(plain), got: plain(got) };
}

describe('[Decision 48] each method of the table', () => {
  const mounted = (store: Store) => atMount(store, { name: 'crm', mount: 'crm' });

  it.each(METHODS)('$name at a mount: the store gets its own names, and clients theirs', async ({ path, sample }) => {
    const { request, answer } = sample;
    expect(await asked(path, mounted, { request: shown(request), answer })).toEqual({
      reached: [plain(request)],
      got: shown(answer),
    });
  });

  it.each(METHODS.filter(({ entry }) => 'nothing' in entry))(
    '$name at a mount: what can match nothing there does not reach the store',
    async ({ path, sample, entry }) => {
      const elsewhere = (text: string) => text.replaceAll('"in/', '"docs/');
      const request = rewritten(sample.request, elsewhere);
      expect(await asked(path, mounted, { ...sample, request })).toEqual({ reached: [], got: plain(entry.nothing) });
    },
  );

  it.each(METHODS)('$name of the root store: what a mount hides is not asked for, or not shown', async (one) => {
    const { path, sample } = one;
    const hidden = (store: Store) => hiding(store, ['crm']);
    const seen = await asked(path, hidden, sample);
    expect(seen.got).toEqual(plain(sample.answer));
    const texts = seen.reached.map((request) => JSON.stringify(request) ?? '').join();
    expect(texts.match(/"outside":\["crm"\]/g)?.length).toBe(texts.match(/"within":/g)?.length);
    const answer = rewritten(sample.answer, inCrm);
    const told = await asked(path, hidden, { ...sample, answer }).catch((error: { code: string }) => error.code);
    expect(JSON.stringify(told)).not.toContain('"crm/');
  });

  it('a mounted store lacks what only the root store has', () => {
    const all = Object.fromEntries(ROOT.map((member) => [member, {}]));
    const store = mounted({ ...unopenedStore('crm'), ...all } as Store) as unknown as Record<string, unknown>;
    expect(ROOT.map((member) => store[member])).toEqual(ROOT.map(() => undefined));
  });
});
