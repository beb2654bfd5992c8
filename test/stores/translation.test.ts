import { describe, expect, it } from 'vitest';
import { type Fields, isMethod, type Memory, type Method, type Methods, OF_THE_ROOT, type ValueKind } from '#contract';
import type { Store } from '../../src/core/store.ts';
import { STORE_METHODS } from '../../src/core/translate.ts';
import { atMount, hiding } from '../../src/stores/at-mount.ts';
import { unopenedStore } from '../../src/stores/unopened.ts';
import { call } from '../support/requests.ts';

/*
 * What the table says of each method, against a request and an answer in which every field is given. That no field is missing in the table, or
 * is of a wrong kind, is a matter of its types, but for the kinds below that they leave open. Ids begin with `id-` and scopes with `in/`, in the names of the store.
 */

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
const VALUES: Readonly<Record<ValueKind, unknown>> = {
  plain: 'plain',
  id: 'id-1',
  scope: 'in/a',
  globs: ['in/*', 'in/c'],
  prefix: 'in/',
  within: ['in/*', 'in/b'],
  outside: undefined,
  memory,
  input,
  patch: { scope: 'in/b', supersedes: ['id-2'] },
};
/** A field with a name in the plural is a list. */
const sampleOf = (what: ValueKind | Fields | undefined): unknown => {
  if (what === undefined || typeof what === 'string') return what && VALUES[what];
  const fields = Object.entries(what).map(([field, kind]) => {
    const value = sampleOf(kind);
    return [field, field.endsWith('s') && kind !== 'plain' ? [value] : value];
  });
  return Object.fromEntries(fields);
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
  .map(({ entry, ...rest }) => {
    const answer = sampleOf(entry.answer);
    const sample: Sample = {
      request: sampleOf(entry.request),
      answer: Array.isArray(entry.nothing) ? [answer] : answer,
    };
    return { ...rest, entry, sample };
  });

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
    [member]: inner === undefined ? method : { [inner]: method },
  };
  const seen = at(see(store), path) as (...args: unknown[]) => Promise<unknown>;
  const got = await (request === undefined ? seen(call) : seen(request, call));
  return { reached: reached.map(plain), got: plain(got) };
}

/** Kinds of text and lists of text, but for fields that are named `id` or `ids`: any of them, and `plain`, would compile. */
const openKinds = (place: string, what: ValueKind | Fields | undefined): string[] =>
  what === undefined || typeof what === 'string'
    ? ['id', 'scope', 'globs', 'prefix'].filter((kind) => kind === what).map((kind) => `${place}: ${kind}`)
    : Object.entries(what).flatMap(([field, kind]) =>
        /^ids?$/.test(field) ? [] : openKinds(`${place}.${field}`, kind),
      );

it('[Decision 48] the kinds that types leave open are due', () => {
  const found = METHODS.flatMap(({ name, entry: { request, answer } }) => [
    ...openKinds(`${name} of`, request),
    ...openKinds(`${name} answers`, answer),
  ]);
  expect(found).toEqual([
    'list of.scope: globs',
    'search of.scope: prefix',
    'userStats answers.scopes.scope: scope',
    'versions.writtenIn of.after: id',
    'versions.writtenIn answers: id',
    'queryVector of.scope: prefix',
  ]);
});

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
