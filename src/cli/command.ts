import type { Readable } from 'node:stream';
import type { Log } from '#contract';
import type { Config } from '../config/settings.ts';
import type { Gate } from '../verbs/gate.ts';
import type { Terminal } from './terminal.ts';

/** Opens the configured store without a server. */
export type OpenStore = (config: Config, log: Log) => Promise<{ readonly gate: Gate; close(): Promise<void> }>;

/** `process`, as far as commands use it. */
export interface CommandTerminal extends Terminal {
  readonly stdin: Readable;
  cwd(): string;
}

/** Runs a command with what follows `name`, the word that selects it. Returns the exit status: 0; 1: it failed; 2: wrong arguments. */
export type Command = (
  argv: readonly string[],
  terminal: CommandTerminal,
  openStore: OpenStore,
  name: string,
) => Promise<number>;

/** The commands of a file, by their words. */
export type Commands = Readonly<Record<string, Command>>;
