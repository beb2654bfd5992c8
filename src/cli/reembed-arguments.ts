import { type ParseArgsConfig, parseArgs } from 'node:util';
import { COMMON_OPTIONS, type Flags, flagsIn } from './config-flags.ts';

/** What `omp-gateway reembed --help` prints: at most 80 columns wide, ends with a newline. */
export const REEMBED_USAGE = `Usage: omp-gateway reembed [options]

Embeds every stored memory with the configured embedder, beside the vectors in
use, and then switches over. Gateways may go on serving with the old embedder
meanwhile; they are to be started again with the new one afterwards. (The
embedded Postgres belongs to one process: stop the gateway first.) However it
is interrupted, the next run goes on from there. It is also the way from
OMP_SEARCH_MODE=keyword to vectors.

Options:
  --dry-run           Only tell what there is to do; change nothing
  --per-minute N      Send at most so many memories to the embedder a minute
  --batch N           Memories read and written at a time (1 to 1000, default
                      100)
  --restart           Give up what was begun for another embedder, or begin
                      once more
  --json              Print the outcome as JSON
  --config FILE       As of the gateway itself, and so is the environment
  --provider NAME
  --data-dir FOLDER
  -h, --help          Print this and exit

Ends with status 0 when searches use the new vectors (or after a dry run), 1
when it failed or was stopped, 2 when the arguments make no sense.
`;

/** What is asked for. `flags` are as `loadConfig` takes them. */
export type ReembedArguments =
  | { readonly action: 'run'; readonly asked: Asked; readonly flags: Flags }
  | { readonly action: 'help' }
  | { readonly action: 'mistake'; readonly message: string };

export interface Asked {
  readonly dry_run: boolean;
  readonly restart: boolean;
  readonly per_minute: number | undefined;
  readonly batch_size: number;
  readonly json: boolean;
}

const OPTIONS = {
  ...COMMON_OPTIONS,
  'dry-run': { type: 'boolean' },
  restart: { type: 'boolean' },
  'per-minute': { type: 'string' },
  batch: { type: 'string' },
  json: { type: 'boolean' },
} satisfies ParseArgsConfig['options'];

const DEFAULT_BATCH = '100';
const MOST_BATCH = 1_000;
const MOST_PER_MINUTE = 10_000_000;

/** Reads the arguments that follow `reembed`. */
export function parseReembedArguments(argv: readonly string[]): ReembedArguments {
  try {
    const { values } = parseArgs({ args: [...argv], options: OPTIONS });
    if (values.help) return { action: 'help' };
    const batch_size = whole(values.batch ?? DEFAULT_BATCH, MOST_BATCH);
    if (batch_size === undefined) return mistake(`--batch must be a whole number from 1 to ${MOST_BATCH}`);
    const paced = values['per-minute'];
    const per_minute = paced === undefined ? undefined : whole(paced, MOST_PER_MINUTE);
    if (paced !== undefined && per_minute === undefined) {
      return mistake(`--per-minute must be a whole number from 1 to ${MOST_PER_MINUTE}`);
    }
    const { 'dry-run': dry_run = false, restart = false, json = false } = values;
    const asked = { dry_run, restart, per_minute, batch_size, json };
    return { action: 'run', asked, flags: flagsIn(values) };
  } catch (error) {
    return mistake((error as Error).message.replaceAll('\n', ' '));
  }
}

const whole = (text: string, most: number): number | undefined =>
  /^\d{1,9}$/.test(text) && Number(text) >= 1 && Number(text) <= most ? Number(text) : undefined;

const mistake = (message: string): ReembedArguments => ({
  action: 'mistake',
  message: `${message}\nTry 'omp-gateway reembed --help'.`,
});
