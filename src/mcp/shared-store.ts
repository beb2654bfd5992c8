import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { chmodSync, closeSync, lstatSync, mkdirSync, openSync, rmSync } from 'node:fs';
import { createServer, type IncomingMessage, request, type Server, type ServerResponse } from 'node:http';
import { join, resolve } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { z } from 'zod';
import { invalidRequest, OmpError } from '#contract';
import { requireBounds } from '../verbs/fields.ts';
import type { Verb } from '../verbs/verb.ts';
import { MAX_MESSAGE_VALUES } from './names.ts';
import type { Supported } from './server.ts';
import { TOOLS, type UserMemories } from './tools.ts';

/**
 * One store for all processes of `omp-gateway mcp` on a data folder. The process that has the lock in it opens the store, and serves it
 * to the others on a unix socket that only this user reaches; when it ends, in whatever way, the kernel releases the lock, and the
 * next call of another process takes it and opens the store. A change is answered once the store has it, so none that was
 * acknowledged depends on the process.
 */
export interface SharedStore {
  /** Opens the store, or finds the process that has it open. Rejects as `open` does, also if that of the other process did. */
  ready(): Promise<OpenedStore>;
  memoriesOf(user_id: string): UserMemories;
  /** Finishes running requests, those of other processes too, and closes the store. */
  close(): Promise<void>;
}

export interface OpenedStore {
  memoriesOf(user_id: string): UserMemories;
  /** Undefined: another process has it open. */
  readonly supported?: Supported;
  close(): Promise<void>;
}

export interface SharingOptions {
  /** Undefined: every process opens the store for itself. */
  readonly data_dir: string | undefined;
  open(): Promise<OpenedStore>;
  /** The error that another process gets. */
  toError(error: unknown): OmpError;
  /** Limit for a request of another process, in bytes. */
  readonly max_bytes: number;
  /** A process that has the store and sends nothing for so long does not run. Longer than a request may take. */
  readonly max_silence_ms: number;
  /** Whether an add may be repeated with an idempotency key. */
  readonly idempotent: boolean;
}

/** The longest path of a unix socket on every system. The store of a longer one is not shared. */
const MAX_PATH_BYTES = 103;
/** Between two looks whether a process that ends has released the lock, in milliseconds. */
const PAUSE_MS = 50;
/** Between two signs of life of the process that has the store, in milliseconds. */
const PULSE_MS = 1_000;

/** Nothing is opened before `ready` or the first call. */
export function shareStore(options: SharingOptions): SharedStore {
  const { data_dir, max_silence_ms } = options;
  const folder = join(resolve(data_dir ?? ''), 'mcp');
  const socket = join(folder, 'socket');
  const isShared = data_dir !== undefined && Buffer.byteLength(socket) <= MAX_PATH_BYTES;
  let reached: Promise<OpenedStore> | undefined;
  const closing = new AbortController();

  const reach = (): Promise<OpenedStore> => {
    reached ??= find();
    const current = reached;
    // The next call tries again.
    current.catch(() => forget(current));
    return current;
  };
  const forget = (one: Promise<OpenedStore>) => {
    if (reached === one) reached = undefined;
  };
  const find = async (): Promise<OpenedStore> => {
    if (!isShared) return options.open();
    makePrivate(folder);
    for (;;) {
      closing.signal.throwIfAborted();
      const release = await lock(folder);
      if (release) return own(socket, release, options);
      try {
        await ask(socket, { path: '/', signal: closing.signal, max_silence_ms });
        return { memoriesOf, close: async () => {} };
      } catch (error) {
        if (!(error instanceof NotReached)) throw error;
      }
      // It has just begun, or is about to end.
      await sleep(PAUSE_MS);
    }
  };
  const memoriesOf = (user_id: string): UserMemories => ({
    async run(verb, input, signal) {
      const hasKey = verb.name === 'add' && options.idempotent;
      let asked = input;
      for (;;) {
        const current = reach();
        const store = await current;
        signal.throwIfAborted();
        if (store.memoriesOf !== memoriesOf) return store.memoriesOf(user_id).run(verb, asked, signal);
        // Another process has it. The key stays the same when the add is repeated.
        if (hasKey) asked = { idempotency_key: randomUUID(), ...asked };
        try {
          const body = JSON.stringify({ user_id, input: asked });
          return (await ask(socket, { path: `/${verb.name}`, body, signal, max_silence_ms })) as never;
        } catch (error) {
          signal.throwIfAborted();
          if (!(error instanceof NotReached)) throw error;
          forget(current);
          if (error.sent && verb.writes && !hasKey) throw new OmpError('provider_error', UNKNOWN, { cause: error });
        }
      }
    },
  });

  return {
    ready: reach,
    memoriesOf,
    async close() {
      closing.abort();
      await (await reached?.catch(() => undefined))?.close();
    },
  };
}

const UNKNOWN =
  'the process that has the memories open ended before it answered: read them before you repeat this change, which may be stored';

const silent = (ms: number) =>
  `another omp-gateway mcp has the memories open and sent nothing for ${ms / 1_000} seconds: let it continue, or end it or its client; read the memories before you repeat a change, which may be stored`;

/** Only this user may enter it: who reaches the socket reads all memories. */
function makePrivate(folder: string): void {
  try {
    mkdirSync(folder, { recursive: true, mode: 0o700 });
    // A link would give another folder this mode.
    if (!lstatSync(folder).isDirectory()) throw new Error('it is no folder');
    chmodSync(folder, 0o700);
  } catch (cause) {
    const message = `the memories cannot be opened: ${folder} must be a folder of this user; remove it, or set OMP_DATA_DIR`;
    throw new OmpError('provider_error', message, { cause });
  }
}

/** Releases the lock; undefined: another process has it. */
async function lock(folder: string): Promise<(() => void) | undefined> {
  // Has native parts, which a client of another gateway does not need.
  const { tryLock } = await import('fs-native-extensions');
  const file = openSync(join(folder, 'lock'), 'a+', 0o600);
  if (tryLock(file)) return () => closeSync(file);
  closeSync(file);
  return undefined;
}

/** Opens the store, and serves it. Others may ask before it is open. */
async function own(socket: string, release: () => void, options: SharingOptions): Promise<OpenedStore> {
  // Left by a process that was killed.
  rmSync(socket, { force: true });
  const opening = options.open();
  // A client that stops amid a request must not keep this process from ending.
  const server = createServer({ requestTimeout: 10_000, connectionsCheckingInterval: 2_000 }, (incoming, response) => {
    void answer(incoming, response, opening, options);
  });
  const end = () => new Promise<void>((done) => server.close(() => done()));
  try {
    await listen(server, socket);
    const { memoriesOf } = await opening;
    const close = async () => {
      await end();
      await opening.then((store) => store.close()).finally(release);
    };
    return { memoriesOf, close };
  } catch (error) {
    await end();
    await opening.then((store) => store.close()).catch(() => {});
    release();
    throw error;
  }
}

async function listen(server: Server, socket: string): Promise<void> {
  server.listen(socket);
  await once(server, 'listening');
  chmodSync(socket, 0o600);
}

/** What the tools run, by name. */
const VERBS: ReadonlyMap<string, Verb> = new Map(Object.values(TOOLS).map(({ verb }) => [verb.name, verb]));
const Asked = z.object({ user_id: z.string(), input: z.record(z.string(), z.unknown()) });

/** Answers the request of another process: `{"output"}` or `{"error"}`. */
async function answer(
  incoming: IncomingMessage,
  response: ServerResponse,
  opening: Promise<OpenedStore>,
  { toError, max_bytes }: SharingOptions,
): Promise<void> {
  const gone = new AbortController();
  response.once('close', () => gone.abort());
  response.setHeader('connection', 'close');
  // Space before JSON. A first start has no deadline.
  const pulse = setInterval(() => response.write(' '), PULSE_MS);
  const work = async () => {
    if (incoming.url === '/') return void (await opening);
    const verb = VERBS.get(incoming.url?.slice(1) ?? '');
    const asked = await readBody(incoming, max_bytes);
    requireBounds(asked, MAX_MESSAGE_VALUES);
    const { success, data } = Asked.safeParse(asked);
    if (!verb || !success) throw invalidRequest('no such request; use the same omp-gateway for all clients');
    return (await opening).memoriesOf(data.user_id).run(verb, data.input, gone.signal);
  };
  const result = await work().then(
    (output) => ({ output: output ?? null }),
    (error: unknown) => {
      const { code, message } = toError(error);
      return { error: { code, message } };
    },
  );
  clearInterval(pulse);
  response.end(JSON.stringify(result));
}

async function readBody(incoming: IncomingMessage, maxBytes: number): Promise<unknown> {
  const chunks: Buffer[] = [];
  let bytes = 0;
  for await (const chunk of incoming as AsyncIterable<Buffer>) {
    bytes += chunk.length;
    if (bytes > maxBytes) throw new OmpError('payload_too_large', `the request is larger than ${maxBytes} bytes`);
    chunks.push(chunk);
  }
  return JSON.parse(Buffer.concat(chunks).toString());
}

/** The process that has the store ended, or does not listen; `sent`: perhaps after it had the request. */
class NotReached extends Error {
  readonly sent: boolean;
  constructor(cause: NodeJS.ErrnoException) {
    super('the process that has the store does not answer', { cause });
    this.sent = cause.code !== 'ECONNREFUSED' && cause.code !== 'ENOENT';
  }
}

interface Request {
  /** The name of a verb; `/` waits until the store is open. */
  readonly path: string;
  readonly body?: string;
  readonly signal: AbortSignal;
  readonly max_silence_ms: number;
}

type Answer = { readonly output: unknown } | { readonly error: { code: OmpError['code']; message: string } };

/** One request on a connection of its own: an idle one might be closed just then. Throws `OmpError` or `NotReached`. */
async function ask(socketPath: string, { path, body = '', signal, max_silence_ms }: Request): Promise<unknown> {
  const answer = await new Promise<Answer>((resolve, reject) => {
    const failed = (error: Error) => reject(new NotReached(error));
    const outgoing = request(
      { socketPath, method: 'POST', path, agent: false, signal, timeout: max_silence_ms },
      async (response) => {
        try {
          const chunks: Buffer[] = [];
          for await (const chunk of response) chunks.push(chunk);
          resolve(JSON.parse(Buffer.concat(chunks).toString()));
        } catch (error) {
          failed(error as Error);
        }
      },
    );
    outgoing.once('timeout', () => {
      reject(new OmpError('provider_error', silent(max_silence_ms)));
      outgoing.destroy();
    });
    outgoing.once('error', failed).end(body);
  });
  if ('error' in answer) throw new OmpError(answer.error.code, answer.error.message);
  return answer.output;
}
