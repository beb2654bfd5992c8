import { randomUUID } from 'node:crypto';
import { type Call, GATEWAY } from '#contract';
import type { Run } from '../client/connections.ts';
import type { Names } from '../tables/names.ts';
import {
  claimText,
  clearFailedText,
  giveBackText,
  judgeText,
  PLANNED_ANEW,
  renewText,
  writeText,
} from './statements.ts';

export interface Waiting {
  readonly id: string;
  readonly content: string;
  /** How often it failed for its own sake. */
  readonly attempts: number;
}

export interface Embedded {
  readonly row: Waiting;
  readonly vector: Float32Array;
}

/** Could not be embedded for its own sake. */
export interface Judged {
  readonly id: string;
  /** Public text. */
  readonly reason: string;
  /** Seconds until it is tried again; null: never. */
  readonly pause: number | null;
}

/** Rows that are ours until the lease ends, unless somebody changes their contents. */
export interface Claim {
  /** Also of those that turned out to have their vectors. */
  readonly taken: number;
  readonly rows: readonly Waiting[];
  /** Returns what failed in the end. */
  settle(embedded: readonly Embedded[], judged: readonly Judged[]): Promise<readonly { id: string; error: string }[]>;
  /** Has to be called in the end if anything was taken: what was not settled is for whoever comes next. */
  end(): Promise<void>;
}

export interface Queue {
  claim(): Promise<Claim>;
  clearFailed(): Promise<void>;
}

/** Statements that are never given up half way: what they changed has to be known. The connections bound their time. */
const CALL: Call = { signal: new AbortController().signal, requestId: 'ingestion', caller: GATEWAY };

export interface Ways {
  readonly run: Run;
  /** The same in a transaction with settings of its own. */
  readonly runWith: (settings: string, ...asked: Parameters<Run>) => ReturnType<Run>;
}

/** `lease`: seconds that a claim holds unless it is renewed, which happens in the background. */
export function createQueue(names: Names, { run, runWith }: Ways, lease: number): Queue {
  const send = (text: string, ...values: unknown[]) => run(text, values, CALL);
  return {
    async claim() {
      const token = randomUUID();
      const claimed = await runWith(PLANNED_ANEW, claimText(names), [token, lease], CALL);
      // Those without a content have their vector already.
      const rows = claimed.filter(({ content }) => content !== null) as unknown as Waiting[];
      // Whoever takes it over when this fails for long embeds it a second time, no more.
      const renew = () => void send(renewText(names), token, lease).catch(() => {});
      const renewal = claimed.length > 0 ? setInterval(renew, lease * 250).unref() : undefined;
      return {
        taken: claimed.length,
        rows,
        async settle(embedded, judged) {
          // In one order everywhere, so that two that share rows after a lease ended do not wait for each other.
          const sorted = embedded.toSorted((a, b) => (a.row.id < b.row.id ? -1 : 1));
          await send(
            writeText(names),
            token,
            sorted.map(({ row }) => row.id),
            sorted.map(({ row }) => row.content),
            // Halves are told exactly by their decimal form.
            sorted.map(({ vector }) => `[${vector.join(',')}]`),
          );
          if (judged.length === 0) return [];
          const columns = (['id', 'reason', 'pause'] as const).map((column) => judged.map((each) => each[column]));
          return (await send(judgeText(names), token, ...columns)) as { id: string; error: string }[];
        },
        async end() {
          clearInterval(renewal);
          await send(giveBackText(names), token);
        },
      };
    },
    clearFailed: async () => void (await send(clearFailedText(names))),
  };
}
