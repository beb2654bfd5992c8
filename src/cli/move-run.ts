import { existsSync } from 'node:fs';
import { open, rm } from 'node:fs/promises';
import type { z } from 'zod';
import type { Counts } from '../move/copy.ts';
import { type Header, type Output, replaceFile, streamOutput } from '../move/export-file.ts';
import { parseJson } from '../move/json.ts';
import type { GatewayStore } from '../move/store.ts';
import { memories, number, type Progress } from './progress.ts';
import type { StoreRequest } from './store-arguments.ts';
import { escapeControls, printable, report, type Terminal } from './terminal.ts';

/** What `export`, `import`, `migrate` and `verify` run with. */
export interface Run {
  /** `patience`: waits until it aborts for a gateway that does not answer yet. */
  open(name: string, key: 'from' | 'to', patience?: AbortSignal): Promise<GatewayStore>;
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

export function fromOf({ values }: StoreRequest): string {
  const name = (values.from as string | undefined) ?? 'config';
  return values.store === undefined ? name : `${name}#${values.store}`;
}
export const toOf = ({ values }: StoreRequest): string => (values.to as string | undefined) ?? 'config';
export const isStoreName = (name: string): boolean => /^https?:\/\//.test(name) || /^config(?:[:#]|$)/.test(name);

/** What `--versions` adds to the question of a saved place. */
export const withVersions = ({ versions }: StoreRequest['values']): string[] => (versions ? ['versions'] : []);

/** Memories of one request to read them, and between two saved places. */
export const PAGE = 500;

/** Lists of so many, the last one shorter. */
export async function* inPages<Item>(items: AsyncIterable<Item>, size: number): AsyncGenerator<Item[]> {
  let page: Item[] = [];
  for await (const item of items) {
    page.push(item);
    if (page.length < size) continue;
    yield page;
    page = [];
  }
  if (page.length > 0) yield page;
}

export const standardOutput = (): Output => streamOutput('standard output', process.stdout, escapeControls);

/** The exit status of a command whose output has lost its reader, such as `head`; throws every other error. */
export function endedByReader(error: unknown, run: Run): number {
  if ((error as NodeJS.ErrnoException).code !== 'EPIPE') throw error;
  run.end();
  return 1;
}

export function requireImport({ name, capabilities }: GatewayStore): void {
  if (capabilities.features.import) return;
  throw new Error(`${name} cannot store memories with their ids and times (features.import is not true)`);
}

/** What becomes of vectors of `from` in a store. */
export function vectorsText(from: Header['embedding'], { name, capabilities }: GatewayStore): string {
  const to = capabilities.embedding;
  if (!to) return `${name} has no vectors.`;
  const isSame = from?.model === to.model && from.dimensions === to.dimensions;
  return isSame
    ? `The vectors are taken over: both are of "${to.model}" (${to.dimensions} dimensions).`
    : `The vectors are computed anew with "${to.model}" (${to.dimensions} dimensions).`;
}

export const leftOutText = (versions: number): string =>
  `${number(versions)} old versions are left out: one request does not hold all of a memory`;

/** Prints what was stored and rejected, as JSON with `more`. Returns the exit status. */
export function outcome(counts: Counts, { values }: StoreRequest, { terminal }: Run, more: object = {}): number {
  const { stored, unchanged, skipped, rejections, rejected } = counts;
  if (values.json) terminal.stdout.write(`${JSON.stringify({ ...counts, ...more }, null, 2)}\n`);
  else {
    const parts = [
      `${memories(stored)} stored`,
      ...(unchanged > 0 ? [`${number(unchanged)} there already`] : []),
      ...(skipped > 0 ? [`${number(skipped)} skipped, because their ids are stored with other fields`] : []),
    ];
    terminal.stdout.write(`${parts.join(', ')}.\n`);
    const { versions_left_out: left } = counts;
    if (left > 0) report(terminal, leftOutText(left));
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

/** Size of a saved place: the options of a command, a cursor and some numbers. */
const MAX_BYTES = 1024 * 1024;

/** Where an interrupted command goes on: a file beside what it writes or reads. */
export interface SavedPlace<State> {
  /** Undefined: the command starts from the beginning. Throws if the file is of a command with other options, or is none of ours. */
  read(): Promise<State | undefined>;
  /** Throws if the place would be too large to be read again; then the one before it stays. */
  write(state: State): Promise<void>;
  remove(): Promise<void>;
}

/** `question` stands for the options of the command: a place counts only for the same question. */
export function savedPlace<State>(path: string, question: unknown, schema: z.ZodType<State>): SavedPlace<State> {
  const expected = JSON.stringify(question);
  return {
    async read() {
      if (!existsSync(path)) return undefined;
      const saved = (await readSmall(path)) as { readonly question?: unknown; readonly state?: unknown } | undefined;
      const state = schema.safeParse(saved?.state);
      if (!saved || !state.success) throw new Error(`${path} is no place of this command; start over with --restart`);
      if (saved.question === expected) return state.data;
      throw new Error(
        `${path} is of a command with other options, or of the file before it changed; start over with --restart`,
      );
    },
    async write(state) {
      const place = { question: expected, state };
      if (Buffer.byteLength(JSON.stringify(place)) > MAX_BYTES) throw new Error(`the place in ${path} is too large`);
      await replaceFile(path, place);
    },
    remove: () => rm(path, { force: true }),
  };
}

/** The JSON of a small file; undefined: it is none. */
async function readSmall(path: string): Promise<unknown> {
  const file = await open(path);
  try {
    const bytes = Buffer.alloc(MAX_BYTES + 1);
    const { bytesRead } = await file.read(bytes, 0, bytes.length, 0);
    return bytesRead > MAX_BYTES ? undefined : parseJson(bytes.subarray(0, bytesRead));
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== undefined) throw error;
    return undefined;
  } finally {
    await file.close();
  }
}
