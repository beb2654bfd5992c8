import { randomUUID } from 'node:crypto';
import { type Backlog, type Call, GATEWAY, type IngestionQueue, type QueuedMemory } from '#contract';
import type { Run } from '../client/connections.ts';
import type { Names } from '../tables/names.ts';
import {
  claimText,
  clearFailedText,
  countText,
  giveBackText,
  judgeText,
  PLANNED_ANEW,
  renewText,
  writeText,
} from './statements.ts';

/** Statements that are never given up half way: what they changed has to be known. The connections bound their time. */
const CALL: Call = { signal: new AbortController().signal, requestId: 'ingestion', caller: GATEWAY };

export interface Ways {
  readonly run: Run;
  /** The same in a transaction with settings of its own. */
  readonly runWith: (settings: string, ...asked: Parameters<Run>) => ReturnType<Run>;
}

const LEASE_SECONDS = 20;

/** `lease`: seconds that a claim holds unless it is renewed, which happens in the background. */
export function createQueue(
  names: Names,
  { run, runWith }: Ways,
  lease = LEASE_SECONDS,
): Omit<IngestionQueue, 'deferred'> {
  const send = (text: string, ...values: unknown[]) => run(text, values, CALL);
  return {
    async claim() {
      const token = randomUUID();
      const claimed = await runWith(PLANNED_ANEW, claimText(names), [token, lease], CALL);
      // Those without a content have their vector already.
      const rows = claimed.filter(({ content }) => content !== null) as unknown as QueuedMemory[];
      // Whoever takes it over when this fails for long embeds it a second time, no more.
      const renew = () => void send(renewText(names), token, lease).catch(() => {});
      const renewal = claimed.length > 0 ? setInterval(renew, lease * 250).unref() : undefined;
      return {
        taken: claimed.length,
        rows,
        async settle(embedded, failed) {
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
          if (failed.length === 0) return [];
          const columns = (['id', 'reason', 'pause'] as const).map((column) => failed.map((each) => each[column]));
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

export async function backlogOf(names: Names, run: Run, call: Call): Promise<Backlog> {
  const rows = await run(countText(names), [], call);
  const counts = Object.fromEntries(rows.map((row) => [row.status, row.memories]));
  return { queued: 0, indexing: 0, failed: 0, ...counts };
}
