import { setTimeout as sleep } from 'node:timers/promises';
import { onTestFinished } from 'vitest';
import type { Ledger, Outcome } from './ledger.ts';

const WRITES: ReadonlySet<string> = new Set(['add', 'update', 'delete']);

interface Count {
  requests: number;
  succeeded: number;
  /** Whatever did not succeed, and of these what the client did not give up by itself. */
  failed: number;
  refused: number;
  /** Adds that were acknowledged, and all writes that were. */
  added: number;
  written: number;
}

export interface Load {
  readonly count: Count;
  /** What failed, by the code of the error. */
  readonly codes: Readonly<Record<string, number>>;
  readonly lanes: number;
  /** Resolves after so many more; rejects as soon as an answer is wrong. */
  more(kind: keyof Count, n: number): Promise<void>;
  /** Lets the load go on for so long; rejects as soon as an answer is wrong. */
  during(ms: number): Promise<void>;
  /** Whatever is under way is finished; nothing new is begun. */
  pause(): Promise<void>;
  resume(): void;
  /** Compares all ledgers with the store. Resolves with the number of memories. Only while paused. */
  check(): Promise<number>;
}

/** Clients that go on until they are paused, each with its own ledger, and how they were answered. */
export function startLoad(ledgers: readonly Ledger[]): Load {
  const count: Count = { requests: 0, succeeded: 0, failed: 0, refused: 0, added: 0, written: 0 };
  const codes: Record<string, number> = {};
  const note = ({ verb, failed }: Outcome) => {
    count.requests++;
    if (failed !== undefined) {
      count.failed++;
      if (failed !== 'given up') count.refused++;
      codes[failed] = (codes[failed] ?? 0) + 1;
      return;
    }
    count.succeeded++;
    if (verb === 'add') count.added++;
    if (WRITES.has(verb)) count.written++;
  };
  let paused = false;
  const work = async (ledger: Ledger) => {
    while (!paused) {
      const outcome = await ledger.step();
      note(outcome);
      // Nobody hammers a server that is down.
      if (outcome.failed !== undefined) await sleep(20);
    }
  };
  let all = Promise.all([] as Promise<void>[]);
  const resume = () => {
    paused = false;
    all = Promise.all(ledgers.map(work));
    // Told where it is waited for.
    all.catch(() => {});
  };
  const pause = async () => {
    paused = true;
    await all;
  };
  resume();
  onTestFinished(() => {
    paused = true;
  });
  return {
    count,
    codes,
    lanes: ledgers.length,
    async more(kind, n) {
      const wanted = count[kind] + n;
      while (count[kind] < wanted) await Promise.race([all, sleep(2)]);
    },
    during: async (ms) => void (await Promise.race([all, sleep(ms)])),
    pause,
    resume,
    async check() {
      let kept = 0;
      for (const ledger of ledgers) kept += await ledger.check();
      return kept;
    },
  };
}
