import { once } from 'node:events';
import { type AddressInfo, createServer, type Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { expect, it, onTestFinished, vi } from 'vitest';
import { recordingLog } from '../support/gateway.ts';
import { hashingEmbedder } from '../support/hashing-embedder.ts';
import { DATABASES } from './databases.ts';

/** Takes connections and says nothing, as a server that shuts down or that a debugger holds. */
async function silentServer() {
  const sockets = new Set<Socket>();
  const server = createServer((socket) => void sockets.add(socket.on('error', () => {}))).listen(0, '127.0.0.1');
  await once(server, 'listening');
  onTestFinished(async () => {
    for (const socket of sockets) socket.destroy();
    await new Promise((closed) => server.close(closed));
  });
  const asked = once(server, 'connection');
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, asked };
}

const context = () => ({
  ...{ embedder: { ...hashingEmbedder(), model: 'one', dimensions: 4 }, audit: undefined, data_dir: tmpdir() },
  ...{ ranking: { mode: 'vector', keyword_weight: 0 } as const, log: recordingLog() },
});

const SERVERS = DATABASES.filter(({ name }) => name !== 'libSQL' && name !== 'LanceDB');

it.each(SERVERS)(
  '[Decision 64] a $name that takes connections and does not answer is named by doctor and by a start, which end',
  async ({ name, provider }) => {
    const { url, asked } = await silentServer();
    const options = { url, ...(name === 'Weaviate' && { grpc_url: url }) };
    const late = new AbortController();
    const spy = vi.spyOn(AbortSignal, 'timeout').mockReturnValue(late.signal);
    onTestFinished(() => spy.mockRestore());
    const ends = [provider.diagnose?.(options, context()), provider.open(options, context())];
    const settled = Promise.allSettled(ends);
    await asked;
    late.abort(new DOMException('too late', 'TimeoutError'));
    const message = expect.stringMatching(/^\w+ did not answer in time$/);
    expect(await settled).toEqual([
      { status: 'fulfilled', value: [{ area: 'connection', level: 'problem', message }] },
      { status: 'rejected', reason: expect.objectContaining({ message }) },
    ]);
  },
);
