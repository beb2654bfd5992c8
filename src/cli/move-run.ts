import type { Counts } from '../move/copy.ts';
import type { Header } from '../move/export-file.ts';
import type { Store } from '../move/store.ts';
import type { Asked } from './move-arguments.ts';
import { memories, number, type Progress } from './progress.ts';
import { printable, report, type Terminal } from './terminal.ts';

/** What `export`, `import`, `migrate` and `verify` run with. */
export interface Run {
  open(name: string, key: 'from' | 'to'): Promise<Store>;
  readonly terminal: Terminal;
  readonly signal: AbortSignal;
  progress(state: Progress): void;
  /** Ends the line of the progress. */
  end(): void;
  /** A line on standard error, below the progress. */
  say(line: string): void;
  /** What a stopped command says: how far it came, and how it goes on. */
  onStop(describe: () => string): void;
}

export const fromOf = ({ values }: Asked): string => (values.from as string | undefined) ?? 'config';
export const toOf = ({ values }: Asked): string => (values.to as string | undefined) ?? 'config';
export const isStoreName = (name: string): boolean =>
  /^https?:\/\//.test(name) || name === 'config' || name.startsWith('config:');

/** Memories of one request to read them, and between two saved places. */
export const PAGE = 500;

export function requireImport({ name, capabilities }: Store): void {
  if (capabilities.features.import) return;
  throw new Error(`${name} cannot store memories with their ids and times (features.import is not true)`);
}

/** What becomes of vectors of `from` in a store. */
export function vectorsText(from: Header['embedding'], { name, capabilities }: Store): string {
  const to = capabilities.embedding;
  if (!to) return `${name} has no vectors.`;
  const isSame = from?.model === to.model && from.dimensions === to.dimensions;
  return isSame
    ? `The vectors are taken over: both are of "${to.model}" (${to.dimensions} dimensions).`
    : `The vectors are computed anew with "${to.model}" (${to.dimensions} dimensions).`;
}

/** Prints what was stored and rejected. Returns the exit status. */
export function outcome(counts: Counts, { values }: Asked, { terminal }: Run): number {
  const { stored, unchanged, skipped, rejections, rejected } = counts;
  if (values.json) terminal.stdout.write(`${JSON.stringify(counts, null, 2)}\n`);
  else {
    const parts = [
      `${memories(stored)} stored`,
      ...(unchanged > 0 ? [`${number(unchanged)} there already`] : []),
      ...(skipped > 0 ? [`${number(skipped)} skipped, because their ids are stored with other fields`] : []),
    ];
    terminal.stdout.write(`${parts.join(', ')}.\n`);
    for (const { id, place, message } of rejected) {
      report(
        terminal,
        `rejected ${printable(String(id))}${place === undefined ? '' : ` (${place})`}: ${printable(message)}`,
      );
    }
    if (rejections > rejected.length) report(terminal, `and ${number(rejections - rejected.length)} more`);
  }
  return rejections > 0 ? 1 : 0;
}
