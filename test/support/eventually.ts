import { vi } from 'vitest';

/** Tries again until it does not throw, and answers what it returns. Far longer than any machine takes: only what never comes fails. */
export const eventually = <Result>(look: () => Result | Promise<Result>): Promise<Result> =>
  vi.waitFor(look, { timeout: 300_000, interval: 20 });
