import type { Terminal } from './terminal.ts';

/** What a command has done so far. */
export interface Progress {
  readonly done: number;
  /** Undefined: unknown. */
  readonly total?: number | undefined;
  /** The command waits, to write no more than this. */
  readonly perMinute?: number | undefined;
  /** Of changes instead of memories: how old the last one is, and about how many follow it. */
  readonly behind?: { readonly seconds: number; readonly left: number } | undefined;
}

/** Milliseconds between lines if the output is not a terminal. */
const LINE_MS = 10_000;

export function showProgress(stderr: Terminal['stderr']) {
  let first: { readonly at: number; readonly done: number } | undefined;
  let shown = Number.NEGATIVE_INFINITY;
  let open = false;
  return {
    show(state: Progress): void {
      const now = performance.now();
      // Less than before: something else is counted now.
      if (first === undefined || state.done < first.done) first = { at: now, done: state.done };
      const seconds = (now - first.at) / 1_000;
      const line = progressLine(state, seconds > 0 ? (state.done - first.done) / seconds : 0);
      if (stderr.isTTY) {
        stderr.write(line, 'rewrite');
        open = true;
      } else if (now - shown >= LINE_MS) {
        stderr.write(`${line}\n`);
        shown = now;
      }
    },
    /** Ends the line that is rewritten. */
    end(): void {
      if (open) stderr.write('\n');
      open = false;
    },
  };
}

/** One line, without its end. `perSecond`: memories of this run; 0: unknown. */
function progressLine({ done, total, perMinute, behind }: Progress, perSecond: number): string {
  if (behind) {
    const { seconds, left } = behind;
    const rate = `${number(done)} changes, ${perSecond.toFixed(1)} a second`;
    return `${rate}, ${seconds.toFixed(1)} s behind, about ${number(left)} left`;
  }
  const pace = perMinute === undefined ? '' : `, at most ${number(perMinute)} a minute`;
  // A store that is written meanwhile may have more than there were.
  if (total === undefined || done > total) {
    return memories(done) + (perSecond > 0 ? `, ${number(Math.round(perSecond))} a second` : '') + pace;
  }
  const percent = total === 0 ? 100 : Math.floor((100 * done) / total);
  const left = perSecond > 0 ? `, ${duration((total - done) / perSecond)} left` : '';
  return `${ofTotal({ done, total })} (${percent} %)${left}${pace}`;
}

export const number = (value: number): string => value.toLocaleString('en-US');
export const memories = (count: number): string => `${number(count)} ${count === 1 ? 'memory' : 'memories'}`;
export const ofTotal = ({ done, total }: { readonly done: number; readonly total: number }): string =>
  `${number(done)} of ${memories(total)}`;

function duration(seconds: number): string {
  if (seconds < 90) return `${Math.ceil(seconds)} s`;
  const minutes = Math.ceil(seconds / 60);
  return minutes < 90 ? `${minutes} min` : `${Math.floor(minutes / 60)} h ${minutes % 60} min`;
}
