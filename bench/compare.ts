import { type Load, load } from './load.ts';
import { type BenchVerb, requestsOf } from './workload.ts';

export interface CompareOptions {
  readonly connections: number;
  /** Of one run; a round is one run of every subject. */
  readonly seconds: number;
  readonly rounds: number;
}

/** A server, and the memories that are stored there. */
export interface Subject {
  readonly url: string;
  readonly ids: readonly string[];
}

/** The results of one subject, one per round. */
export interface Series {
  readonly name: string;
  readonly runs: readonly Load[];
}

const REQUESTS = 4_000;
/** Enough for the JIT compiler to finish before anything is measured. */
const WARM_UP_SECONDS = 1;

/**
 * Loads the subjects one after another, round after round, each round in the other direction, so that other load on the
 * machine affects all of them alike.
 */
export async function compare(
  verb: BenchVerb,
  subjects: ReadonlyMap<string, Subject>,
  { connections, seconds, rounds }: CompareOptions,
): Promise<Series[]> {
  const series = [...subjects].map(([name, { url, ids }]) => {
    return { name, url, requests: requestsOf(verb, ids, REQUESTS), runs: [] as Load[] };
  });
  for (const { url, requests } of series) await load(url, requests, { connections, seconds: WARM_UP_SECONDS });
  for (let round = 0; round < rounds; round++) {
    const order = round % 2 === 0 ? series : series.toReversed();
    for (const { url, requests, runs } of order) runs.push(await load(url, requests, { connections, seconds }));
  }
  return series;
}

/** The median over the rounds of one figure's ratio, round by round. */
export const ratio = (of: Series, to: Series, figure: keyof Load): number =>
  median(of.runs.map((run, round) => run[figure] / (to.runs[round] as Load)[figure]));

export const typical = ({ runs }: Series, figure: keyof Load): number => median(runs.map((run) => run[figure]));

/** The upper of the middle two when their number is even. */
function median(values: readonly number[]): number {
  return values.toSorted((a, b) => a - b)[values.length >> 1] ?? Number.NaN;
}
