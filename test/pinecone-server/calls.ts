import type { OperationName } from './operations.ts';

/** A request as it was recorded. */
export interface Call {
  readonly operation: OperationName;
  readonly method: string;
  /** With its query string. */
  readonly path: string;
  /** Of the answer; 0: none (yet). */
  status: number;
  /** Of the trace it is part of, where it is one's. */
  readonly traceparent?: string;
  /** The JSON body, where there was one. */
  readonly body?: unknown;
}

const MOST = 50_000;

/** What was asked and what was wrong about it. */
export interface Records {
  record(call: Call): Call;
  /** In order of arrival. Throws when there were too many to keep them all. */
  calls(): readonly Call[];
  resetCalls(): void;
  readonly violations: string[];
}

export function createRecords(): Records {
  let calls: Call[] = [];
  let dropped = false;
  return {
    violations: [],
    record: (call) => {
      if (calls.length >= MOST) {
        calls = [];
        dropped = true;
      }
      calls.push(call);
      return call;
    },
    calls: () => {
      if (dropped) throw new Error(`more than ${MOST} calls since the last reset`);
      return calls;
    },
    resetCalls: () => {
      calls = [];
      dropped = false;
    },
  };
}
