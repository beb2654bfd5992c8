import type { Call } from './call.ts';
import type { OmpError } from './errors.ts';
import type { Provider } from './provider.ts';
import type { Memory, MemoryPatch, NewMemory } from './record.ts';
import { NO_STATS } from './users.ts';

/*
 * Every method of a provider, once: what metrics call it, whether it reads, and where its request and its answer carry ids, scopes and
 * memories. What wraps a provider or a store goes by this table (`src/core/translate.ts`, `src/core/with-guard.ts`), so a new method is a row
 * here and its implementations. The types demand a place for each field, and for each method.
 */

/**
 * What a value is, for those that give it another name. `plain`: neither an id nor a scope, and holds none. `id`, `scope`: one, or a list.
 * `globs`: a glob over scopes, or several. `prefix`: the beginning of scopes. `within`, `outside`: as in `Visible`. `memory`: a `Memory`;
 * `input`: a `NewMemory`; `patch`: a `MemoryPatch`.
 */
export type ValueKind =
  | 'plain'
  | 'id'
  | 'scope'
  | 'globs'
  | 'prefix'
  | 'within'
  | 'outside'
  | 'memory'
  | 'input'
  | 'patch';

/** What the fields of an object are, or of each object of a list. */
export interface Fields {
  readonly [field: string]: ValueKind | Fields;
}

/** One method. */
export interface Method {
  /** In metrics and traces. */
  readonly name: string;
  readonly reads: boolean;
  /** What the request carries; absent: nothing. */
  readonly request?: ValueKind | Fields | undefined;
  readonly answer?: ValueKind | Fields | undefined;
  /** The answer when the allowed scopes admit no memory. */
  readonly nothing?: unknown;
}

/** The methods of a provider, a store or a part of one. */
export interface Methods {
  readonly [member: string]: Method | Methods;
}

export const isMethod = (entry: Method | Methods): entry is Method => typeof entry.reads === 'boolean';

/** The members that do not ask the backend, and the ingestion queue, which has deadlines of its own and retries by itself. */
export type Unasked = 'name' | 'capabilities' | 'read_only' | 'check' | 'stats' | 'ingestion' | 'close';

/** What only the root store of several has: it is about all of them. Its requests and answers are in the names of clients. */
export const OF_THE_ROOT = ['keys', 'audit', 'changes', 'changesHeld', 'webhooks', 'embeddingUsage'] as const;
export type OfTheRoot = (typeof OF_THE_ROOT)[number];

/** A table of the methods of `Of`: it does not compile without a row for each, and without a kind for each field that can carry a name. */
export type MethodsOf<Of> = {
  readonly [Member in Exclude<keyof Of, Unasked>]-?: NonNullable<Of[Member]> extends AnyMethod
    ? Member extends OfTheRoot
      ? Asked
      : Asked & Carrying<Requests<NonNullable<Of[Member]>>, Awaited<ReturnType<NonNullable<Of[Member]>>>>
    : Member extends OfTheRoot
      ? { readonly [Each in Exclude<keyof NonNullable<Of[Member]>, Unasked>]: Asked }
      : MethodsOf<NonNullable<Of[Member]>>;
};

type AnyMethod = (...args: never[]) => Promise<unknown>;
type Asked = Pick<Method, 'name' | 'reads'>;
type Requests<Of extends AnyMethod> = Parameters<Of> extends [infer Request, Call] ? Request : 'none';
type Carrying<Request, Answer> = At<'request', Request> &
  At<'answer', Answer> &
  (Request extends object
    ? [keyof Request & ('within' | 'ref' | 'scope')] extends [never]
      ? unknown
      : { readonly nothing: Answer }
    : unknown);
type At<Place extends string, Value> =
  'plain' extends KindOf<Value>
    ? { readonly [At in Place]?: KindOf<Value> }
    : { readonly [At in Place]: KindOf<Value> };

/** What a value may be declared as: `plain` only if nothing in it is known to be an id, a scope or a memory. */
type KindOf<Value> = KindOfOne<Each<Bare<Value>>>;
type KindOfOne<Value> = [Value] extends [Memory]
  ? 'memory'
  : [Value] extends [NewMemory]
    ? 'input'
    : [Value, MemoryPatch] extends [MemoryPatch, Value]
      ? 'patch'
      : [Value] extends [Whole]
        ? 'plain'
        : [Value] extends [object]
          ? FieldsOf<Value> | (true extends Names<Value> ? never : 'plain')
          : 'plain' | 'id' | 'scope';
type FieldsOf<Value> = {
  readonly [Field in keyof Value]-?: Field extends 'within' | 'outside'
    ? Field
    : Field extends 'scope'
      ? 'scope' | 'globs' | 'prefix'
      : Field extends 'id' | 'ids'
        ? 'id'
        : KindOf<Value[Field]>;
};
/** Whether a value has a field that is an id or a scope by its name, at any depth. */
type Names<Value> = Value extends Whole
  ? false
  : Value extends object
    ? [keyof Value & ('id' | 'ids' | 'scope' | 'within' | 'outside')] extends [never]
      ? { [Field in keyof Value]-?: Names<Each<Bare<Value[Field]>>> }[keyof Value]
      : true
    : false;
type Whole = ArrayBufferView | ((...args: never[]) => unknown);
type Bare<Value> = Exclude<Value, undefined | null | OmpError>;
type Each<Value> = Value extends readonly (infer Item)[] ? Bare<Item> : Value;

const VISIBLE = { within: 'within', outside: 'outside' } as const;
const REF = { id: 'id', users: 'plain', versions: 'plain', ...VISIBLE } as const;
/** What lists and searches filter by, besides the scope. */
const FILTERS = { user_id: 'plain', tags: 'plain', written: 'plain', since: 'plain', until: 'plain' } as const;
const SIZE = { limit: 'plain', max_bytes: 'plain' } as const;
const IDENTITY = { id: 'id', created_at: 'plain', embedding_model: 'plain', status: 'plain' } as const;
const KEY_USE = { fingerprint: 'plain', added: IDENTITY } as const;
const KEY_CLAIM = {
  caller: 'plain',
  kind: 'plain',
  key: 'plain',
  fingerprint: 'plain',
  before: KEY_USE,
  places: 'plain',
  size: 'plain',
} as const;
const VERSION = { version: 'plain', memory: 'memory' } as const;
const EXPORTED = { ...VERSION, vector: 'plain', versions: VERSION, versions_left_out: 'plain' } as const;

const reads = (name: string) => ({ name, reads: true }) as const;
const writes = (name: string) => ({ name, reads: false }) as const;

export const METHODS = {
  add: {
    ...writes('add'),
    request: { input: 'input', vector: 'plain', key: KEY_CLAIM, limits: 'plain' },
    answer: 'memory',
  },
  batch: {
    ...writes('batch'),
    request: { items: { input: 'input', vector: 'plain' }, key: KEY_CLAIM, limits: 'plain' },
    answer: 'memory',
  },
  keyUse: { ...reads('key_use'), answer: KEY_USE },
  get: { ...reads('get'), request: REF, answer: 'memory', nothing: undefined },
  update: {
    ...writes('update'),
    request: { ref: REF, patch: 'patch', vector: 'plain', current: 'memory', limits: 'plain' },
    answer: 'memory',
    nothing: undefined,
  },
  delete: { ...writes('delete'), request: REF, nothing: false },
  list: {
    ...reads('list'),
    request: { ...FILTERS, ...SIZE, ...VISIBLE, scope: 'globs', after: { id: 'id', created_at: 'plain' } },
    answer: 'memory',
    nothing: [],
  },
  search: {
    ...reads('search'),
    request: {
      ...FILTERS,
      ...SIZE,
      ...VISIBLE,
      ...{ scope: 'prefix', text: 'plain', vector: 'plain', max_content_bytes: 'plain', explain: 'plain' },
    },
    answer: { memory: 'memory', score: 'plain', parts: 'plain' },
    nothing: [],
  },
  neighbours: {
    ...reads('neighbours'),
    request: {
      ...VISIBLE,
      ...{ ids: 'id', user_id: 'plain', written: 'plain', max_content_bytes: 'plain', max_bytes: 'plain' },
    },
    answer: 'memory',
    nothing: [],
  },
  users: {
    ...reads('users'),
    request: { ...VISIBLE, users: 'plain', prefix: 'plain', after: 'plain', limit: 'plain' },
    nothing: { items: [], next: undefined },
  },
  userStats: {
    ...reads('stats'),
    request: { ...VISIBLE, user_id: 'plain', limit: 'plain' },
    answer: {
      scopes: { scope: 'scope', count: 'plain' },
      ...{ count: 'plain', oldest: 'plain', newest: 'plain', last_write: 'plain', tags: 'plain', created: 'plain' },
    },
    nothing: NO_STATS,
  },
  userUsage: reads('user_usage'),
  erase: writes('erase'),
  holdings: reads('holdings'),
  export: {
    ...reads('export'),
    request: {
      ...SIZE,
      ...{ ids: 'id', after: 'plain', user_id: 'plain', since: 'plain', vectors: 'plain', versions: 'plain' },
    },
    answer: { items: EXPORTED, next: 'plain' },
  },
  import: { ...writes('import'), request: { items: EXPORTED, replace: 'plain' } },
  changes: reads('changes'),
  changesHeld: reads('changes_held'),
  ping: reads('ping'),
  backlog: reads('backlog'),
  audit: { record: writes('audit_record'), read: reads('audit') },
  versions: {
    list: {
      ...reads('versions'),
      request: { ...SIZE, ref: REF, before: 'plain' },
      answer: { current: 'memory', version: 'plain', versions: VERSION },
      nothing: undefined,
    },
    purge: { ...writes('versions_purge'), request: REF, nothing: undefined },
    writtenIn: {
      ...reads('versions_written'),
      request: { user_id: 'plain', since: 'plain', key: 'plain', after: 'id', limit: 'plain' },
      answer: 'id',
    },
  },
  freezing: { current: reads('freeze_state'), freeze: writes('freeze'), unfreeze: writes('unfreeze') },
  keys: {
    find: reads('keys_find'),
    hasAny: reads('keys_any'),
    list: reads('keys_list'),
    create: writes('keys_create'),
    revoke: writes('keys_revoke'),
    touch: writes('keys_touch'),
  },
  webhooks: {
    list: reads('webhooks_list'),
    find: reads('webhooks_find'),
    create: writes('webhooks_create'),
    change: writes('webhooks_change'),
    delete: writes('webhooks_delete'),
    claim: writes('webhooks_claim'),
    save: writes('webhooks_save'),
    release: writes('webhooks_release'),
  },
  embeddingUsage: { add: writes('embedding_usage_add'), read: reads('embedding_usage') },
} as const satisfies MethodsOf<Provider>;

/**
 * Members that come together: each facet is there whole, or not at all. A member that stands here alone builds on others; what is not here
 * is a facet by itself. `ingestion` and `backlog`: the queue. `audit` and `changes`: the log, in which `changesHeld` and `webhooks` are at
 * home. A member with methods of its own, such as `versions`, has all of them.
 */
export const FACETS = {
  batch: ['add'],
  keyUse: ['batch'],
  holdings: ['erase'],
  audit: ['changes'],
  changes: ['audit'],
  changesHeld: ['changes'],
  webhooks: ['changes'],
  ingestion: ['backlog'],
  backlog: ['ingestion'],
} as const satisfies { readonly [Member in keyof Provider]?: readonly (keyof Provider)[] };

/** The methods whose answer depends on the scopes that a query may see. */
export type Restricted<Table> = {
  [Member in keyof Table]: Table[Member] extends { readonly nothing: unknown }
    ? Member
    : Table[Member] extends Method
      ? never
      : [Restricted<Table[Member]>] extends [never]
        ? never
        : Member;
}[keyof Table];
