import { parseArgs } from 'node:util';
import { COMMON_OPTIONS, type Flags, flagsIn } from './config-flags.ts';

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
  | { readonly action: 'look'; readonly json: boolean; readonly flags: Flags }
  | { readonly action: 'help' }
  | { readonly action: 'mistake'; readonly message: string };

/** Reads the arguments that follow `doctor`. */
export function parseDoctorArguments(argv: readonly string[]): DoctorArguments {
  try {
    const { values } = parseArgs({ args: [...argv], options: { ...COMMON_OPTIONS, json: { type: 'boolean' } } });
    if (values.help) return { action: 'help' };
    return { action: 'look', json: values.json === true, flags: flagsIn(values) };
  } catch (error) {
    const message = (error as Error).message.replaceAll('\n', ' ');
    return { action: 'mistake', message: `${message}\nTry 'omp-gateway doctor --help'.` };
  }
}
