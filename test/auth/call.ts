import { expect, onTestFinished, vi } from 'vitest';
import { Call, OmpError } from '#contract';

export const call: Call = new Call('test');

/** Advances the monotonic clock until the test ends. */
export function advance(milliseconds: number): void {
  const now = performance.now.bind(performance);
  const spy = vi.spyOn(performance, 'now').mockImplementation(() => now() + milliseconds);
  onTestFinished(() => spy.mockRestore());
}

/** The message for every invalid credential. */
const MESSAGE = 'the API key or token is not valid';

/** The error of the promise, which must be an `OmpError`; undefined if it resolves. */
export const rejection = (promise: Promise<unknown>): Promise<OmpError | undefined> =>
  promise.then(
    () => undefined,
    (error: unknown) => {
      expect(error).toBeInstanceOf(OmpError);
      return error as OmpError;
    },
  );

export const expectInvalid = async (promise: Promise<unknown>): Promise<OmpError> => {
  const error = await rejection(promise);
  expect(error).toMatchObject({ code: 'unauthorized', message: MESSAGE });
  return error as OmpError;
};
