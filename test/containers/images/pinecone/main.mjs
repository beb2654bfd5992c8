import { spawn } from 'node:child_process';
import { connect, createServer } from 'node:net';

const { PORT = '', DIMENSION = '', METRIC = '' } = process.env;
const server = ['--import', 'tsx', '--conditions=source', 'test/pinecone-server/main.ts', '--port', '5999'];
// As the emulator: an older version of the interface, without the log sequence numbers behind consistency tokens.
const emulated = ['--dimension', DIMENSION, '--metric', METRIC, '--api-version', '2025-01', '--no-lsn'];
const child = spawn(process.execPath, [...server, ...emulated], { stdio: 'inherit' });
child.on('exit', (code) => process.exit(code ?? 1));
process.on('SIGTERM', () => child.kill());
createServer((from) => {
  const to = connect(5999, '127.0.0.1');
  from.pipe(to).pipe(from);
  for (const socket of [from, to]) socket.on('error', () => from.destroy() && to.destroy());
}).listen(Number(PORT), '0.0.0.0');
