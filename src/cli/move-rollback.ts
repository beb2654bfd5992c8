import type { RollbackItem } from '../../clients/typescript/src/index.ts';
import type { MoveRequest } from './move-arguments.ts';
import { type Run, toOf } from './move-run.ts';
import { memories, number } from './progress.ts';
import { printable } from './terminal.ts';

/** `omp-gateway rollback`. Returns the exit status. */
export async function runRollback(request: MoveRequest, run: Run): Promise<number> {
  const { values, filters, until } = request;
  const { terminal, signal } = run;
  const store = await run.open(toOf(request), 'to');
  const { name, client, capabilities } = store;
  if (!capabilities.features.rollback) throw new Error(`${name} cannot roll back (features.rollback is not true)`);
  const dry_run = values['dry-run'] === true;
  const counts = { delete: 0, restore: 0, keep: 0, deleted: 0 };
  const items: RollbackItem[] = [];
  const done = () => counts.delete + counts.restore;
  run.onStop(() => `${memories(done())} of ${name} ${dry_run ? 'would be' : 'are'} undone; the same command goes on`);
  const query = { since: filters.since as string, until, key: values.key as string | undefined, dry_run };
  for await (const item of client.users.rollback(request.names[0] as string, query, { signal })) {
    counts[item.action]++;
    if (values.json) items.push(item);
    else {
      run.end();
      terminal.stdout.write(`${rowOf(item)}\n`);
    }
    run.progress({ done: done() });
  }
  run.end();
  terminal.stdout.write(values.json ? `${JSON.stringify({ dry_run, ...counts, items }, null, 2)}\n` : `${sum()}\n`);
  return 0;

  function sum(): string {
    const rest = `${number(counts.keep)} kept; ${number(counts.deleted)} had been deleted.`;
    return dry_run
      ? `Dry run: ${number(counts.delete)} to delete, ${number(counts.restore)} to restore, ${rest}`
      : `Done: ${number(counts.delete)} deleted, ${number(counts.restore)} restored, ${rest}`;
  }
}

const REASONS = {
  changed_since: 'somebody else has changed it since',
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
