import { type ChildProcess, spawn } from 'node:child_process';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';

const MAIN = fileURLToPath(new URL('main.ts', import.meta.url));

export interface SpawnedServer {
  readonly url: string;
  readonly child: ChildProcess;
}

/** Runs the server with these arguments until it listens. It ends when this process does, and not by this one's Ctrl-C. */
export async function spawnServer(args: readonly string[]): Promise<SpawnedServer> {
  const child = spawn(process.execPath, ['--import', 'tsx', '--conditions=source', MAIN, ...args], {
    stdio: ['ignore', 'pipe', 'inherit', 'ipc'],
    detached: true,
  });
  for await (const line of createInterface({ input: child.stdout as NodeJS.ReadableStream })) {
    if (line.startsWith('{')) return { ...(JSON.parse(line) as { url: string }), child };
    process.stdout.write(`${line}\n`);
  }
  throw new Error('the Pinecone test server does not run');
}
