import { type Log, OmpError } from '#contract';
import type { Environment } from '../config/mistakes.ts';

/** Numbers of ANSI escape sequences. The style `rewrite` erases the line of the cursor first. */
const STYLES = { bold: 1, dim: 2, red: 31, green: 32, yellow: 33 } as const;
export type Style = keyof typeof STYLES | 'rewrite';

interface Output {
  readonly isTTY?: boolean | undefined;
  /** What a terminal would interpret is escaped in the text; a style puts our own sequences around it. */
  write(text: string, style?: Style): unknown;
}

/** The parts of `process` that a command uses. */
export interface Terminal {
  readonly env: Environment;
  readonly stdout: Output;
  readonly stderr: Output;
}

/** `process` has two of these. */
interface Stream {
  readonly isTTY?: boolean | undefined;
  write(text: string): unknown;
}

/** The only way from a command to a terminal: whatever the command writes, its outputs escape it. */
export const terminalOf = ({
  env,
  stdout,
  stderr,
}: Record<'stdout' | 'stderr', Stream> & Pick<Terminal, 'env'>): Terminal => ({
  env,
  stdout: escaping(stdout),
  stderr: escaping(stderr),
});

const escaping = (output: Stream): Output => ({
  get isTTY() {
    return output.isTTY;
  },
  write(text, style) {
    const escaped = escapeControls(text);
    if (style === undefined) return output.write(escaped);
    return output.write(style === 'rewrite' ? `\r\u001b[K${escaped}` : `\u001b[${STYLES[style]}m${escaped}\u001b[0m`);
  },
});

/**
 * Escapes control characters and those that turn the direction of writing, as JSON would: JSON keeps its meaning, and output to
 * a pipe is the same. Line ends and tabs stay.
 */
export const escapeControls = (text: string): string =>
  text.replace(/(?!\r?\n|\t)[\p{Cc}\p{Bidi_Control}\u2028\u2029]/gu, escapeOf);

/** Escapes line breaks too: for a name from outside within a line. */
export const printable = (name: string): string => name.replace(/[\p{Cc}\p{Bidi_Control}\u2028\u2029]/gu, escapeOf);

const escapeOf = (character: string): string => `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`;

/** One message on standard error. */
export const report = ({ stderr }: Terminal, message: string): void => void stderr.write(`omp-gateway: ${message}\n`);

/** A log of warnings and errors as messages on standard error. */
export function terminalLog(terminal: Terminal): Log {
  const line = (_fields: object, message: string) => report(terminal, message);
  return { info: () => {}, warn: line, error: line };
}

/** The messages of an error and of its causes, without stacks: for an operator, not for a debugger. */
export function explainError(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  const cause = error.cause === undefined ? '' : explainError(error.cause);
  return cause === '' ? error.message : `${error.message}\n  because: ${cause}`;
}

/** The arguments are wrong; the message says what is right. */
export class Mistake extends Error {}

/**
 * Runs a command and reports why it fails. `work` returns the exit status, or asks for the usage. Returns the exit status: that of the
 * work; 1: it failed; 2: wrong arguments.
 */
export async function runCommand(
  name: string,
  usage: string,
  terminal: Terminal,
  work: () => Promise<number | 'help'>,
): Promise<number> {
  try {
    const status = await work();
    if (status !== 'help') return status;
    terminal.stdout.write(usage);
    return 0;
  } catch (error) {
    const ofParser = /^ERR_PARSE_ARGS/.test((error as NodeJS.ErrnoException).code ?? '');
    // The message of such an error says everything; its cause adds nothing.
    const isComplete = error instanceof OmpError && error.code === 'invalid_request';
    const explained = isComplete ? error.message : explainError(error);
    const message = ofParser ? (error as Error).message.replaceAll('\n', ' ') : explained;
    const isMistake = ofParser || error instanceof Mistake;
    report(terminal, isMistake ? `${message}\nTry 'omp-gateway ${name} --help'.` : message);
    return isMistake ? 2 : 1;
  }
}

const SIGNALS = ['SIGINT', 'SIGTERM'] as const;

/** The first signal asks the work to stop; a second one ends the process at once. */
export async function untilSignal<Result>(work: (signal: AbortSignal) => Promise<Result>): Promise<Result> {
  const stopping = new AbortController();
  const stop = () => {
    for (const signal of SIGNALS) process.removeListener(signal, stop);
    stopping.abort(new Error('stopped'));
  };
  for (const signal of SIGNALS) process.once(signal, stop);
  try {
    return await work(stopping.signal);
  } finally {
    for (const signal of SIGNALS) process.removeListener(signal, stop);
  }
}
