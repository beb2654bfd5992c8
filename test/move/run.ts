import { loadCommand } from '../../src/cli/commands.ts';
import { openStore } from '../../src/serve.ts';
import { commandHere } from '../support/command.ts';

/** Runs a command that moves memories in this process. */
export const runHere = ([name = '', ...argv]: readonly string[], env: Readonly<Record<string, string>> = {}) =>
  commandHere(async (terminal) => (await loadCommand(name))(argv, terminal, openStore, name), env);
