import { once } from 'node:events';
import { type AddressInfo, createServer, type Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { describe, expect, it, onTestFinished, vi } from 'vitest';
import { type Collection, defineCollection } from '#provider';
import { eventually } from '../support/eventually.ts';
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

/** Aborts all work of a start and of doctor when the test says so. */
function hurried() {
  const late = new AbortController();
  const spy = vi.spyOn(AbortSignal, 'timeout').mockReturnValue(late.signal);
  onTestFinished(() => spy.mockRestore());
  return () => late.abort(new DOMException('too late', 'TimeoutError'));
}

const SERVERS = DATABASES.filter(({ name }) => name !== 'libSQL' && name !== 'LanceDB');

it.each(SERVERS)(
  '[Decision 64] a $name that takes connections and does not answer is named by doctor and by a start, which end',
  async ({ name, provider }) => {
    const { url, asked } = await silentServer();
    const options = { url, ...(name === 'Weaviate' && { grpc_url: url }) };
    const abort = hurried();
    const ends = [provider.diagnose?.(options, context()), provider.open(options, context())];
    const settled = Promise.allSettled(ends);
    await asked;
    abort();
    const message = expect.stringMatching(/^\w+ did not answer in time$/);
    expect(await settled).toEqual([
      { status: 'fulfilled', value: [{ area: 'connection', level: 'problem', message }] },
      { status: 'rejected', reason: expect.objectContaining({ message }) },
    ]);
  },
);

describe('[Decision 64] a start and doctor that fail keep no connection:', () => {
  const never = new Promise<never>(() => {});
  const TOO_LATE = /did not answer in time/;
  const ours = { dimensions: 4, empty: false };
  /** How a collection answers, and why nothing is served. */
  const CASES: readonly [string, Partial<Collection>, RegExp][] = [
    ['it opens too late', {}, TOO_LATE],
    ['it does not describe itself', { describe: () => never }, TOO_LATE],
    ['it does not show its head', { describe: async () => ours, fetch: () => never }, TOO_LATE],
    ['its vectors have another length', { describe: async () => ({ ...ours, dimensions: 5 }) }, /5 dimensions/],
  ];

  it.each(CASES)('%s', async (name, answers, why) => {
    const abort = hurried();
    let show = () => {};
    const shown = new Promise<void>((resolve) => {
      show = resolve;
    });
    // Some clients throw when they are closed.
    const close = vi.fn(() => {
      throw new Error('cannot be closed');
    });
    const nothing = async () => {};
    const collection = { traits: { filters: [] }, prepare: nothing, ping: nothing, close, ...answers };
    const provider = defineCollection({
      ...{ specVersion: 2, name: 'test', title: 'Test', failure: () => undefined },
      async open() {
        await shown;
        return collection as unknown as Collection;
      },
    });
    const ends = Promise.allSettled([provider.open({}, context()), provider.diagnose?.({}, context())]);
    if (name !== 'it opens too late') show();
    await new Promise(setImmediate);
    abort();
    expect(await ends).toEqual([
      { status: 'rejected', reason: expect.objectContaining({ message: expect.stringMatching(why) }) },
      { status: 'fulfilled', value: [expect.objectContaining({ message: expect.stringMatching(why) })] },
    ]);
    show();
    await eventually(() => expect(close).toHaveBeenCalledTimes(2));
  });
});
