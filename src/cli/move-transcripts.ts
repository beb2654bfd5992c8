import { statSync } from 'node:fs';
import { homedir } from 'node:os';
import { setTimeout } from 'node:timers/promises';
import type { ExportedMemory } from '../../clients/typescript/src/index.ts';
import { createCopy, total } from '../move/copy.ts';
import type { Fields } from '../move/readers.ts';
import { matcherOf } from '../move/store.ts';
import { TRANSCRIPT_FORMATS, type TranscriptFormatName } from '../move/transcript-formats.ts';
import { emptySummary, openTranscripts, REASONS, type Reason, type Summary } from '../move/transcripts.ts';
import { inPages, outcome, PAGE, type Run, requireImport, toOf, vectorsText } from './move-run.ts';
import { memories, number } from './progress.ts';
import type { StoreRequest } from './store-arguments.ts';
import { Mistake, printable } from './terminal.ts';

/** Milliseconds between two looks at all files. */
const PAUSE_MS = 2_000;

/** `omp-gateway import --format claude-code` and others. Returns the exit status. */
export async function runTranscripts(format: TranscriptFormatName, request: StoreRequest, run: Run): Promise<number> {
  const { values, filters, perMinute, limit } = request;
  const { signal } = run;
  const [user_id, ...others] = filters.users;
  if (user_id === undefined || others.length > 0) {
    throw new Mistake(`--format ${format} needs one --user: whose memories they become`);
  }
  const [path] = request.names;
  if (path !== undefined) statSync(path);
  const home = homedir();
  const paths = path === undefined ? TRANSCRIPT_FORMATS[format].folders(run.terminal.env, home) : [path];
  const store = await run.open(toOf(request), 'to');
  requireImport(store);
  const { max_content_length } = store.capabilities.features;
  const matches = matcherOf(filters);
  const open = () => openTranscripts({ format, paths, user_id, home, max_content_length });
  const matching = async function* (all: AsyncIterable<Fields>): AsyncGenerator<ExportedMemory> {
    for await (const one of all) {
      signal.throwIfAborted();
      const memory = one as unknown as ExportedMemory;
      if (matches(memory)) yield memory;
    }
  };

  const checked = emptySummary();
  const newest =
    values['dry-run'] || limit !== undefined ? await newestOf(matching(open().read(checked)), limit) : undefined;
  if (values['dry-run']) {
    run.say(summaryText(checked, paths));
    const count = newest?.size ?? 0;
    run.terminal.stdout.write(
      values.json ? `${JSON.stringify({ memories: count, ...checked })}\n` : `${memories(count)} would be stored.\n`,
    );
    return 0;
  }
  run.say(vectorsText(null, store));
  const copy = createCopy(store, {
    ...request,
    signal,
    stored: (counts) => run.progress({ done: total(counts), total: newest?.size, perMinute }),
    placeOf: ({ source }) => `session ${source?.ref}`,
  });
  run.onStop(() => `${memories(copy.counts.stored)} stored; the same command stores nothing twice`);
  const transcripts = open();
  const summary = emptySummary();
  const size = Math.min(PAGE, perMinute ?? PAGE);
  for await (const page of inPages(matching(transcripts.read(summary)), size)) {
    await copy.page(newest ? page.filter(({ id }) => newest.has(id)) : page);
  }
  run.end();
  run.say(summaryText(summary, paths));
  if (values.watch) {
    run.say('The sessions are followed until this command is stopped.');
    for (;;) {
      await setTimeout(PAUSE_MS, undefined, { signal });
      for await (const page of inPages(matching(transcripts.changed()), size)) await copy.page(page);
    }
  }
  return outcome(copy.counts, request, run, summary);
}

/** The ids of the newest memories. */
async function newestOf(all: AsyncIterable<ExportedMemory>, limit = Number.POSITIVE_INFINITY): Promise<Set<string>> {
  const found: { readonly id: string; readonly at: string }[] = [];
  for await (const { id, created_at } of all) found.push({ id, at: created_at });
  found.sort((a, b) => (a.at > b.at ? -1 : 1));
  return new Set(found.slice(0, limit).map(({ id }) => id));
}

/** How much was read, and what was left out and why. */
function summaryText({ sessions, messages, masked, left_out, not_read }: Summary, paths: readonly string[]): string {
  const reasons = Object.entries(left_out).filter(([, count]) => count > 0);
  return [
    `Sessions in ${paths.join(' and ')}: ${number(sessions)}, with messages worth keeping: ${number(messages)}.`,
    ...(masked > 0 ? [`Secrets masked: ${number(masked)}.`] : []),
    ...(reasons.length > 0 ? ['Left out:'] : []),
    ...reasons.map(([reason, count]) => `  ${REASONS[reason as Reason]}: ${number(count)}`),
    ...not_read.map((path) => `    ${printable(path)}`),
  ].join('\n');
}
