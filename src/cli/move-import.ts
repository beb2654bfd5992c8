import { createReadStream, statSync } from 'node:fs';
import { addAbortSignal } from 'node:stream';
import { z } from 'zod';
import type { ExportedMemory } from '../../clients/typescript/src/index.ts';
import { createCopy, total } from '../move/copy.ts';
import { type Header, readFile } from '../move/export-file.ts';
import { DAMAGED, readCsv, readMem0 } from '../move/readers.ts';
import { matcherOf } from '../move/store.ts';
import {
  inPages,
  outcome,
  PAGE,
  type Run,
  requireImport,
  type SavedPlace,
  savedPlace,
  toOf,
  vectorsText,
  withVersions,
} from './move-run.ts';
import { memories } from './progress.ts';
import type { StoreRequest } from './store-arguments.ts';
import { Mistake } from './terminal.ts';

/** `omp-gateway import`. Returns the exit status. */
export async function runImport(request: StoreRequest, run: Run): Promise<number> {
  const { values, perMinute } = request;
  const path = pathOf(request);
  // Standard input can be read only once.
  const checked = path === '-' ? undefined : await count(request, run);
  const saved = path === '-' || values['dry-run'] ? undefined : savedPlaceOf(path, request);
  const before = (values.restart ? undefined : await saved?.read()) ?? 0;
  const store = await run.open(toOf(request), 'to');
  requireImport(store);
  if (checked) run.say(vectorsText(checked.embedding, store));
  if (values['dry-run']) return dryRun(checked ?? (await count(request, run)), request, run);
  const file = read(request, run, ({ embedding }) => {
    if (!checked) run.say(vectorsText(embedding, store));
  });
  // Memories of the file that are done, and how many of those this run left out because of the filters.
  let done = 0;
  let leftOut = 0;
  while (done < before && !(await file.next()).done) done++;
  const skipped = done;
  const places = new WeakMap<ExportedMemory, string>();
  const copy = createCopy(store, {
    ...request,
    signal: run.signal,
    stored: (counts) => run.progress({ done: skipped + leftOut + total(counts), total: checked?.total, perMinute }),
    placeOf: (memory) => places.get(memory),
  });
  run.onStop(() => {
    const stored = `${memories(copy.counts.stored)} stored`;
    if (!saved) return `${stored}; the same input is not stored twice`;
    return `${stored}; the same command goes on at ${placeInFile(done, request)}, and stores nothing twice`;
  });
  const matches = matcherOf(request.filters);
  // A place is saved after a page, so a slow one is short.
  const size = Math.min(PAGE, perMinute ?? PAGE);
  for await (const page of inPages(file, size)) {
    for (const [i, memory] of page.entries()) places.set(memory, placeInFile(done + i, request));
    const whole = page.filter((memory) => {
      const damage = damageOf(memory);
      if (damage !== undefined) copy.reject(memory, damage);
      return damage === undefined;
    });
    const matching = whole.filter(matches);
    leftOut += whole.length - matching.length;
    await copy.page(matching);
    done += page.length;
    await saved?.write(done);
  }
  await saved?.remove();
  run.end();
  sayLeftOut(leftOut, run);
  return outcome(copy.counts, request, run);
}

interface FileCount {
  readonly total: number;
  /** Those that the filters leave. */
  readonly matching: number;
  /** Rows that are no memory. */
  readonly damaged: number;
  readonly embedding: Header['embedding'];
}

/** Reads the file to its end. Throws if it is not whole. */
async function count(request: StoreRequest, run: Run): Promise<FileCount> {
  const matches = matcherOf(request.filters);
  const counts = { total: 0, matching: 0, damaged: 0, embedding: null as Header['embedding'] };
  const onHeader = ({ embedding }: Header) => Object.assign(counts, { embedding });
  for await (const memory of read(request, run, onHeader)) {
    counts.total++;
    if (damageOf(memory) !== undefined) counts.damaged++;
    else if (matches(memory)) counts.matching++;
  }
  return counts;
}

function dryRun({ total: all, matching, damaged }: FileCount, { values }: StoreRequest, run: Run): number {
  sayLeftOut(all - matching - damaged, run);
  if (damaged > 0) run.say(`Damaged rows, which are no memories: ${damaged}.`);
  run.terminal.stdout.write(
    values.json ? `${JSON.stringify({ memories: matching })}\n` : `${memories(matching)} would be stored.\n`,
  );
  return 0;
}

const damageOf = (memory: ExportedMemory): string | undefined => (memory as { readonly [DAMAGED]?: string })[DAMAGED];

function sayLeftOut(leftOut: number, run: Run): void {
  if (leftOut > 0) run.say(`The filters leave out ${memories(leftOut)}.`);
}

const pathOf = ({ names: [path = '-'] }: StoreRequest): string => path;

/** Where an interrupted import goes on: so many memories after the beginning of the file. */
function savedPlaceOf(path: string, request: StoreRequest): SavedPlace<number> {
  const { filters, onConflict, values } = request;
  const question = [
    path,
    statSync(path).mtimeMs,
    toOf(request),
    filters,
    onConflict,
    values.format,
    values.column,
    ...withVersions(values),
  ];
  return savedPlace(`${path}.progress`, question, z.int().nonnegative());
}

/** The memory after so many others, for people: in which line or row it is. */
function placeInFile(before: number, { values: { format } }: StoreRequest): string {
  if (format === 'mem0') return `memory ${before + 1}`;
  // The first one is the header.
  return `${format === 'csv' ? 'row' : 'line'} ${before + 2}`;
}

/** The memories of the file in its format. The import rejects those that are none. */
async function* read(
  request: StoreRequest,
  run: Run,
  onHeader: (header: Header) => void,
): AsyncGenerator<ExportedMemory> {
  const { values, filters } = request;
  const path = pathOf(request);
  const input = addAbortSignal(run.signal, path === '-' ? process.stdin : createReadStream(path));
  const user_id = filters.users.length === 1 ? filters.users[0] : undefined;
  const created_at = new Date(path === '-' ? Date.now() : statSync(path).mtimeMs).toISOString();
  const columns = Object.fromEntries(((values.column as string[] | undefined) ?? []).map(columnOf));
  const lines = {
    mem0: () => readMem0(input, { user_id, created_at }),
    csv: () => readCsv(input, { user_id, created_at, columns, goOn: values['skip-damaged'] === true }),
    own: () => readFile(path, onHeader, input),
  }[(values.format as 'mem0' | 'csv' | undefined) ?? 'own']();
  for await (const line of lines) {
    run.signal.throwIfAborted();
    const { version, versions, versions_left_out, ...memory } = line as unknown as ExportedMemory;
    yield values.versions ? { ...memory, version, versions, versions_left_out } : (memory as ExportedMemory);
  }
}

/** `FIELD=COLUMN`. */
function columnOf(text: string): [string, string] {
  const at = text.indexOf('=');
  if (at > 0) return [text.slice(0, at), text.slice(at + 1)];
  throw new Mistake(`--column ${text}: expected FIELD=COLUMN`);
}
