import type { RollbackItem } from '../../../clients/typescript/src/index.ts';
import type { Commands } from '../../cli/command.ts';
import { type Run, toOf } from '../../cli/move-run.ts';
import { memories, number } from '../../cli/progress.ts';
import { END, flag, STORES, type StoreRequest, text, timeIn } from '../../cli/store-arguments.ts';
import { storeCommand } from '../../cli/store-command.ts';
import { Mistake, printable } from '../../cli/terminal.ts';

async function runRollback(request: StoreRequest, run: Run): Promise<number> {
  const { values, filters } = request;
  if (filters.since === undefined) throw new Mistake('rollback needs --since, the time to go back to');
  const until = timeIn(values, 'until');
  const { terminal, signal } = run;
  const store = await run.open(toOf(request), 'to');
  const { name, client, capabilities } = store;
  if (!capabilities.features.rollback) throw new Error(`${name} cannot roll back (features.rollback is not true)`);
  const dry_run = values['dry-run'] === true;
  const counts = { delete: 0, restore: 0, keep: 0, deleted: 0 };
  const items: RollbackItem[] = [];
  const done = () => counts.delete + counts.restore;
  run.onStop(() => `${memories(done())} of ${name} ${dry_run ? 'would be' : 'are'} undone; the same command goes on`);
  const query = { since: filters.since, until, key: values.key as string | undefined, dry_run };
  const partial = new Set<string>();
  const without = new Set<string>();
  let deletes_known = true;
  for (let cursor: string | undefined, more = true; more; more = cursor !== undefined) {
    const page = await client.users.rollback(request.names[0] as string, { ...query, cursor }, { signal }).page();
    for (const item of page.items) {
      counts[item.action]++;
      if (values.json) items.push(item);
      else {
        run.end();
        terminal.stdout.write(`${rowOf(item)}\n`);
      }
    }
    for (const name of page['x-partial'] ?? []) partial.add(name);
    for (const name of page['x-without'] ?? []) without.add(name);
    ({ deletes_known } = page);
    cursor = page.next_cursor ?? undefined;
    run.progress({ done: done() });
  }
  run.end();
  const lacking = { 'x-partial': [...partial], 'x-without': [...without] };
  const outcome = { dry_run, ...counts, deletes_known, ...lacking, items };
  terminal.stdout.write(values.json ? `${JSON.stringify(outcome, null, 2)}\n` : `${sum()}\n`);
  return partial.size > 0 ? 1 : 0;

  function sum(): string {
    const gone = deletes_known ? number(counts.deleted) : 'without an audit log it is not known what';
    const left = [
      ...[...partial].map((name) => ` Nothing of ${printable(name)}, which does not answer: the same command goes on.`),
      ...[...without].map((name) => ` Nothing of ${printable(name)}, which cannot roll back.`),
    ];
    const rest = `${number(counts.keep)} kept; ${gone} had been deleted.${left.join('')}`;
    return dry_run
      ? `Dry run: ${number(counts.delete)} to delete, ${number(counts.restore)} to restore, ${rest}`
      : `${partial.size > 0 ? 'Not all' : 'Done'}: ${number(counts.delete)} deleted, ${number(counts.restore)} restored, ${rest}`;
  }
}

const REASONS = {
  changed_since: 'somebody else has changed it too',
  no_version: 'the version before is not known',
  rolled_back: 'undone already',
  unchanged: 'it says what it said before',
  rejected: 'the store does not take the version back',
} satisfies Record<NonNullable<RollbackItem['reason']>, string>;

/** Characters of a memory that a row shows. */
const SHOWN = 60;

/** A row of the table: action, id, what it means, and how the memory begins. */
function rowOf({ action, id, reason, version, memory }: RollbackItem): string {
  const why = reason ? REASONS[reason] : action === 'restore' ? `version ${version}` : '';
  const note = action === 'deleted' ? (id === null ? 'all memories were erased' : 'it cannot be undone') : why;
  const text = memory?.content.replaceAll(/\s+/g, ' ') ?? '';
  const shown = text.length > SHOWN ? `${text.slice(0, SHOWN)}…` : text;
  return `${action.padEnd(7)}  ${printable(id ?? '-')}  ${[note, shown].filter(Boolean).map(printable).join(': ')}`;
}

export const commands: Commands = {
  rollback: storeCommand({
    usage: `Usage: omp-gateway rollback USER --since WHEN [--to STORE] [options]

Undoes what was written to the memories of a user in a time: deletes what was
added, and gives what was changed its version before back, unless somebody else
has changed it since. Prints what it does with each memory; look at it with
--dry-run first. Deletes cannot be undone: it names them. After an interruption,
the same command goes on.

${STORES}
                      Its key needs the grants write:* and delete:*

Options:
  --since WHEN        What was written at or after this time (ISO 8601)
  --until WHEN        And at or before this time (default: until now)
  --key NAME          Only what this key wrote (or the subject of a token; '':
                      callers without a key)
  --dry-run           Change nothing
  --to STORE          Default: config
${END}`,
    options: { since: text, until: text, key: text, to: text, 'dry-run': flag },
    positionals: ['USER'],
    run: runRollback,
  }),
};
