import { runMove } from '../../src/cli/move.ts';
import type { MoveCommand } from '../../src/cli/move-arguments.ts';
import { terminalOf } from '../../src/cli/terminal.ts';
import { openStore } from '../../src/serve.ts';
import type { Ending } from '../process/gateway.ts';

/**
 * Runs a command of `omp-gateway` in this process, for which another would compute a second. What is about a process
 * itself, its end by a signal or a store of its own, starts one.
 */
export async function runHere([command, ...argv]: readonly string[]): Promise<Ending> {
  const written = { stdout: '', stderr: '' };
  const into = (name: keyof typeof written) => ({
    write: (text: string) => {
      written[name] += text;
    },
  });
  const terminal = terminalOf({ env: {}, stdout: into('stdout'), stderr: into('stderr') });
  const status = await runMove(command as MoveCommand, argv, terminal, openStore);
  return { status, signal: null, ...written };
}
