import {
  type AuditLog,
  type Call,
  ERROR_TYPES,
  type Freezing,
  type KeyStore,
  OmpError,
  type Provider,
  providerError,
  type UsageStore,
  type VersionStore,
  type WebhookStore,
} from '#contract';
import { naming, type Protection, UNPROTECTED } from './telemetry.ts';

/** How a method is called in metrics and traces, and whether it only reads. */
interface Method {
  readonly name: string;
  readonly reads: boolean;
}

const reading = (name: string): Method => ({ name, reads: true });
const writing = (name: string): Method => ({ name, reads: false });

/** Every method that asks the backend: a new one does not compile until it is listed. */
type Methods<Of, Others extends keyof Of> = { readonly [Name in Exclude<keyof Required<Of>, Others>]: Method };

/** `check` does not ask the backend; the ingestion queue has deadlines of its own and retries by itself. */
type NoMethods =
  | 'name'
  | 'capabilities'
  | 'read_only'
  | 'check'
  | 'audit'
  | 'versions'
  | 'freezing'
  | 'keys'
  | 'webhooks'
  | 'embeddingUsage'
  | 'stats'
  | 'ingestion'
  | 'close';

const METHODS: Methods<Provider, NoMethods> = {
  add: writing('add'),
  batch: writing('batch'),
  keyUse: reading('key_use'),
  get: reading('get'),
  update: writing('update'),
  delete: writing('delete'),
  list: reading('list'),
  search: reading('search'),
  neighbours: reading('neighbours'),
  users: reading('users'),
  userStats: reading('stats'),
  userUsage: reading('user_usage'),
  erase: writing('erase'),
  holdings: reading('holdings'),
  export: reading('export'),
  import: writing('import'),
  changes: reading('changes'),
  changesHeld: reading('changes_held'),
  ping: reading('ping'),
  backlog: reading('backlog'),
};

const AUDIT_METHODS: Methods<AuditLog, never> = { record: writing('audit_record'), read: reading('audit') };

const FREEZE_METHODS: Methods<Freezing, never> = {
  current: reading('freeze_state'),
  freeze: writing('freeze'),
  unfreeze: writing('unfreeze'),
};

const VERSION_METHODS: Methods<VersionStore, never> = {
  list: reading('versions'),
  purge: writing('versions_purge'),
  writtenIn: reading('versions_written'),
};

const KEY_METHODS: Methods<KeyStore, 'close'> = {
  find: reading('keys_find'),
  hasAny: reading('keys_any'),
  list: reading('keys_list'),
  create: writing('keys_create'),
  revoke: writing('keys_revoke'),
  touch: writing('keys_touch'),
};

const WEBHOOK_METHODS: Methods<WebhookStore, never> = {
  list: reading('webhooks_list'),
  find: reading('webhooks_find'),
  create: writing('webhooks_create'),
  change: writing('webhooks_change'),
  delete: writing('webhooks_delete'),
  claim: writing('webhooks_claim'),
  save: writing('webhooks_save'),
  release: writing('webhooks_release'),
};

const USAGE_METHODS: Methods<UsageStore, never> = {
  add: writing('embedding_usage_add'),
  read: reading('embedding_usage'),
};

/**
 * The outermost decorator that is still a `Provider`; `withEmbedder` goes around it. Every error becomes an `OmpError` that names the provider. An aborted call rejects
 * at once, even if the client of the backend ignores the signal. `protection` runs around every method: metrics, traces, retries,
 * circuit breaker. `dependency`: the name of the store there, and in errors.
 */
export function withGuard(
  inner: Provider,
  protection: Protection = UNPROTECTED,
  dependency: string = inner.name,
): Provider {
  const named = (error: unknown): unknown => naming(dependency, error, inner.name);
  /** A method takes a request, if any, and the call. */
  type AnyMethod = (first: unknown, call?: Call) => Promise<unknown>;
  const guard = (method: AnyMethod, facts: Method): AnyMethod => {
    const operation = { kind: 'backend', dependency, ...facts } as const;
    return async (first, second) => {
      const call = (second ?? first) as Call;
      try {
        return await protection.run(operation, call, (tracedCall) =>
          call.unlessAborted(second ? method(first, tracedCall) : method(tracedCall)),
        );
      } catch (error) {
        if (!(error instanceof OmpError) || !Object.hasOwn(ERROR_TYPES, error.code))
          throw providerError(dependency, 'the backend failed unexpectedly', error);
        throw named(error);
      }
    };
  };
  const guardAll = <Of extends object>(of: Of, methods: Readonly<Partial<Record<keyof Of, Method>>>): Of => {
    const guards = Object.entries(methods).flatMap(([name, facts]) => {
      const method = of[name as keyof Of] as AnyMethod | undefined;
      return method ? [[name, guard(method, facts as Method)]] : [];
    });
    return { ...of, ...Object.fromEntries(guards) };
  };
  return {
    ...guardAll(inner, METHODS),
    name: dependency,
    check(input, vector) {
      protection.requireClosed();
      try {
        inner.check?.(input, vector);
      } catch (error) {
        throw named(error);
      }
    },
    ...(inner.audit && { audit: guardAll(inner.audit, AUDIT_METHODS) }),
    ...(inner.versions && { versions: guardAll(inner.versions, VERSION_METHODS) }),
    ...(inner.freezing && { freezing: guardAll(inner.freezing, FREEZE_METHODS) }),
    ...(inner.keys && { keys: guardAll(inner.keys, KEY_METHODS) }),
    ...(inner.webhooks && { webhooks: guardAll(inner.webhooks, WEBHOOK_METHODS) }),
    ...(inner.embeddingUsage && { embeddingUsage: guardAll(inner.embeddingUsage, USAGE_METHODS) }),
  };
}
