import { type Call, OmpError, type Provider, providerError } from '#contract';

type EveryVerb = { [Verb in keyof Required<Provider>]: Provider[Verb] };

/** The outermost skin of a provider: whatever goes wrong inside leaves as an `OmpError` that says who failed. */
export function withGuard(inner: Provider): Provider {
  const guard =
    <Argument, Result>(verb: (argument: Argument, call: Call) => Promise<Result>) =>
    (argument: Argument, call: Call) =>
      settle(inner.name, () => verb(argument, call));
  const { update } = inner;
  const guarded: EveryVerb = {
    name: inner.name,
    capabilities: inner.capabilities,
    add: guard(inner.add),
    get: guard(inner.get),
    update: update && ((ref, patch, call) => settle(inner.name, () => update(ref, patch, call))),
    delete: inner.delete && guard(inner.delete),
    list: inner.list && guard(inner.list),
    search: inner.search && guard(inner.search),
    ping: (call) => settle(inner.name, () => inner.ping(call)),
    close: inner.close,
  };
  return guarded;
}

async function settle<Result>(provider: string, run: () => Promise<Result>): Promise<Result> {
  try {
    return await run();
  } catch (error) {
    if (!(error instanceof OmpError)) throw providerError(provider, 'the backend failed unexpectedly', error);
    if (error.code !== 'provider_error' || error.provider !== undefined) throw error;
    throw providerError(provider, error.message, error);
  }
}
