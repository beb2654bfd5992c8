import type { Log } from '#contract';
import { loadConfig } from '../config/load.ts';
import type { Environment } from '../config/mistakes.ts';
import type { Config } from '../config/settings.ts';
import type { Flags } from './arguments.ts';

interface Output {
  readonly isTTY?: boolean;
  write(text: string): unknown;
}

/** The parts of `process` that a command uses. */
export interface Terminal {
  readonly env: Environment;
  readonly stdout: Output;
  readonly stderr: Output;
}

/** One message on standard error. */
export const report = ({ stderr }: Terminal, message: string): void => void stderr.write(`omp-gateway: ${message}\n`);

/** A log of warnings and errors as messages on standard error. */
export function terminalLog(terminal: Terminal): Log {
  const line = (_fields: object, message: string) => report(terminal, message);
  return { info: () => {}, warn: line, error: line };
}

/** The configuration; its warnings are reported. Throws `ConfigError`. */
export function configOf(flags: Flags, terminal: Terminal): Config {
  const { config, warnings } = loadConfig({ flags, env: terminal.env });
  for (const warning of warnings) report(terminal, warning);
  return config;
}

/** The messages of an error and of its causes, without stacks: for an operator, not for a debugger. */
export function explainError(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  return error.cause === undefined ? error.message : `${error.message}\n  because: ${explainError(error.cause)}`;
}

/** Replaces control characters, which a terminal would interpret; names from outside may contain them. */
export const printable = (text: string): string => text.replace(/\p{Cc}/gu, '?');

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
