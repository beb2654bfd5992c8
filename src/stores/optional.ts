import { type Call, OmpError, providerError } from '#contract';
import { callOf, type Part } from './parts.ts';

/*
 * Asks several stores at once. An optional one that fails or does not answer in time is left out, and the answer names it (Decision 49).
 */

/** What one of several stores answered. */
export interface PartResult<Asked extends Part, Result> {
  readonly part: Asked;
  readonly result: Result;
}

/** Asks all parts at once. Leaves out optional stores that fail or are slow, and has the answer name them. */
export async function askAll<Asked extends Part, Result>(
  parts: readonly Asked[],
  call: Call,
  work: (part: Asked, call: Call) => Promise<Result>,
): Promise<PartResult<Asked, Result>[]> {
  const results = await Promise.all(parts.map((part) => ask(part, call, work)));
  return results.filter((one) => one !== undefined);
}

/** Asks one of the stores that make up an answer; undefined: it is optional, and the answer names it as left out. */
export async function ask<Asked extends Part, Result>(
  part: Asked,
  call: Call,
  work: (part: Asked, call: Call) => Promise<Result>,
): Promise<PartResult<Asked, Result> | undefined> {
  const asked = (own: Call) => asStoreErrors(part, () => work(part, own));
  if (part.required) return { part, result: await asked(callOf(part, call)) };
  try {
    return { part, result: await inShare(part.name, callOf(part, call), asked) };
  } catch (error) {
    if (call.aborted || !isOutage(error)) throw error;
    call.leaveOut('x-partial', part.name, error);
    return undefined;
  }
}

/** A store whose answer cannot be understood has failed. */
async function asStoreErrors<Result>({ name }: Part, work: () => Promise<Result>): Promise<Result> {
  try {
    return await work();
  } catch (error) {
    if (error instanceof OmpError) throw error;
    throw providerError(name, 'the store answered something invalid', error);
  }
}

export const isOutage = (error: unknown): error is OmpError =>
  error instanceof OmpError && (error.code === 'provider_error' || error.code === 'rate_limited');

/** How much of a request's remaining time an optional store may take: the same for each, since they are asked at once. */
const SHARE = 0.5;

/** Runs the work with a deadline before that of the request, so that the others can still answer. */
async function inShare<Result>(name: string, call: Call, work: (call: Call) => Promise<Result>): Promise<Result> {
  if (call.deadline === undefined) return work(call);
  return inTime(name, SHARE * (call.deadline - performance.now()), call, work);
}

/** Runs the work with a deadline of its own, after so many milliseconds; undefined: none. */
export async function inTime<Result>(
  name: string,
  ms: number | undefined,
  call: Call,
  work: (call: Call) => Promise<Result>,
): Promise<Result> {
  const own = call.with({ abortedBy: 'itself' });
  const timer = ms === undefined ? undefined : setTimeout(() => own.abort(tooSlow(name)), ms);
  const stop = call.onAbort(() => own.abort(call.signal.reason));
  try {
    return await own.unlessAborted(work(own));
  } finally {
    clearTimeout(timer);
    stop();
  }
}

const tooSlow = (provider: string) =>
  new OmpError('provider_error', `the store ${provider} took longer than its share of the request's time`, {
    provider,
    down: 'suspected',
  });
