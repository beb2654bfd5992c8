import { Worker } from 'node:worker_threads';
import { connectRaw, request } from './raw-http.ts';

/**
 * Whether the event loop is held, measured in work and not in time: a thread beside it does one equal piece of work after
 * the other, and whatever slows the machine down slows both.
 */
export interface Ticker {
  /** Pieces of work done since it was started. */
  count(): number;
  close(): Promise<void>;
}

const TICKING = `
  const { createHash } = require('node:crypto');
  const { workerData } = require('node:worker_threads');
  const block = Buffer.alloc(16_384);
  for (;;) {
    for (let i = 0; i < 16; i++) createHash('sha256').update(block).digest();
    Atomics.add(workerData, 0, 1);
  }`;

export function startTicker(): Ticker {
  const ticks = new Int32Array(new SharedArrayBuffer(4));
  const worker = new Worker(TICKING, { eval: true, workerData: ticks, execArgv: [] });
  return { count: () => Atomics.load(ticks, 0), close: async () => void (await worker.terminate()) };
}

/** The processor time that the work takes in this process, in microseconds. Other processes do not change it. */
export async function costOf(work: () => unknown): Promise<number> {
  const before = process.cpuUsage();
  await work();
  const { user, system } = process.cpuUsage(before);
  return user + system;
}

/** Enough to tell a loop that was held from one that was not; about a tenth of a second. */
const LEAST_TICKS = 300;

/** How often a probe is answered for each tick, while the work lasts and a little longer. */
async function probesPerTick(port: number, ticker: Ticker, work: () => Promise<unknown>): Promise<number> {
  const probe = connectRaw(port);
  try {
    const ask = () => {
      probe.write(request('GET', '/livez'));
      return probe.next();
    };
    await ask();
    const before = ticker.count();
    let answered = 0;
    let working = true;
    const done = work().finally(() => {
      working = false;
    });
    while (working || ticker.count() - before < LEAST_TICKS) {
      await ask();
      answered += 1;
    }
    await done;
    return answered / (ticker.count() - before);
  } finally {
    probe.destroy();
  }
}

/** A held loop answers next to no probe; one that is not, about as many as with a harmless text. */
const LEAST_SHARE = 1 / 20;
const ATTEMPTS = 5;

/** What harmless texts of a kind did, to compare with. */
const usualOf = new Map<string, number>();

/**
 * How the best of a few attempts compares: 1 is as good as the harmless text. Places of the same kind share their
 * harmless text, until an attempt fails.
 */
export async function shareOfProbes(
  port: number,
  ticker: Ticker,
  { kind, hostile, harmless }: { kind: string; hostile: () => Promise<unknown>; harmless: () => Promise<unknown> },
): Promise<number> {
  let best = 0;
  for (let attempt = 0; attempt < ATTEMPTS && best < LEAST_SHARE; attempt++) {
    const usual = (attempt === 0 && usualOf.get(kind)) || (await probesPerTick(port, ticker, harmless));
    usualOf.set(kind, usual);
    best = Math.max(best, (await probesPerTick(port, ticker, hostile)) / usual);
  }
  return best;
}

export { LEAST_SHARE };
