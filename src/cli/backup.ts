import { parseArgs } from 'node:util';
import { providerOptions } from '../config/config-options.ts';
import { ConfigError } from '../config/mistakes.ts';
import { configOfStore, inStore, ROOT } from '../config/mounted-stores.ts';
import { backup, restore } from '../registry.ts';
import { COMMON_OPTIONS, COMMON_USAGE, configFlags, configOf, STORE_OPTION, STORE_USAGE } from './arguments.ts';
import { explainError, report, type Terminal, terminalLog } from './terminal.ts';

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
  run('backup', argv, terminal, async (...where) => {
    const outcome = await backup(...where);
    if (!outcome) return undefined;
    const [bytes, ms] = outcome;
    return `Done: ${(bytes / 1024 ** 2).toFixed(1)} MB. Requests waited ${Math.ceil(ms)} ms.\n`;
  });

/** `omp-gateway restore`. Returns the exit status. */
export const runRestore = (argv: readonly string[], terminal: Terminal): Promise<number> =>
  run('restore', argv, terminal, async (...where) =>
    (await restore(...where)) ? 'Done: the gateway may start on this data folder.\n' : undefined,
  );

/** `work` returns what to print; undefined: the provider has no store in the data folder. */
async function run(
  command: string,
  argv: readonly string[],
  terminal: Terminal,
  work: (...where: Parameters<typeof backup>) => Promise<string | undefined>,
): Promise<number> {
  let parsed: ReturnType<typeof parse>;
  try {
    parsed = parse(argv);
  } catch (error) {
    return mistake((error as Error).message.replaceAll('\n', ' '));
  }
  const { values, positionals } = parsed;
  if (values.help) {
    terminal.stdout.write(BACKUP_USAGE);
    return 0;
  }
  const [file, extra] = positionals;
  if (file === undefined || extra !== undefined) return mistake(`${command} needs one file`);
  const { store = ROOT } = values;
  try {
    const config = configOfStore(configOf(configFlags(values), terminal), store);
    const { provider, data_dir } = config;
    const done = await work(provider, providerOptions(config), { data_dir, log: terminalLog(terminal) }, file);
    if (done === undefined) throw new Error(`the provider ${provider} stores nothing in a data folder`);
    // Standard output may be the backup.
    terminal[file === '-' ? 'stderr' : 'stdout'].write(done);
    return 0;
  } catch (error) {
    report(terminal, error instanceof ConfigError ? error.message : inStore(store, explainError(error)));
    return 1;
  }

  function mistake(message: string): number {
    report(terminal, `${message}\nTry 'omp-gateway ${command} --help'.`);
    return 2;
  }
}

const parse = (argv: readonly string[]) =>
  parseArgs({ args: [...argv], options: { ...COMMON_OPTIONS, ...STORE_OPTION }, allowPositionals: true });
