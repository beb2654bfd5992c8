import type { ReembedOutcome, ReembedState } from '#contract';
import { auditOptions } from '../config/access-options.ts';
import { embeddingOptions } from '../config/embedding-options.ts';
import { ConfigError } from '../config/given.ts';
import { loadConfig } from '../config/load.ts';
import { providerOptions } from '../config/provider-options.ts';
import type { Config } from '../config/schema.ts';
import { openEmbedder } from '../embedding/open.ts';
import { reembed } from '../registry.ts';
import { explainError } from './explain-error.ts';
import type { Terminal } from './keys.ts';
import { type Asked, parseReembedArguments, REEMBED_USAGE } from './reembed-arguments.ts';
import { progressLine, reembedText } from './reembed-output.ts';

export interface ReembedTerminal extends Terminal {
  readonly stderr: Terminal['stderr'] & { readonly isTTY?: boolean };
}

/**
 * `omp-gateway reembed`: progress goes to standard error, the outcome to standard output. Returns the exit status: 0,
 * 1 when it failed or was stopped, 2 when the arguments make no sense.
 */
export async function runReembed(argv: readonly string[], terminal: ReembedTerminal): Promise<number> {
  const { env, stdout, stderr } = terminal;
  const parsed = parseReembedArguments(argv);
  if (parsed.action === 'help') {
    stdout.write(REEMBED_USAGE);
    return 0;
  }
  if (parsed.action === 'mistake') {
    tell(terminal, parsed.message);
    return 2;
  }
  const { asked, flags } = parsed;
  const progress = showProgress(stderr);
  try {
    const { config, warnings } = loadConfig({ flags, env });
    for (const warning of warnings) tell(terminal, warning);
    const outcome = await untilStopped((signal) => work(config, asked, { signal, progress: progress.show, terminal }));
    progress.end();
    stdout.write(asked.json ? `${JSON.stringify(outcome, null, 2)}\n` : reembedText(outcome, asked));
    return outcome.switched || asked.dry_run ? 0 : 1;
  } catch (error) {
    progress.end();
    tell(terminal, error instanceof ConfigError ? error.message : explainError(error));
    return 1;
  }
}

const tell = ({ stderr }: Terminal, message: string) => stderr.write(`omp-gateway: ${message}\n`);

interface Around {
  readonly signal: AbortSignal;
  readonly terminal: Terminal;
  progress(state: ReembedState): void;
}

async function work(config: Config, asked: Asked, { signal, terminal, progress }: Around): Promise<ReembedOutcome> {
  const { provider, search, data_dir } = config;
  // Told before a model is loaded, or a service is asked.
  if (provider !== 'postgres') throw new Error(notHere(provider));
  if (search.mode === 'keyword') {
    throw new Error('OMP_SEARCH_MODE is keyword, which has no embedder; set it to hybrid or vector');
  }
  const log = quietLog(terminal);
  const embedder = await openEmbedder(embeddingOptions(config), log);
  try {
    const context = { embedder, ranking: search, audit: auditOptions(config), data_dir, log };
    const { json: _, ...request } = { ...asked, signal, progress };
    const outcome = await reembed(provider, { options: providerOptions(config), context, request });
    if (!outcome) throw new Error(notHere(provider));
    return outcome;
  } finally {
    await embedder.close();
  }
}

const notHere = (provider: string): string =>
  `the provider ${provider} has no memories that could be embedded anew in place; fill another store with the new embedder instead`;

const quietLog = (terminal: Terminal) => {
  const line = (_fields: object, message: string) => void tell(terminal, message);
  return { info: () => {}, warn: line, error: line };
};

const STOPPED = ['SIGINT', 'SIGTERM'] as const;

/** The first signal asks the work to stop; a second one ends the process at once. */
async function untilStopped<Result>(work: (signal: AbortSignal) => Promise<Result>): Promise<Result> {
  const stopping = new AbortController();
  const stop = () => {
    for (const signal of STOPPED) process.removeListener(signal, stop);
    stopping.abort(new Error('stopped'));
  };
  for (const signal of STOPPED) process.once(signal, stop);
  try {
    return await work(stopping.signal);
  } finally {
    for (const signal of STOPPED) process.removeListener(signal, stop);
  }
}

/** Where no terminal rewrites the line: how often there is a new one. */
const LINE_EVERY_MS = 10_000;

function showProgress(stderr: ReembedTerminal['stderr']) {
  let first: { readonly at: number; readonly done: number } | undefined;
  let told = Number.NEGATIVE_INFINITY;
  let open = false;
  return {
    show(state: ReembedState): void {
      const now = performance.now();
      first ??= { at: now, done: state.done };
      const seconds = (now - first.at) / 1_000;
      const line = progressLine(state, seconds > 0 ? (state.done - first.done) / seconds : 0);
      if (stderr.isTTY) {
        stderr.write(`\r\x1b[K${line}`);
        open = true;
      } else if (now - told >= LINE_EVERY_MS) {
        stderr.write(`${line}\n`);
        told = now;
      }
    },
    /** Ends a line that is being rewritten. */
    end(): void {
      if (open) stderr.write('\n');
      open = false;
    },
  };
}
