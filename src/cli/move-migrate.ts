import { z } from 'zod';
import { type Counts, createCopy, noCounts, total } from '../move/copy.ts';
import { pagesOf } from '../move/store.ts';
import { WalkPlace } from './move-export.ts';
import { runFollow } from './move-follow.ts';
import { outcome, type Run, requireImport, savedPlace, vectorsText, withVersions } from './move-run.ts';
import { memories } from './progress.ts';
import type { StoreRequest } from './store-arguments.ts';
import { Mistake } from './terminal.ts';

/** `place`: within a pass that began at `started`. `rejected`: the target rejected something of the pass. */
const State = z.object({
  since: z.string().optional(),
  started: z.iso.datetime(),
  place: WalkPlace.optional(),
  rejected: z.boolean().optional(),
});

/** A pass begins this much before the one before it did, in milliseconds: clocks differ. */
const MARGIN_MS = 60_000;

/** `omp-gateway migrate`. Returns the exit status. */
export async function runMigrate(request: StoreRequest, run: Run): Promise<number> {
  const { values, filters, perMinute } = request;
  const [from = values.from as string | undefined, to = values.to as string | undefined] = request.names;
  if (from === undefined || to === undefined) throw new Mistake('expected A and B, or --from and --to');
  if (values.follow || values.cutover) {
    if (filters.scope !== undefined || filters.tags.length > 0 || filters.since !== undefined) {
      throw new Mistake('--follow moves all memories, or those of --user');
    }
    return runFollow([from, to], request, run);
  }
  const path = (values.progress as string | undefined) ?? 'omp-migrate.json';
  const saved = savedPlace(path, [from, to, filters, ...withVersions(values)], State);
  let state: z.output<typeof State> = { started: now() };
  const last = values.restart ? undefined : await saved.read();
  if (last) state = last.place ? last : { ...last, ...state };
  const [source, target] = [await run.open(from, 'from'), await run.open(to, 'to')];
  requireImport(target);
  run.say(vectorsText(source.capabilities.embedding ?? null, target));
  const all = noCounts();
  let current: Counts = all;
  run.onStop(() => {
    const stored = current === all ? all.stored : all.stored + current.stored;
    return `${memories(stored)} stored; the same command goes on, and stores nothing twice`;
  });
  for (;;) {
    const copy = createCopy(target, {
      ...request,
      onConflict: 'replace',
      signal: run.signal,
      stored: (counts) => run.progress({ done: total(all) + total(counts), perMinute }),
    });
    current = copy.counts;
    const { since = filters.since } = state;
    for await (const { memories: page, next } of pagesOf(source, { ...filters, since, vectors: true }, state.place)) {
      await copy.page(page);
      state.rejected ||= copy.counts.rejections > 0;
      if (next) await saved.write({ ...state, place: next });
    }
    add(all, copy.counts);
    current = all;
    const isQuiet = state.since !== undefined && copy.counts.stored === 0;
    const rejected = state.rejected === true;
    // What was rejected has to come again.
    state = { since: rejected ? state.since : before(state.started), started: now() };
    await saved.write(state);
    if (isQuiet || rejected) return ended(all, rejected, request, run);
  }
}

function ended(all: Counts, rejected: boolean, request: StoreRequest, run: Run): number {
  run.end();
  if (!request.values.json) {
    run.say(
      rejected
        ? 'The target rejected memories. The next run tries them again, with all others of this pass.'
        : 'Nothing changed in the last pass. If the first store is still written, stop that and run this command once more.',
    );
  }
  const status = outcome(all, request, run);
  return rejected ? 1 : status;
}

const now = (): string => new Date().toISOString();
const before = (time: string): string => new Date(Date.parse(time) - MARGIN_MS).toISOString();

function add(all: Counts, counts: Counts): void {
  all.stored += counts.stored;
  all.unchanged += counts.unchanged;
  all.skipped += counts.skipped;
  all.rejections += counts.rejections;
  all.versions_left_out += counts.versions_left_out;
  all.rejected.push(...counts.rejected);
}
