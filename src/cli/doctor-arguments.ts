import { type ParseArgsConfig, parseArgs } from 'node:util';
import { CONFIG_FILE } from '../config/settings.ts';

/** What `omp-gateway doctor --help` prints: at most 80 columns wide, ends with a newline. */
export const DOCTOR_USAGE = `Usage: omp-gateway doctor [--json] [options]

Looks at everything that serving takes: the configuration, the embedding
service, the database with its privileges, extension, tables and indexes.
Changes nothing, and tells all that is wrong at once, with what to do about it.

Options:
  --json              One JSON object {ok, findings} on standard output
  --config FILE       As of the gateway itself, and so is the environment
  --provider NAME
  --data-dir FOLDER
  -h, --help          Print this and exit

Exit status: 0 when the gateway can serve, also with warnings; 1 when there are
problems; 2 when the arguments make no sense. NO_COLOR and FORCE_COLOR hold.
`;

/** What is asked for. `flags` are as `loadConfig` takes them. */
export type DoctorArguments =
  | { readonly action: 'look'; readonly json: boolean; readonly flags: Readonly<Record<string, string>> }
  | { readonly action: 'help' }
  | { readonly action: 'mistake'; readonly message: string };

const CONFIG_FLAGS = [CONFIG_FILE.flag, 'provider', 'data-dir'] as const;
const OPTIONS = {
  ...Object.fromEntries(CONFIG_FLAGS.map((flag) => [flag, { type: 'string' as const }])),
  json: { type: 'boolean' },
  help: { type: 'boolean', short: 'h' },
} satisfies ParseArgsConfig['options'];

/** Reads the arguments that follow `doctor`. */
export function parseDoctorArguments(argv: readonly string[]): DoctorArguments {
  try {
    const { values } = parseArgs({ args: [...argv], options: OPTIONS });
    if (values.help) return { action: 'help' };
    const { json = false, help: _, ...flags } = values;
    return { action: 'look', json, flags: flags as Record<string, string> };
  } catch (error) {
    const message = (error as Error).message.replaceAll('\n', ' ');
    return { action: 'mistake', message: `${message}\nTry 'omp-gateway doctor --help'.` };
  }
}
