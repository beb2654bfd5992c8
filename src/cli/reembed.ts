import { type ParseArgsConfig, parseArgs } from 'node:util';
import type { EmbedderIdentity, ReembedOutcome, ReembedState } from '#contract';
import { auditOptions, embeddingOptions, providerOptions } from '../config/config-options.ts';
import { withStore } from '../config/mounted-stores.ts';
import type { Config } from '../config/settings.ts';
import { openEmbedder } from '../embedding/open.ts';
import { providerModule } from '../registry.ts';
import type { Commands } from './command.ts';
import { COMMON_OPTIONS, COMMON_USAGE, configFlags, configOf, STORE_OPTION, STORE_USAGE } from './options.ts';
import { memories, number, ofTotal, showProgress } from './progress.ts';
import { Mistake, runCommand, type Terminal, terminalLog, untilSignal } from './terminal.ts';

/** What `omp-gateway reembed --help` prints: at most 80 columns wide, ends with a newline. */
const REEMBED_USAGE = `Usage: omp-gateway reembed [options]

Embeds every stored memory with the configured embedder, next to the vectors in
use, and then switches to the new ones. Gateways may keep serving with the old
embedder meanwhile; restart them with the new one afterwards. (The embedded
Postgres belongs to one process: stop the gateway first.) After an interruption,
the next run continues. This is also the way from OMP_SEARCH_MODE=keyword to
vectors.

Options:
  --dry-run           Only report what there is to do; change nothing
  --per-minute N      Send at most N memories per minute to the embedder
  --batch N           Memories read and written at a time (1 to 1000, default
                      100)
  --restart           Discard a run for another embedder, or start over
  --json              Print the outcome as JSON
${STORE_USAGE}
${COMMON_USAGE}

Exit status: 0: searches use the new vectors, or it was a dry run; 1: it failed
or was stopped; 2: wrong arguments.
`;

interface ReembedOptions {
  readonly dry_run: boolean;
  readonly restart: boolean;
  readonly per_minute: number | undefined;
  readonly batch_size: number;
  readonly json: boolean;
}

const OPTIONS = {
  ...COMMON_OPTIONS,
  ...STORE_OPTION,
  'dry-run': { type: 'boolean' },
  restart: { type: 'boolean' },
  'per-minute': { type: 'string' },
  batch: { type: 'string' },
  json: { type: 'boolean' },
} satisfies ParseArgsConfig['options'];

const DEFAULT_BATCH = '100';
const MAX_BATCH = 1_000;
const MAX_PER_MINUTE = 10_000_000;

/** The options that are only of this command. */
function readOptions(values: ReturnType<typeof parse>): ReembedOptions {
  const { 'dry-run': dry_run = false, restart = false, json = false, 'per-minute': paced } = values;
  const per_minute = paced === undefined ? undefined : whole('per-minute', paced, MAX_PER_MINUTE);
  return { dry_run, restart, json, per_minute, batch_size: whole('batch', values.batch ?? DEFAULT_BATCH, MAX_BATCH) };
}

const parse = (argv: readonly string[]) => parseArgs({ args: [...argv], options: OPTIONS }).values;

function whole(name: string, text: string, max: number): number {
  if (/^\d{1,9}$/.test(text) && Number(text) >= 1 && Number(text) <= max) return Number(text);
  throw new Mistake(`--${name} must be a whole number from 1 to ${max}`);
}

/**
 * `omp-gateway reembed`: progress goes to standard error, the outcome to standard output. Returns the exit status: 0; 1: it
 * failed or was stopped; 2: wrong arguments.
 */
export const runReembed = (argv: readonly string[], terminal: Terminal): Promise<number> =>
  runCommand('reembed', REEMBED_USAGE, terminal, async () => {
    const values = parse(argv);
    if (values.help) return 'help';
    const options = readOptions(values);
    const progress = showProgress(terminal.stderr);
    const outcome = await withStore(configOf(configFlags(values), terminal), values.store, (config) =>
      untilSignal((signal) => work(config, options, { signal, progress: progress.show, terminal })).finally(
        progress.end,
      ),
    );
    terminal.stdout.write(options.json ? `${JSON.stringify(outcome, null, 2)}\n` : reembedText(outcome, options));
    return outcome.switched || options.dry_run ? 0 : 1;
  });

interface Run {
  readonly signal: AbortSignal;
  readonly terminal: Terminal;
  progress(state: ReembedState): void;
}

async function work(
  config: Config,
  options: ReembedOptions,
  { signal, terminal, progress }: Run,
): Promise<ReembedOutcome> {
  const { provider, search, data_dir } = config;
  const { reembed } = await providerModule(provider);
  // Before a model is loaded or a service is called.
  if (!reembed) throw new Error(unsupported(provider));
  if (search.mode === 'keyword') {
    throw new Error('OMP_SEARCH_MODE is keyword, which uses no embedder; set it to hybrid or vector');
  }
  const log = terminalLog(terminal);
  const embedder = await openEmbedder(embeddingOptions(config), log);
  try {
    const context = { embedder, ranking: search, audit: auditOptions(config), data_dir, log };
    const { json: _, ...request } = { ...options, signal, progress };
    return await reembed(providerOptions(config), context, request);
  } finally {
    await embedder.close();
  }
}

const unsupported = (provider: string): string =>
  `the provider ${provider} cannot embed its memories again in place; fill another store with the new embedder instead`;

/** The outcome as text, with line ends. */
function reembedText(outcome: ReembedOutcome, { dry_run }: Pick<ReembedOptions, 'dry_run'>): string {
  const { from, to, total, done, embedded, switched } = outcome;
  const name = described(to);
  if (dry_run) return dryRun(outcome);
  if (!switched) {
    return `Stopped: ${ofTotal({ done, total })} embedded with ${name}. Searches use the vectors from before.\nRun "omp-gateway reembed" again to continue.\n`;
  }
  if (from && isSame(from, to)) {
    const missing = embedded === 0 ? 'there was nothing to do' : `${memories(embedded)} had none`;
    return `Done: ${memories(total)} with vectors of ${name}; ${missing}.\n`;
  }
  return `Done: ${memories(total)} with vectors of ${name}, which searches use from now on.
Restart the gateways with this embedder. New rows reuse the space of the old vectors; "vacuum full" or pg_repack
frees it at once, and makes exact searches as fast as before.
`;
}

function dryRun({ from, to, total, done, characters }: ReembedOutcome): string {
  const left = total - done;
  const now = from ? `made by ${described(from)}` : 'none yet';
  return `Vectors: ${now}; the configured embedder is ${described(to)}.
To be embedded: ${ofTotal({ done: left, total })}, ${number(characters ?? 0)} characters (about ${number(tokens(characters ?? 0))} tokens in English).
Nothing was changed.
`;
}

const described = ({ model, dimensions }: EmbedderIdentity): string => `"${model}" (${dimensions} dimensions)`;
const isSame = (a: EmbedderIdentity, b: EmbedderIdentity): boolean =>
  a.model === b.model && a.dimensions === b.dimensions;
/** English text has about four characters per token. */
const tokens = (characters: number): number => Math.ceil(characters / 4);

export const commands: Commands = { reembed: runReembed };
