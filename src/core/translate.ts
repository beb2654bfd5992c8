import {
  type Fields,
  isMethod,
  METHODS,
  type Memory,
  type MemoryPatch,
  type Method,
  type Methods,
  type MethodsOf,
  type NewMemory,
  OmpError,
  type ValueKind,
  type Within,
} from '#contract';
import type { Store } from './store.ts';

const { keyUse: _, holdings: __, ...SHARED } = METHODS;
/** The table of a provider, with what differs in a store: it takes no vectors, and knows keys by itself. */
export const STORE_METHODS = {
  ...SHARED,
  add: { ...METHODS.add, request: { input: 'input', key: 'plain', onRepeat: 'plain', limits: 'plain' } },
  batch: { ...METHODS.batch, request: { inputs: 'input', key: 'plain', onRepeat: 'plain', limits: 'plain' } },
  queryVector: { name: 'query_vector', reads: true, request: { text: 'plain', scope: 'prefix' }, nothing: null },
} as const satisfies MethodsOf<Omit<Store, 'mounts' | 'embedding' | 'idempotent' | 'embeddingUsage'>>;

/** What a translation makes of each kind of value in requests. */
export interface RequestNames {
  id(id: string): string;
  scope(scope: string | null): string | null;
  globs(globs: string | readonly string[]): string | readonly string[] | undefined;
  prefix(prefix: string): string | undefined | typeof NOTHING;
  within(within: Within): Within | typeof NOTHING;
  /** Called with undefined too. */
  outside(outside: readonly string[] | undefined): readonly string[] | undefined;
  memory(memory: Memory): Memory;
  input(input: NewMemory): NewMemory;
  patch(patch: MemoryPatch): MemoryPatch;
}

/** The same in answers. */
export type AnswerNames = Pick<RequestNames, 'id' | 'scope' | 'memory'>;

/** No memory can match: the method is not called, and its answer is that of the table. */
export const NOTHING = Symbol('nothing');

const same = <Value>(value: Value): Value => value;
/** Leaves an answer as it is. */
export const SAME_ANSWER: AnswerNames = { id: same, scope: same, memory: same };
/** Leaves a request as it is. */
export const SAME: RequestNames = {
  ...SAME_ANSWER,
  globs: same,
  prefix: same,
  within: same,
  outside: same,
  input: same,
  patch: same,
};

/** These methods replaced; those that are absent stay so. */
export function eachMethod<Of extends object>(
  of: Of,
  methods: Methods,
  change: (method: AnyMethod, entry: Method) => AnyMethod,
): Of {
  const changed = Object.entries(methods).flatMap(([name, entry]) => {
    const member = of[name as keyof Of];
    if (!member) return [];
    return [[name, isMethod(entry) ? change(member as AnyMethod, entry) : eachMethod(member, entry, change)]];
  });
  return { ...of, ...Object.fromEntries(changed) };
}

/** A method takes a request, if any, and the call. */
export type AnyMethod = (first: unknown, call?: unknown) => Promise<unknown>;

/** The store or provider in other names: of requests, on the way to it, and of answers. What concerns neither ids nor scopes stays as it is. */
export const translate = <Of extends object>(
  of: Of,
  methods: Methods,
  names: { readonly request: RequestNames; readonly answer: AnswerNames },
): Of =>
  eachMethod(of, methods, (method, { request, answer, nothing }) => {
    const toOwn = changeOf(request, names.request);
    const toShown = changeOf(answer, names.answer);
    if (!toOwn && !toShown) return method;
    return async (first, call) => {
      const own = toOwn ? toOwn(first) : first;
      // The caller may change what it gets.
      if (own === NOTHING) return structuredClone(nothing);
      const found = await method(own, call);
      return toShown ? toShown(found) : found;
    };
  });

type Change = (value: unknown) => unknown;
type Changes = Partial<Record<ValueKind, Change>>;

/** Those that take a list as one value. */
const LISTS: readonly ValueKind[] = ['within', 'outside', 'globs'];

/** Made once for each method; undefined: the value stays as it is. */
function changeOf(what: ValueKind | Fields | undefined, names: object): Change | undefined {
  if (what === undefined || what === 'plain') return undefined;
  if (typeof what === 'string') {
    const change = (names as Changes)[what] as Change;
    if (change === same) return undefined;
    return LISTS.includes(what) ? change : forEach((value) => (value instanceof OmpError ? value : change(value)));
  }
  const changes = Object.entries(what).flatMap(([field, kind]) => {
    const change = changeOf(kind, names);
    return change ? [{ field, change, always: kind === 'outside' }] : [];
  });
  if (changes.length === 0) return undefined;
  return forEach((value) => {
    if (value === null) return value;
    let own = value as Record<string, unknown>;
    let found = true;
    for (const { field, change, always } of changes) {
      const before = own[field];
      if (before === undefined && !always) continue;
      const after = change(before);
      if (after === NOTHING) found = false;
      if (after === before) continue;
      if (own === value) own = { ...own };
      own[field] = after;
    }
    // Only now: a request that is wrong is rejected, whether or not a memory could match.
    return found ? own : NOTHING;
  });
}

const forEach =
  (change: Change): Change =>
  (value) => {
    if (value === undefined) return value;
    return Array.isArray(value) ? value.map((item) => (item === undefined ? item : change(item))) : change(value);
  };
