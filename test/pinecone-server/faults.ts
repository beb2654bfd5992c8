import { EventEmitter, once } from 'node:events';
import type { OperationName } from './operations.ts';
import { bodyOf, jsonReply, Refusal, type RefusalStatus, type Reply, textReply } from './replies.ts';

const STATUSES = ['400', '401', '403-text', '404', '429', '500', '503'] as const;
const OTHERS = ['hang', 'reset', 'reset-after', 'slow', 'garbage', 'empty'] as const;
const FAULT_KINDS = [...STATUSES, ...OTHERS] as const;

export interface Fault {
  /** Default: any. */
  readonly operation?: OperationName;
  /**
   * A number answers that status, with a body of the interface or, for 401 and 403-text, plain text; `hang` never answers;
   * `reset` closes the socket before acting and `reset-after` after it; `slow` acts once faults are cleared; `garbage` answers 200 with
   * text that is not JSON and `empty` with no body, both without acting.
   */
  readonly kind: (typeof FAULT_KINDS)[number];
  /** The header of that name, of answers in JSON. */
  readonly retryAfter?: string;
  /** How many requests it meets: default 1; 0: until cleared. */
  readonly times?: number;
}

export interface Faults {
  add(fault: Fault): void;
  clear(): void;
  /** The first fault that is meant for this operation, used up by one. */
  take(operation: OperationName): Fault | undefined;
  /** Resolves when the faults of now are cleared. */
  cleared(): Promise<unknown>;
}

export function createFaults(): Faults {
  let waiting: { readonly fault: Fault; left: number }[] = [];
  const events = new EventEmitter().setMaxListeners(0);
  return {
    add: (fault) => {
      const { times = 1 } = fault;
      waiting.push({ fault, left: times === 0 ? Number.POSITIVE_INFINITY : times });
    },
    clear: () => {
      waiting = [];
      events.emit('cleared');
    },
    cleared: () => once(events, 'cleared'),
    take: (operation) => {
      const found = waiting.find(({ fault }) => fault.operation === undefined || fault.operation === operation);
      if (!found) return undefined;
      found.left -= 1;
      waiting = waiting.filter(({ left }) => left > 0);
      return found.fault;
    },
  };
}

const MESSAGES: Readonly<Record<string, string>> = {
  '400': 'Bad request',
  '404': 'Not found',
  '429': "Request failed. You've reached the request limit",
  '500': 'Internal error',
  '503': 'Service unavailable',
};

/** What this fault makes of a request that `act` would answer. Undefined: its socket is to be reset. */
export async function suffer(
  { kind, retryAfter }: Fault,
  act: () => Reply,
  { gone, cleared }: { gone(): Promise<unknown>; cleared(): Promise<unknown> },
): Promise<Reply | undefined> {
  switch (kind) {
    case 'hang':
      await gone();
      return undefined;
    case 'reset':
      return undefined;
    case 'reset-after':
      act();
      return undefined;
    case 'slow':
      await cleared();
      return act();
    case 'garbage':
      return textReply(200, '<html>not JSON</html>');
    case 'empty':
      return textReply(200, '');
    case '401':
      return textReply(401, 'Invalid API Key');
    case '403-text':
      return textReply(403, 'Forbidden');
    default: {
      const refusal = new Refusal(Number(kind) as RefusalStatus, MESSAGES[kind] as string);
      return jsonReply(refusal.status, bodyOf(refusal), retryAfter === undefined ? {} : { 'retry-after': retryAfter });
    }
  }
}
