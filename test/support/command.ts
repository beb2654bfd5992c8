import { tmpdir } from 'node:os';
import { Readable } from 'node:stream';
import type { CommandTerminal } from '../../src/cli/command.ts';
import { terminalOf } from '../../src/cli/terminal.ts';

/**
 * Runs a command in this process, for which another would compute a second: its exit status and what it wrote. What is about a
 * process itself, its end by a signal or a store of its own, starts one.
 */
export async function commandHere(
  run: (terminal: CommandTerminal) => Promise<number>,
  env: Readonly<Record<string, string>> = {},
  isTTY = false,
): Promise<{ readonly status: number; readonly stdout: string; readonly stderr: string }> {
  const written = { stdout: '', stderr: '' };
  const into = (name: keyof typeof written) => ({
    isTTY,
    write(text: string) {
      written[name] += text;
    },
  });
  const terminal = terminalOf({ env, stdout: into('stdout'), stderr: into('stderr') });
  const status = await run({ ...terminal, stdin: Readable.from([]), cwd: () => env.HOME ?? tmpdir() });
  return { status, ...written };
}
