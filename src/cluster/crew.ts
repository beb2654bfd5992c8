import { setTimeout as sleep } from 'node:timers/promises';
import type { Log } from '#contract';
import { type Member, startMember } from './member.ts';
import type { Serving, Task } from './messages.ts';

/** Workers that serve one port together. */
export interface Crew {
  /** Resolves when all serve; rejects as soon as one cannot start. */
  readonly started: Promise<Serving>;
  /** Resolves when the backend answers one of them. */
  check(): Promise<void>;
  /** Has all of them stop, at once those that take longer than `withinMs`. Rejects if one did not stop in good order. */
  close(): Promise<void>;
}

export interface CrewOptions {
  readonly count: number;
  readonly task: Omit<Task, 'worker'>;
  /** Longest time for a worker to stop, in milliseconds. */
  readonly withinMs: number;
  readonly log: Log;
}

/** Pause before a worker that died is replaced, in milliseconds: twice as long each time, unless it has lived for a while. */
const FIRST_PAUSE_MS = 100;
const LONGEST_PAUSE_MS = 10_000;
const WHILE_MS = 60_000;

/** Starts the workers, and another one in the place of each that dies. */
export function startCrew({ count, task, withinMs, log }: CrewOptions): Crew {
  const members = new Set<Member>();
  const closing = new AbortController();
  /** Those that served and did not stop in good order when told to. */
  const unclean: number[] = [];

  const employ = async (worker: number, serves: (serving: Serving) => void) => {
    const member = startMember({ ...task, worker }, serves);
    members.add(member);
    const ending = await member.ended;
    members.delete(member);
    return ending;
  };
  const keep = async (worker: number, serves: (serving: Serving) => void, fails: (error: Error) => void) => {
    let pause = FIRST_PAUSE_MS;
    let served = false;
    const note = (serving: Serving) => {
      served = true;
      serves(serving);
    };
    while (!closing.signal.aborted) {
      const begun = performance.now();
      const { code, signal, failure } = await employ(worker, note);
      if (!served) return fails(new Error(failure ?? `a worker ended while starting (${signal ?? `status ${code}`})`));
      if (closing.signal.aborted) return void (code !== 0 && unclean.push(worker));
      if (performance.now() - begun > WHILE_MS) pause = FIRST_PAUSE_MS;
      log.error({ worker, code, signal, reason: failure }, 'a worker ended; starting another one');
      await sleep(pause, undefined, { signal: closing.signal }).catch(() => {});
      pause = Math.min(2 * pause, LONGEST_PAUSE_MS);
    }
  };

  const places: Promise<void>[] = [];
  const fill = (worker: number) => new Promise<Serving>((serves, fails) => places.push(keep(worker, serves, fails)));
  const start = async () => {
    // The first brings the database up to date; together they would wait for each other.
    const first = await fill(1);
    await Promise.all(Array.from({ length: count - 1 }, (_, i) => fill(i + 2)));
    return first;
  };
  const started = start();
  return {
    started,
    async check() {
      const serving = [...members].filter((member) => member.serving);
      if (serving.length === 0) throw new Error('no worker serves');
      await Promise.any(serving.map((member) => member.check())).catch(({ errors: [first] }: AggregateError) => {
        throw first;
      });
    },
    async close() {
      closing.abort();
      for (const member of members) member.stop();
      const timer = setTimeout(() => {
        for (const member of members) member.kill();
      }, withinMs);
      await Promise.all(places);
      clearTimeout(timer);
      if (unclean.length > 0) throw new Error(`workers that did not stop in good order: ${unclean.join(', ')}`);
    },
  };
}
