import { type Call, ERROR_TYPES, METHODS, type Method, OmpError, type Provider, providerError } from '#contract';
import { naming, type Protection, UNPROTECTED } from './telemetry.ts';
import { type AnyMethod, eachMethod } from './translate.ts';

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
  const guard = (method: AnyMethod, { name, reads }: Method): AnyMethod => {
    const operation = { kind: 'backend', dependency, name, reads } as const;
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
  return {
    ...eachMethod(inner, METHODS, guard),
    name: dependency,
    check(input, vector) {
      protection.requireClosed();
      try {
        inner.check?.(input, vector);
      } catch (error) {
        throw named(error);
      }
    },
  };
}
