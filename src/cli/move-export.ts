import { existsSync } from 'node:fs';
import { z } from 'zod';
import type { ExportedMemory } from '../../clients/typescript/src/index.ts';
import { FORMAT, type Header, type Line, openWriter, partOf, writerTo } from '../move/export-file.ts';
import { type GatewayStore, pagesOf } from '../move/store.ts';
import { endedByReader, fromOf, leftOutText, type Run, savedPlace, standardOutput, withVersions } from './move-run.ts';
import { memories } from './progress.ts';
import type { StoreRequest } from './store-arguments.ts';

export const WalkPlace = z.object({ user: z.int().nonnegative(), cursor: z.string().optional() });

/** `omp-gateway export`. Returns the exit status. */
export async function runExport(request: StoreRequest, run: Run): Promise<number> {
  const { filters, names, values } = request;
  const [path = '-'] = names;
  const isFile = path !== '-';
  if (isFile && existsSync(path) && !values.restart) throw new Error(`${path} exists; use --restart to replace it`);
  const State = z.object({ place: WalkPlace, bytes: z.int().nonnegative(), left: z.int().default(0) });
  const question = [fromOf(request), filters, ...withVersions(values)];
  const saved = isFile ? savedPlace(`${path}.progress`, question, State) : undefined;
  const state = values.restart ? undefined : await saved?.read();
  const store = await run.open(fromOf(request), 'from');
  const header = headerOf(store, request);
  const writer = isFile ? await openWriter(path, header, state?.bytes) : writerTo(standardOutput(), header);
  const place = isFile ? `${partOf(path)}; the same command goes on there` : `${writer.name}, which is cut`;
  run.onStop(() => `${memories(writer.count)} of ${store.name} in ${place}`);
  let left = state?.left ?? 0;
  try {
    for await (const { memories: page, next } of pagesOf(store, filters, state?.place)) {
      run.signal.throwIfAborted();
      const bytes = await writer.write(page as readonly object[] as readonly Line[]);
      left += leftOut(page);
      if (next) await saved?.write({ place: next, bytes, left });
      run.progress({ done: writer.count });
    }
    // An import of the file keeps its place under the same name: one that a crash left there would stop it.
    const count = await writer.finish(saved?.remove);
    run.end();
    if (values.json && isFile)
      run.terminal.stdout.write(`${JSON.stringify({ memories: count, versions_left_out: left, file: path })}\n`);
    else run.say(`Done: ${memories(count)} of ${store.name} in ${writer.name}.`);
    if (left > 0) run.say(leftOutText(left));
    return 0;
  } catch (error) {
    return endedByReader(error, run);
  } finally {
    await writer.close();
  }
}

const leftOut = (page: readonly ExportedMemory[]): number =>
  page.reduce((sum, { versions_left_out = 0 }) => sum + versions_left_out, 0);

const headerOf = ({ capabilities }: GatewayStore, { filters }: StoreRequest): Header => ({
  omp_export: FORMAT,
  source: capabilities.provider,
  exported_at: new Date().toISOString(),
  embedding: (filters.vectors && capabilities.embedding) || null,
  filters: { ...filters },
});
