import { existsSync } from 'node:fs';
import { z } from 'zod';
import type { ExportedMemory } from '../../clients/typescript/src/index.ts';
import { FORMAT, type Header, type Line, openWriter, partOf, streamWriter } from '../move/export-file.ts';
import { pagesOf, type Store } from '../move/store.ts';
import type { MoveRequest } from './move-arguments.ts';
import { fromOf, leftOutText, type Run, savedPlace, withVersions } from './move-run.ts';
import { memories } from './progress.ts';
import { escapeControls } from './terminal.ts';

export const Place = z.object({ user: z.int().nonnegative(), cursor: z.string().optional() });

/** `omp-gateway export`. Returns the exit status. */
export async function runExport(request: MoveRequest, run: Run): Promise<number> {
  const [path = '-'] = request.names;
  return path === '-' ? exportToStream(request, run) : exportToFile(path, request, run);
}

async function exportToFile(path: string, request: MoveRequest, run: Run): Promise<number> {
  const { filters, values } = request;
  if (existsSync(path) && !values.restart) throw new Error(`${path} exists; use --restart to replace it`);
  const State = z.object({ place: Place, bytes: z.int().nonnegative(), left: z.int().default(0) });
  const saved = savedPlace(`${path}.progress`, [fromOf(request), filters, ...withVersions(values)], State);
  const state = values.restart ? undefined : await saved.read();
  const store = await run.open(fromOf(request), 'from');
  const writer = await openWriter(path, headerOf(store, request), state?.bytes);
  run.onStop(() => `${memories(writer.count)} of ${store.name} in ${partOf(path)}; the same command goes on there`);
  let left = state?.left ?? 0;
  try {
    for await (const { memories: page, next } of pagesOf(store, filters, state?.place)) {
      run.signal.throwIfAborted();
      const bytes = await writer.write(page as readonly object[] as readonly Line[]);
      left += leftOut(page);
      if (next) await saved.write({ place: next, bytes, left });
      run.progress({ done: writer.count });
    }
    const count = await writer.finish();
    await saved.remove();
    run.end();
    if (values.json)
      run.terminal.stdout.write(`${JSON.stringify({ memories: count, versions_left_out: left, file: path })}\n`);
    else run.say(`Done: ${memories(count)} of ${store.name} in ${path}.`);
    if (left > 0) run.say(leftOutText(left));
    return 0;
  } finally {
    await writer.close();
  }
}

async function exportToStream(request: MoveRequest, run: Run): Promise<number> {
  const store = await run.open(fromOf(request), 'from');
  // It waits until the reader has taken a page.
  const writer = streamWriter(process.stdout, headerOf(store, request), escapeControls);
  run.onStop(() => `${memories(writer.count)} of ${store.name} in standard output, which is cut`);
  let left = 0;
  try {
    for await (const { memories: page } of pagesOf(store, request.filters)) {
      run.signal.throwIfAborted();
      await writer.write(page as readonly object[] as readonly Line[]);
      left += leftOut(page);
      run.progress({ done: writer.count });
    }
    const count = await writer.finish();
    run.end();
    if (left > 0) run.say(leftOutText(left));
    run.say(`Done: ${memories(count)} of ${store.name} in standard output.`);
    return 0;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EPIPE') throw error;
    // The reader of the pipe has ended, such as `head`.
    run.end();
    return 1;
  }
}

const leftOut = (page: readonly ExportedMemory[]): number =>
  page.reduce((sum, { versions_left_out = 0 }) => sum + versions_left_out, 0);

const headerOf = ({ capabilities }: Store, { filters }: MoveRequest): Header => ({
  omp_export: FORMAT,
  source: capabilities.provider,
  exported_at: new Date().toISOString(),
  embedding: (filters.vectors && capabilities.embedding) || null,
  filters: { ...filters },
});
