/** A function to time; receives the number of the round. */
export interface Timed {
  readonly name: string;
  run(round: number): Promise<unknown>;
}

export interface Times {
  readonly name: string;
  /** Milliseconds, in the order of the rounds. */
  readonly rounds: readonly number[];
}

/** Enough for statements to be prepared and planned before anything is measured. */
const WARM_UP = 8;

/** Runs all of them, round after round, so that other load on the machine affects all alike. */
export async function timeAll(all: readonly Timed[], rounds: number): Promise<Times[]> {
  const times = all.map(({ name }) => ({ name, rounds: [] as number[] }));
  for (let round = -WARM_UP; round < rounds; round++) {
    for (const [i, { run }] of all.entries()) {
      const started = performance.now();
      await run(round + WARM_UP);
      if (round >= 0) times[i]?.rounds.push(performance.now() - started);
    }
  }
  return times;
}

export const quantile = (values: readonly number[], share: number): number =>
  values.toSorted((a, b) => a - b)[Math.min(values.length - 1, Math.floor(values.length * share))] ?? Number.NaN;

/** The median over the rounds of one's time as a multiple of the other's. */
export const ratio = (of: Times, to: Times): number =>
  quantile(
    of.rounds.map((time, round) => time / (to.rounds[round] as number)),
    0.5,
  );
