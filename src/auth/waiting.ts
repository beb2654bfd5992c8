import { type Call, GATEWAY } from '#contract';

/** What is looked up for everybody must not end because the first who asked goes away. */
export const ownCall = (requestId: string): Call => ({
  signal: AbortSignal.timeout(10_000),
  requestId,
  caller: GATEWAY,
});

/** Waits for shared work as long as this caller's request lasts. */
export const waitFor = <Result>(work: Promise<Result>, call: Call): Promise<Result> =>
  call.unlessAborted ? call.unlessAborted(work) : work;
