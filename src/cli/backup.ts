import { readFile, stat } from 'node:fs/promises';
import { parseArgs } from 'node:util';
import { z } from 'zod';
import type { Holdings, ProviderModule, RestoreContext } from '#contract';
import { auditOptions, providerOptions } from '../config/config-options.ts';
import { withStore } from '../config/mounted-stores.ts';
import { providerModule } from '../registry.ts';
import type { Commands } from './command.ts';
import { COMMON_OPTIONS, COMMON_USAGE, configFlags, configOf, STORE_OPTION, STORE_USAGE } from './options.ts';
import { Mistake, printable, runCommand, type Terminal, terminalLog } from './terminal.ts';

/** What `omp-gateway backup --help` and `omp-gateway restore --help` print: at most 80 columns wide, ends with a newline. */
const BACKUP_USAGE = `Usage: omp-gateway backup FILE [options]
       omp-gateway restore FILE [--without-users FILE] [options]

Writes the embedded Postgres to a new file (a tar.gz of its data folder) with
everything in it: memories, vectors, keys, audit log, queue; - is standard
output. A gateway may serve meanwhile; its requests wait while the files are
copied. Run backup as the same user and with the same TMPDIR. Restore fills an
empty data folder from such a file, - is standard input, wholly or not at all;
start the gateway on it afterwards. --without-users erases users that were
erased since the backup was made, before anything can serve the folder, and
prints what it removed: one id in a line, or the answer to DELETE
/users/{id}/memories in a line.

Options:
  --without-users FILE
              restore: users to leave out
${STORE_USAGE}
${COMMON_USAGE}

Exit status: 0: done; 1: it failed; 2: wrong arguments.
`;

/** `omp-gateway backup`. Returns the exit status: 0; 1: it failed; 2: wrong arguments. */
export const runBackup = (argv: readonly string[], terminal: Terminal): Promise<number> =>
  run('backup', argv, terminal, ({ backup }, without) => {
    if (without) throw new Mistake('--without-users is for restore');
    return (
      backup &&
      (async (...where) => {
        const [bytes, ms] = await backup(...where);
        return `Done: ${(bytes / 1024 ** 2).toFixed(1)} MB. Requests waited ${Math.ceil(ms)} ms.\n`;
      })
    );
  });

/** `omp-gateway restore`. Returns the exit status. */
export const runRestore = (argv: readonly string[], terminal: Terminal): Promise<number> =>
  run(
    'restore',
    argv,
    terminal,
    ({ restore }, users) =>
      restore &&
      (async (...where) => {
        const removed = await restore(...where, users);
        if (removed === true && users?.length)
          throw new Mistake(
            'this provider leaves no users out: all was restored. Erase them before the gateway starts',
          );
        const lines = (removed === true ? [] : removed).map(
          (counts, at) => `${printable(users?.[at] ?? '')}: removed ${listOf(counts)}\n`,
        );
        return `${lines.join('')}Done: the gateway may start on this data folder.\n`;
      }),
  );

const listOf = (counts: Holdings): string =>
  Object.entries(counts)
    .map(([kind, count]) => `${count} ${kind.replaceAll('_', ' ')}`)
    .join(', ');

/** Of a file of users: 100,000 of the longest ids. */
const MAX_USERS_BYTES = 64 * 1024 * 1024;

/** The users in a file: an id in a line, or a receipt, also in the answer that it came in. */
async function usersIn(file: string): Promise<string[]> {
  const { size } = await stat(file);
  if (size > MAX_USERS_BYTES) throw new Mistake(`${file} is larger than 64 MB`);
  // A byte order mark, as editors on Windows write it, is no part of an id.
  const lines = (await readFile(file, 'utf8')).replace(/^\uFEFF/, '').split(/\r?\n/);
  const users = lines.flatMap((line, at) => {
    if (!line.startsWith('{')) return line === '' ? [] : [line];
    try {
      const answer = Answer.parse(JSON.parse(line));
      return [('receipt' in answer ? answer.receipt : answer).user_id];
    } catch (cause) {
      throw new Mistake(`${file}, line ${at + 1}: neither a receipt nor its answer`, { cause });
    }
  });
  return [...new Set(users)];
}

const Receipt = z.object({ user_id: z.string() });
const Answer = z.union([z.object({ receipt: Receipt }), Receipt]);

type Work = (...where: [options: unknown, context: RestoreContext, file: string]) => Promise<string>;

/** `workOf` selects the work, which returns what to print; undefined: the provider has no store in the data folder. */
const run = (
  command: string,
  argv: readonly string[],
  terminal: Terminal,
  workOf: (provider: ProviderModule, users: readonly string[] | undefined) => Work | undefined,
): Promise<number> =>
  runCommand(command, BACKUP_USAGE, terminal, async () => {
    const { values, positionals } = parseArgs({ args: [...argv], options: OPTIONS, allowPositionals: true });
    if (values.help) return 'help';
    const [file, extra] = positionals;
    if (file === undefined || extra !== undefined) throw new Mistake(`${command} needs one file`);
    const { 'without-users': list } = values;
    const users = list === undefined ? undefined : await usersIn(list);
    const done = await withStore(configOf(configFlags(values), terminal), values.store, async (config) => {
      const { provider, data_dir } = config;
      const work = workOf(await providerModule(provider), users);
      if (!work) throw new Error(`the provider ${provider} stores nothing in a data folder`);
      const context = { data_dir, log: terminalLog(terminal), audit: auditOptions(config) };
      return work(providerOptions(config), context, file);
    });
    // Standard output may be the backup.
    terminal[file === '-' ? 'stderr' : 'stdout'].write(done);
    return 0;
  });

const OPTIONS = { ...COMMON_OPTIONS, ...STORE_OPTION, 'without-users': { type: 'string' } } as const;

export const commands: Commands = { backup: runBackup, restore: runRestore };
