/**
 * Tries the gateway on Pinecone without an account: starts the test server and the built gateway on it. What follows on the
 * command line goes to the server (`--lag-ms 500`, `--help`); the gateway takes its settings from the environment as always.
 */
import { spawn } from 'node:child_process';
import { constants } from 'node:os';
import { fileURLToPath } from 'node:url';
import { spawnServer } from '../test/pinecone-server/spawn.ts';

const GATEWAY = fileURLToPath(new URL('../dist/src/main.js', import.meta.url));
/** Of the bundled embedder. */
const DIMENSION = '512';

const { url, child: server } = await spawnServer(['--dimension', DIMENSION, ...process.argv.slice(2)]).catch(() =>
  process.exit(process.argv.includes('--help') ? 0 : 1),
);
console.log(`A Pinecone test server runs on ${url}, and the gateway starts on it.`);
console.log('Everything is in memory: nothing is kept after it ends. Ctrl-C ends both.');

// In a group of its own it is signalled by this process alone, and once: a second signal would end it at once.
const gateway = spawn(process.execPath, [GATEWAY], {
  detached: true,
  stdio: 'inherit',
  env: { ...process.env, OMP_PROVIDER: 'pinecone', PINECONE_API_KEY: 'local', PINECONE_INDEX_HOST: url },
});
for (const signal of ['SIGINT', 'SIGTERM'] as const) process.on(signal, () => gateway.kill(signal));
process.on('SIGHUP', () => gateway.kill('SIGTERM'));

let lost = false;
server.once('exit', () => {
  lost = gateway.exitCode === null && gateway.signalCode === null;
  if (lost) console.error('The Pinecone test server ended; the gateway is ended too.');
  gateway.kill('SIGTERM');
});
gateway.once('exit', (status, signal) => {
  server.kill();
  process.exitCode = lost ? 1 : (status ?? 128 + constants.signals[signal as NodeJS.Signals]);
});
