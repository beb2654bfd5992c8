import { type Call, OmpError, type Provider, providerError } from '#contract';

type EveryVerb = { [Verb in keyof Required<Provider>]: Provider[Verb] };

/**
 * The outermost skin of a provider: whatever goes wrong inside leaves as an `OmpError`, and no call outlives its
 * signal, even where the backend's client cannot be aborted.
 */
export function withGuard(inner: Provider): Provider {
  const guard =
    <Argument, Result>(verb: (argument: Argument, call: Call) => Promise<Result>) =>
    (argument: Argument, call: Call) =>
      settle(inner.name, () => verb(argument, call), call.signal);
  const { update } = inner;
  const guarded: EveryVerb = {
    name: inner.name,
    capabilities: inner.capabilities,
    add: guard(inner.add),
    get: guard(inner.get),
    update: update && ((ref, patch, call) => settle(inner.name, () => update(ref, patch, call), call.signal)),
    delete: inner.delete && guard(inner.delete),
    list: inner.list && guard(inner.list),
    search: inner.search && guard(inner.search),
    ping: (call) => settle(inner.name, () => inner.ping(call), call.signal),
    close: inner.close,
  };
  return guarded;
}

function settle<Result>(provider: string, run: () => Promise<Result>, signal: AbortSignal): Promise<Result> {
  return new Promise((resolve, reject) => {
    const fail = (error: unknown) => {
      signal.removeEventListener('abort', onAbort);
      reject(attribute(error, provider));
    };
    const onAbort = () => fail(signal.reason);
    if (signal.aborted) return fail(signal.reason);
    signal.addEventListener('abort', onAbort);
    // Inside a promise, so that a verb that throws before it returns one is caught as well.
    new Promise<Result>((start) => start(run())).then((result) => {
      signal.removeEventListener('abort', onAbort);
      resolve(result);
    }, fail);
  });
}

/** Names the backend where the error does not say who failed: it was waited for when the deadline passed. */
function attribute(error: unknown, provider: string): OmpError {
  if (!(error instanceof OmpError)) return providerError(provider, 'the backend failed unexpectedly', error);
  if (error.code !== 'provider_error' || error.provider !== undefined) return error;
  return providerError(provider, error.message, error);
}
