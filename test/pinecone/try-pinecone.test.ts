import { spawn } from 'node:child_process';
import { resolve } from 'node:path';
import { describe, expect, it, onTestFinished } from 'vitest';
import { post } from '../pinecone-server/plain.ts';
import { type Program, temporaryFolder, watch } from '../process/gateway.ts';
import { clientOf } from '../support/client.ts';
import { eventually } from '../support/eventually.ts';

const SCRIPT = resolve('scripts/try-pinecone.ts');

function tryPinecone({ args = [], env = {} }: { args?: string[]; env?: Record<string, string> } = {}): Program {
  const folder = temporaryFolder();
  const program = watch(
    spawn(process.execPath, ['--import', 'tsx', '--conditions=source', SCRIPT, ...args], {
      env: { PATH: process.env.PATH, OMP_PORT: '0', OMP_DATA_DIR: folder, ...env },
      stdio: ['ignore', 'pipe', 'pipe'],
    }),
  );
  // Killed, it could not end the gateway.
  onTestFinished(async () => {
    program.child.kill('SIGTERM');
    await program.ended;
  });
  return program;
}

const SERVER = /test server runs on (http:\/\/[\d.:]+)/;
const GATEWAY = / listens on (http:\/\/[^"\s]+)/;
const reachable = (url: string) =>
  fetch(url).then(
    () => true,
    () => false,
  );

describe('trying the gateway on Pinecone without an account', () => {
  it('starts a test server and the gateway on it, and an interrupt ends both, the gateway in order', async () => {
    const program = tryPinecone({ args: ['--lag-ms', '200'] });
    const [, server = ''] = await program.output(SERVER);
    const [, gateway = ''] = await program.output(GATEWAY);
    const client = clientOf((path, init) => fetch(gateway + path, init));
    expect((await client.capabilities()).provider).toBe('pinecone');
    const memory = await client.add({ content: 'The key is under the mat.', user_id: 'u' });
    expect(await client.get(memory.id)).toMatchObject({ content: 'The key is under the mat.' });
    // The memory, and the record that describes the index.
    const stats = () => post({ url: server }, '/describe_index_stats', {});
    await eventually(async () => expect(await stats()).toMatchObject({ body: { totalVectorCount: 2 } }));

    program.child.kill('SIGINT');
    expect(await program.ended).toMatchObject({ status: 0, stdout: expect.stringContaining('stopping') });
    expect([await reachable(server), await reachable(gateway)]).toEqual([false, false]);
  });

  it('ends with the status of a gateway that does not start', async () => {
    const program = tryPinecone({ env: { OMP_PORT: 'none' } });
    const [, server = ''] = await program.output(SERVER);
    expect(await program.ended).toMatchObject({ status: 1, stderr: expect.stringContaining('OMP_PORT') });
    expect(await reachable(server)).toBe(false);
  });

  it('gives the server its options, and says which there are', async () => {
    expect(await tryPinecone({ args: ['--help'] }).ended).toMatchObject({
      status: 0,
      stdout: expect.stringContaining('--lag-writes'),
    });
    expect(await tryPinecone({ args: ['--lag', '1'] }).ended).toMatchObject({
      status: 1,
      stderr: expect.stringContaining("Unknown option '--lag'"),
    });
  });
});
