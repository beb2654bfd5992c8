import type { EmbedderIdentity, ReembedOutcome, ReembedState } from '#contract';
import type { Asked } from './reembed-arguments.ts';

/** The outcome for people: lines, each ended. */
export function reembedText(outcome: ReembedOutcome, { dry_run }: Pick<Asked, 'dry_run'>): string {
  const { from, to, total, done, embedded, switched } = outcome;
  const name = called(to);
  if (dry_run) return dryRun(outcome);
  if (!switched) {
    return `Stopped: ${ofTotal({ done, total })} embedded with ${name}. Searches use what they used before.\nRun "omp-gateway reembed" again to go on from there.\n`;
  }
  if (from && isSame(from, to)) {
    const missing = embedded === 0 ? 'there was nothing to do' : `${memories(embedded)} had none`;
    return `Done: ${memories(total)} with vectors of ${name}; ${missing}.\n`;
  }
  return `Done: ${memories(total)} with vectors of ${name}, which searches use from now on.
Start the gateways again with this embedder. The room that the old vectors took is used again for new rows; "vacuum
full" or pg_repack gives it back at once, and makes exact searches as fast as before.
`;
}

function dryRun({ from, to, total, done, characters }: ReembedOutcome): string {
  const left = total - done;
  const now = from ? `made by ${called(from)}` : 'not there yet';
  return `Vectors: ${now}; the configured embedder is ${called(to)}.
To be embedded: ${ofTotal({ done: left, total })}, ${number(characters ?? 0)} characters (some ${number(tokens(characters ?? 0))} tokens, if they are English).
Nothing was changed.
`;
}

/** One line, without its end. `perSecond`: memories embedded each second by this run; 0: not known. */
export function progressLine({ done, total }: ReembedState, perSecond: number): string {
  const percent = total === 0 ? 100 : Math.floor((100 * done) / total);
  const left = perSecond > 0 ? `, ${duration((total - done) / perSecond)} left` : '';
  return `${ofTotal({ done, total })} (${percent} %)${left}`;
}

const called = ({ model, dimensions }: EmbedderIdentity): string => `"${model}" (${dimensions} dimensions)`;
const isSame = (a: EmbedderIdentity, b: EmbedderIdentity): boolean =>
  a.model === b.model && a.dimensions === b.dimensions;
const number = (value: number): string => value.toLocaleString('en-US');
const memories = (count: number): string => `${number(count)} ${count === 1 ? 'memory' : 'memories'}`;
const ofTotal = ({ done, total }: ReembedState): string => `${number(done)} of ${memories(total)}`;

/** English text has some four characters a token. */
const tokens = (characters: number): number => Math.ceil(characters / 4);

function duration(seconds: number): string {
  if (seconds < 90) return `${Math.ceil(seconds)} s`;
  const minutes = Math.ceil(seconds / 60);
  return minutes < 90 ? `${minutes} min` : `${Math.floor(minutes / 60)} h ${minutes % 60} min`;
}
