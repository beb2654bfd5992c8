import { type ChildProcess, type ForkOptions, fork } from 'node:child_process';
import { once } from 'node:events';
import { resolve } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';

/** A server in a process of its own. Its output goes to /dev/null, as a log would to a file. */
export interface Child<Ready> {
  readonly ready: Ready;
  /** Sends a message and returns the answer. */
  ask(message: string): Promise<unknown>;
  stop(): Promise<void>;
}

const STOP_MS = 20_000;

/** Starts a built module with `argument` as JSON, and waits for its first message. */
export async function startServer<Ready>(file: string, argument: object, profile?: string): Promise<Child<Ready>> {
  const profiling = profile === undefined ? [] : ['--cpu-prof', `--cpu-prof-dir=${profile}`];
  // Without the condition "source", which this process has: imports of #contract then lead into dist.
  const child = spawn(file, { execArgv: [...profiling, '--import', 'tsx'] }, [JSON.stringify(argument)]);
  return { ready: (await answer(child)) as Ready, ...handles(child) };
}

/** Starts the gateway of a built checkout as its users do, except for the probe. Resolves before it listens. */
export function startGateway(
  env: Record<string, string>,
  checkout = fileURLToPath(new URL('..', import.meta.url)),
): Omit<Child<never>, 'ready'> {
  const execArgv = ['--import', new URL('servers/probe.js', import.meta.url).href];
  return handles(
    spawn(pathToFileURL(`${resolve(checkout)}/dist/src/main.js`).href, { execArgv, env: { ...process.env, ...env } }),
  );
}

const spawn = (file: string, options: ForkOptions, args: readonly string[] = []): ChildProcess =>
  fork(new URL(file, import.meta.url), args, { ...options, stdio: ['ignore', 'ignore', 'inherit', 'ipc'] });

const handles = (child: ChildProcess) => ({
  ask(message: string): Promise<unknown> {
    child.send(message);
    return answer(child);
  },
  /** Each child ends when the channel closes, so none outlives the benchmark. */
  async stop(): Promise<void> {
    if (child.exitCode !== null || child.signalCode !== null) return;
    const exited = once(child, 'exit');
    child.disconnect();
    const kill = setTimeout(() => child.kill('SIGKILL'), STOP_MS);
    await exited;
    clearTimeout(kill);
  },
});

async function answer(child: ChildProcess): Promise<unknown> {
  const settled = new AbortController();
  const exited = once(child, 'exit', settled).then(([code]) => {
    throw new Error(`a benchmark server ended with exit code ${code}`);
  });
  try {
    const [message] = await Promise.race([once(child, 'message', settled), exited]);
    return message;
  } finally {
    settled.abort();
    exited.catch(() => {});
  }
}
