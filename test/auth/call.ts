import { expect } from 'vitest';
import { type Call, GATEWAY, OmpError } from '#contract';

export const call: Call = { signal: new AbortController().signal, requestId: 'test', caller: GATEWAY };

/** What a refused credential is told, whatever is wrong with it. */
export const REFUSED = 'the API key or token is not valid';

/** What the promise rejects with, which must be an error for clients; undefined when it resolves. */
export const rejection = (promise: Promise<unknown>): Promise<OmpError | undefined> =>
  promise.then(
    () => undefined,
    (error: unknown) => {
      expect(error).toBeInstanceOf(OmpError);
      return error as OmpError;
    },
  );

export const expectRefused = async (promise: Promise<unknown>): Promise<OmpError> => {
  const error = await rejection(promise);
  expect(error).toMatchObject({ code: 'unauthorized', message: REFUSED });
  return error as OmpError;
};
