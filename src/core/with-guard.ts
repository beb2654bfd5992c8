import {
  type AuditLog,
  type Call,
  type EveryVerb,
  type IdempotentAdd,
  type KeyStore,
  OmpError,
  type Provider,
  providerError,
} from '#contract';
import { type Instrument, naming, type Operation, uninstrumented } from './telemetry.ts';

/**
 * The outermost decorator of a provider. Every error becomes an `OmpError` that names the provider. An aborted call rejects
 * at once, even if the client of the backend ignores the signal. `instrument` runs around every verb.
 */
export function withGuard(inner: Provider, instrument: Instrument = uninstrumented): Provider {
  const guard = (name: string, reads: boolean) => {
    const operation: Operation = { kind: 'backend', dependency: inner.name, name, reads };
    return <Result>(call: Call, work: (call: Call) => Promise<Result>): Promise<Result> =>
      settle(inner.name, () =>
        instrument(operation, call, (traced) => (call.unlessAborted ? call.unlessAborted(work(traced)) : work(traced))),
      );
  };
  const one =
    (reads: boolean) =>
    <Argument, Result>(name: string, verb: (argument: Argument, call: Call) => Promise<Result>) => {
      const run = guard(name, reads);
      return (argument: Argument, call: Call) => run(call, (traced) => verb(argument, traced));
    };
  const [reading, writing] = [one(true), one(false)];
  /** A read without arguments. */
  const readingAll = <Result>(name: string, verb: (call: Call) => Promise<Result>) => {
    const run = guard(name, true);
    return (call: Call) => run(call, verb);
  };
  const [adding, updating, restoring] = [guard('add', false), guard('update', false), guard('restore', false)];
  const touching = guard('keys_touch', false);
  const { add, idempotency, update, restore, audit, keys, backlog } = inner;
  const guarded: EveryVerb = {
    name: inner.name,
    capabilities: inner.capabilities,
    read_only: inner.read_only,
    check(given, vector) {
      instrument.requireClosed?.();
      inner.check?.(given, vector);
    },
    add: add && ((input, vector, call) => adding(call, (traced) => add(input, vector, traced))),
    batch: inner.batch && writing('batch', inner.batch),
    idempotency:
      idempotency &&
      ({
        // Not a read: it writes audit entries.
        firstAnswers: writing('first_answer', idempotency.firstAnswers),
        add: (input, vector, key, call) => adding(call, (traced) => idempotency.add(input, vector, key, traced)),
      } satisfies IdempotentAdd),
    get: reading('get', inner.get),
    update: update && ((ref, patch, vector, call) => updating(call, (traced) => update(ref, patch, vector, traced))),
    delete: inner.delete && writing('delete', inner.delete),
    list: inner.list && reading('list', inner.list),
    search: inner.search && reading('search', inner.search),
    vectorsOf: inner.vectorsOf && reading('vectors', inner.vectorsOf),
    users: inner.users && reading('users', inner.users),
    userStats: inner.userStats && reading('stats', inner.userStats),
    erase: inner.erase && writing('erase', inner.erase),
    scan: inner.scan && reading('scan', inner.scan),
    restore: restore && ((items, replace, call) => restoring(call, (traced) => restore(items, replace, traced))),
    audit:
      audit &&
      ({ record: writing('audit_record', audit.record), read: reading('audit', audit.read) } satisfies AuditLog),
    keys:
      keys &&
      ({
        find: reading('keys_find', keys.find),
        hasAny: readingAll('keys_any', keys.hasAny),
        list: reading('keys_list', keys.list),
        create: writing('keys_create', keys.create),
        revoke: writing('keys_revoke', keys.revoke),
        touch: (ids, time, call) => touching(call, (traced) => keys.touch(ids, time, traced)),
        close: keys.close,
      } satisfies KeyStore),
    ping: readingAll('ping', inner.ping),
    stats: inner.stats,
    // The provider has its own deadlines, and the ingestion retries.
    ingestion: inner.ingestion,
    backlog: backlog && readingAll('backlog', backlog),
    close: inner.close,
  };
  return guarded;
}

async function settle<Result>(provider: string, run: () => Promise<Result>): Promise<Result> {
  try {
    return await run();
  } catch (error) {
    if (!(error instanceof OmpError)) throw providerError(provider, 'the backend failed unexpectedly', error);
    throw naming(provider, error);
  }
}
