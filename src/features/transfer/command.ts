import { existsSync } from 'node:fs';
import { rm } from 'node:fs/promises';
import type { ErasureReceipt, PersonLine } from '../../../clients/typescript/src/index.ts';
import type { Commands } from '../../cli/command.ts';
import { endedByReader, fromOf, inPages, PAGE, type Run, standardOutput } from '../../cli/move-run.ts';
import { memories, number } from '../../cli/progress.ts';
import { END, flag, STORES, type StoreRequest, text } from '../../cli/store-arguments.ts';
import { storeCommand } from '../../cli/store-command.ts';
import { Mistake, printable } from '../../cli/terminal.ts';
import { asLines, fileOutput, partOf } from '../../move/export-file.ts';

async function runPerson(request: StoreRequest, run: Run): Promise<number> {
  const [verb = '', user = ''] = request.names;
  if (verb === 'export') return exportPerson(user, request, run);
  if (verb === 'erase') return erasePerson(user, request, run);
  throw new Mistake(`expected export or erase, not ${printable(verb)}`);
}

async function exportPerson(user: string, request: StoreRequest, run: Run): Promise<number> {
  const { values } = request;
  const path = values.out as string | undefined;
  if (path !== undefined && existsSync(path) && !values.replace) {
    throw new Error(`${path} exists; use --replace to replace it`);
  }
  const store = await run.open(fromOf(request), 'from');
  if (!store.capabilities.features.person_file) {
    throw new Error(`${store.name} cannot read all of a user (features.person_file is not true)`);
  }
  const output = path === undefined ? standardOutput() : await fileOutput(path);
  run.onStop(() => (path === undefined ? 'standard output is cut' : `${path} is not written`));
  let done = 0;
  let last: PersonLine | undefined;
  try {
    for await (const lines of inPages(store.client.users.file(user, { signal: run.signal }), PAGE)) {
      await output.write(asLines(lines));
      for (const line of lines) {
        if (line.type === 'memory') done++;
        if (line.type === 'missing') run.say(`missing: ${printable(line.what)}: ${printable(line.why)}`);
      }
      last = lines.at(-1);
      run.progress({ done });
    }
    await output.finish();
  } catch (error) {
    return endedByReader(error, run);
  } finally {
    await output.close();
    // Nothing of an unfinished file is left.
    if (path !== undefined) await rm(partOf(path), { force: true });
  }
  run.end();
  // Without it the client has thrown.
  const { type: _, ...end } = last as Extract<PersonLine, { type: 'end' }>;
  if (values.json && path !== undefined) run.terminal.stdout.write(`${JSON.stringify({ ...end, file: path })}\n`);
  else {
    const counts = `${memories(end.memories)}, ${number(end.versions)} versions, ${number(end.audit_entries)} audit entries`;
    run.say(`Done: ${counts} of ${store.name} in ${output.name}.`);
  }
  return end.complete ? 0 : 1;
}

async function erasePerson(user: string, request: StoreRequest, run: Run): Promise<number> {
  const { values } = request;
  if (values.out !== undefined || values.replace) throw new Mistake('--out and --replace are for person export');
  const { name, client, capabilities } = await run.open(fromOf(request), 'from');
  if (!capabilities.features.erase) throw new Error(`${name} cannot erase a user (features.erase is not true)`);
  run.onStop(() => 'the user may be erased in part; the same command goes on');
  const answer = await client.users.erase(user, { signal: run.signal });
  const { deleted, receipt } = answer;
  if (!receipt) throw new Error(`${name} deleted ${memories(deleted)}, and is too old to say what is left`);
  // In one line, as `restore --without-users` reads it.
  run.terminal.stdout.write(values.json ? `${JSON.stringify(answer)}\n` : receiptText(receipt));
  return receipt.complete ? 0 : 1;
}

function receiptText({ user_id, at, complete, stores, kept }: ErasureReceipt): string {
  const isKept = (kind: string) => kept.some(({ what }) => what === kind);
  const counts = (of: [string, number][]) =>
    of.map(([kind, count]) => `${number(count)} ${kind.replaceAll('_', ' ')}`).join(', ') || 'nothing';
  const lines = stores.map(({ name, removed, left, read_back }) => {
    const found = Object.entries(left).filter(([kind, count]) => count > 0 && !isKept(kind));
    const after = { counted: counts(found), listed: counts(found), impossible: 'unknown', failed: 'unknown' };
    return `${name}: removed ${counts(Object.entries(removed))}; left ${after[read_back]} (${read_back})`;
  });
  const why = kept.map(
    ({ what, count, why }) =>
      `kept: ${count === undefined ? '' : `${number(count)} `}${what.replaceAll('_', ' ')}: ${why}`,
  );
  const end = complete
    ? `Done: nothing else of ${user_id} is left, read back at ${at}.`
    : `Not all: something of ${user_id} may be left; the same command goes on.`;
  return [...lines, ...why, end].map((line) => `${printable(line)}\n`).join('');
}

export const commands: Commands = {
  person: storeCommand({
    usage: `Usage: omp-gateway person export USER [--out FILE] [options]
       omp-gateway person erase USER [options]

export writes all that is stored of a user to a file that a person can read:
memories, their versions and audit entries of every store, one JSON object a
line. What could not be read is named there, and on standard error. The file
gets its name once it is whole, and only its user may read it.

erase deletes all memories of a user in every store, and prints what it removed,
what was left when the stores were read back, and what is kept and why. There is
no way back. With --json it prints a line that "omp-gateway restore
--without-users" reads; exit status 1 also if something may be left.

${STORES}
                      Its key needs the grant read:*, for erase delete:*

Options of export:
  --out FILE          Default: standard output
  --replace           Replace a file that exists

Options:
  --from STORE        Default: config
${END}`,
    options: { out: text, replace: flag, from: text },
    positionals: ['export or erase', 'USER'],
    run: runPerson,
  }),
};
