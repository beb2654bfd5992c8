import { runMove } from '../../src/cli/move.ts';
import type { MoveCommand } from '../../src/cli/move-arguments.ts';
import { openStore } from '../../src/serve.ts';
import { commandHere } from '../support/command.ts';

/** Runs a command that moves memories in this process. */
export const runHere = ([command, ...argv]: readonly string[], env: Readonly<Record<string, string>> = {}) =>
  commandHere((terminal) => runMove(command as MoveCommand, argv, terminal, openStore), env);
