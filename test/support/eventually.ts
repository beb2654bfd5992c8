import { vi } from 'vitest';
import { PATIENCE_MS } from './full.ts';

/** Tries again until it does not throw, and answers what it returns. Far longer than any machine takes: only what never comes fails. */
export const eventually = <Result>(look: () => Result | Promise<Result>): Promise<Result> =>
  vi.waitFor(look, { timeout: PATIENCE_MS, interval: 20 });
