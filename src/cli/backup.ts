import { parseArgs } from 'node:util';
import type { ProviderModule } from '#contract';
import { providerOptions } from '../config/config-options.ts';
import { withStore } from '../config/mounted-stores.ts';
import { providerModule } from '../registry.ts';
import { COMMON_OPTIONS, COMMON_USAGE, configFlags, configOf, STORE_OPTION, STORE_USAGE } from './arguments.ts';
import { Mistake, runCommand, type Terminal, terminalLog } from './terminal.ts';

/** What `omp-gateway backup --help` and `omp-gateway restore --help` print: at most 80 columns wide, ends with a newline. */
export const BACKUP_USAGE = `Usage: omp-gateway backup FILE [options]
       omp-gateway restore FILE [options]

Writes the embedded Postgres to a new file (a tar.gz of its data folder) with
everything in it: memories, vectors, keys, audit log, queue; - is standard
output. A gateway may serve meanwhile; its requests wait while the files are
copied. Run backup as the same user and with the same TMPDIR. Restore fills an
empty data folder from such a file, - is standard input, wholly or not at all;
start the gateway on it afterwards.

Options:
${STORE_USAGE}
${COMMON_USAGE}

Exit status: 0: done; 1: it failed; 2: wrong arguments.
`;

/** `omp-gateway backup`. Returns the exit status: 0; 1: it failed; 2: wrong arguments. */
export const runBackup = (argv: readonly string[], terminal: Terminal): Promise<number> =>
  run(
    'backup',
    argv,
    terminal,
    ({ backup }) =>
      backup &&
      (async (...where) => {
        const [bytes, ms] = await backup(...where);
        return `Done: ${(bytes / 1024 ** 2).toFixed(1)} MB. Requests waited ${Math.ceil(ms)} ms.\n`;
      }),
  );

/** `omp-gateway restore`. Returns the exit status. */
export const runRestore = (argv: readonly string[], terminal: Terminal): Promise<number> =>
  run(
    'restore',
    argv,
    terminal,
    ({ restore }) =>
      restore &&
      (async (...where) => {
        await restore(...where);
        return 'Done: the gateway may start on this data folder.\n';
      }),
  );

type Work = (...where: Parameters<NonNullable<ProviderModule['backup']>>) => Promise<string>;

/** `workOf` selects the work, which returns what to print; undefined: the provider has no store in the data folder. */
const run = (
  command: string,
  argv: readonly string[],
  terminal: Terminal,
  workOf: (provider: ProviderModule) => Work | undefined,
): Promise<number> =>
  runCommand(command, BACKUP_USAGE, terminal, async () => {
    const { values, positionals } = parseArgs({ args: [...argv], options: OPTIONS, allowPositionals: true });
    if (values.help) return 'help';
    const [file, extra] = positionals;
    if (file === undefined || extra !== undefined) throw new Mistake(`${command} needs one file`);
    const done = await withStore(configOf(configFlags(values), terminal), values.store, async (config) => {
      const { provider, data_dir } = config;
      const work = workOf(await providerModule(provider));
      if (!work) throw new Error(`the provider ${provider} stores nothing in a data folder`);
      return work(providerOptions(config), { data_dir, log: terminalLog(terminal) }, file);
    });
    // Standard output may be the backup.
    terminal[file === '-' ? 'stderr' : 'stdout'].write(done);
    return 0;
  });

const OPTIONS = { ...COMMON_OPTIONS, ...STORE_OPTION };
