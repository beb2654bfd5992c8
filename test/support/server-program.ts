import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { eventually } from './eventually.ts';

interface Settings {
  readonly args?: readonly string[];
  /** Its whole environment; unset: that of the test. */
  readonly env?: Readonly<Record<string, string | undefined>>;
}

/** The server of a database, with an empty folder as its own and as working directory, until it is closed. `ready` throws while it is not. */
export async function openServerProgram(
  program: string,
  settings: (folder: string) => Settings,
  ready: () => Promise<unknown>,
) {
  const folder = await mkdtemp(join(tmpdir(), 'omp-server-'));
  let server: ChildProcess | undefined;
  const start = async () => {
    const { args = [], env } = settings(folder);
    server = spawn(program, args, { cwd: folder, stdio: 'ignore', ...(env && { env }) });
    const ended = once(server, 'exit').then(([code]) => Promise.reject(new Error(`${program} ended with ${code}`)));
    await Promise.race([eventually(ready), ended]);
    ended.catch(() => {});
  };
  const kill = async () => {
    if (!server || server.exitCode !== null || server.signalCode !== null) return;
    const ended = once(server, 'exit');
    server.kill('SIGKILL');
    await ended;
  };
  await start();
  return {
    folder,
    start,
    /** As by `kill -9`; `start` starts it again with what is stored. */
    kill,
    /** It answers nothing until it goes on. */
    freeze: () => server?.kill('SIGSTOP'),
    async close() {
      await kill();
      await rm(folder, { recursive: true, force: true });
    },
  };
}

/** Throws unless this address answers that all is well. */
export async function requireOk(url: string): Promise<void> {
  if (!(await fetch(url)).ok) throw new Error('not ready');
}
