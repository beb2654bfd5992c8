import type { Call } from '#contract';
import { toOmpError } from './errors.ts';
import { type Answer, answerTo, withDeadline } from './exchange.ts';
import { Failure } from './failure.ts';
import { repeating } from './retry.ts';
import type { Turns } from './turns.ts';

/** One request, as often as it takes. */
export interface Request<Result> {
  /** Has the SDK send it. */
  readonly send: () => Promise<unknown>;
  /** Whatever this throws means that the answer is not what the interface promises. */
  readonly read: (answer: Answer) => Result;
  /** Harmless when carried out twice, also late. */
  readonly repeatable: boolean;
  /** What a failure means instead, or throws it. */
  readonly otherwise?: (failure: Failure) => Result;
}

/** Rejects with an `OmpError`, or with the reason of the call's signal. */
export type Ask = <Result>(request: Request<Result>, call: Call) => Promise<Result>;

/** Each attempt waits for its turn, and only then for so many milliseconds for its answer. */
export function createAsk(timeout_ms: number, turns: Turns): Ask {
  return async ({ send, read, repeatable, otherwise }, call) => {
    const { signal } = call;
    const exchanged = async (limited: AbortSignal) =>
      reading(read, await answerTo(send, { signal: limited, headers: call.trace?.headers() }));
    const attempt = () => turns.take(signal, () => withDeadline(timeout_ms, signal, exchanged));
    try {
      return await repeating(attempt, { repeatable, signal }).catch((error) => {
        if (error instanceof Failure && otherwise) return otherwise(error);
        throw error;
      });
    } catch (error) {
      signal.throwIfAborted();
      throw toOmpError(error);
    }
  };
}

function reading<Result>(read: (answer: Answer) => Result, answer: Answer): Result {
  try {
    return read(answer);
  } catch {
    throw new Failure('unreadable', 'the answer is not what the interface promises');
  }
}
