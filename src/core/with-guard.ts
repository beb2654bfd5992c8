import { type AuditLog, type Call, type KeyStore, OmpError, type Provider, providerError } from '#contract';

type EveryVerb = { [Verb in keyof Required<Provider>]: Provider[Verb] };

/**
 * The outermost skin of a provider: whatever goes wrong inside leaves as an `OmpError` that says who failed, and a call
 * that is given up ends here, also where the backend's client cannot be aborted.
 */
export function withGuard(inner: Provider): Provider {
  const guard =
    <Argument, Result>(verb: (argument: Argument, call: Call) => Promise<Result>) =>
    (argument: Argument, call: Call) =>
      settle(inner.name, call, () => verb(argument, call));
  /** A verb that needs nothing but the call. */
  const bare =
    <Result>(verb: (call: Call) => Promise<Result>) =>
    (call: Call) =>
      settle(inner.name, call, () => verb(call));
  const { addOnce, update, audit, keys } = inner;
  const guarded: EveryVerb = {
    name: inner.name,
    capabilities: inner.capabilities,
    add: inner.add && guard(inner.add),
    addOnce: addOnce && ((input, once, call) => settle(inner.name, call, () => addOnce(input, once, call))),
    get: guard(inner.get),
    update: update && ((ref, patch, call) => settle(inner.name, call, () => update(ref, patch, call))),
    delete: inner.delete && guard(inner.delete),
    list: inner.list && guard(inner.list),
    search: inner.search && guard(inner.search),
    audit: audit && ({ record: guard(audit.record), read: guard(audit.read) } satisfies AuditLog),
    keys:
      keys &&
      ({
        find: guard(keys.find),
        hasAny: bare(keys.hasAny),
        list: bare(keys.list),
        create: guard(keys.create),
        revoke: guard(keys.revoke),
        touch: (ids, time, call) => settle(inner.name, call, () => keys.touch(ids, time, call)),
        close: keys.close,
      } satisfies KeyStore),
    ping: bare(inner.ping),
    close: inner.close,
  };
  return guarded;
}

async function settle<Result>(provider: string, call: Call, run: () => Promise<Result>): Promise<Result> {
  try {
    return await (call.unlessAborted ? call.unlessAborted(run()) : run());
  } catch (error) {
    if (!(error instanceof OmpError)) throw providerError(provider, 'the backend failed unexpectedly', error);
    if (error.code !== 'provider_error' || error.provider !== undefined) throw error;
    throw providerError(provider, error.message, error);
  }
}
