import { existsSync } from 'node:fs';
import { rm } from 'node:fs/promises';
import type { ErasureReceipt, PersonLine } from '../../clients/typescript/src/index.ts';
import { asLines, fileOutput, partOf } from '../move/export-file.ts';
import type { MoveRequest } from './move-arguments.ts';
import { endedByReader, fromOf, inPages, PAGE, type Run, standardOutput } from './move-run.ts';
import { memories, number } from './progress.ts';
import { Mistake, printable } from './terminal.ts';

/** `omp-gateway person`. Returns the exit status: 1 also if the file lacks something, or something of the user may be left. */
export async function runPerson(request: MoveRequest, run: Run): Promise<number> {
  const [verb = '', user = ''] = request.names;
  if (verb === 'export') return exportPerson(user, request, run);
  if (verb === 'erase') return erasePerson(user, request, run);
  throw new Mistake(`expected export or erase, not ${printable(verb)}`);
}

async function exportPerson(user: string, request: MoveRequest, run: Run): Promise<number> {
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

async function erasePerson(user: string, request: MoveRequest, run: Run): Promise<number> {
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
