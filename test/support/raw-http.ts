import { connect, type Socket } from 'node:net';
import type { Reply } from './client.ts';

/** HTTP as bytes, for requests that no client library would write. */
export interface RawConnection {
  readonly socket: Socket;
  write(bytes: string | Uint8Array): void;
  /** The next complete answer (interim 1xx ones are passed over). Rejects when the server closes without one. */
  next(options?: { readonly head?: boolean }): Promise<Reply>;
  /** Resolves when the server has closed the connection. */
  closed(): Promise<void>;
  destroy(): void;
}

export const connectRaw = (port: number): RawConnection => {
  const socket = connect(port, '127.0.0.1');
  let buffered = Buffer.alloc(0);
  let ended = false;
  let wake = (): void => {};
  socket.on('data', (chunk) => {
    buffered = Buffer.concat([buffered, chunk]);
    wake();
  });
  socket.on('error', () => {});
  socket.on('close', () => {
    ended = true;
    wake();
  });
  const until = async (done: () => boolean): Promise<void> => {
    while (!done()) {
      if (ended)
        throw new Error(`the server closed the connection; so far it sent ${JSON.stringify(buffered.toString())}`);
      await new Promise<void>((resolve) => {
        wake = resolve;
      });
    }
  };
  const take = (length: number): Buffer => {
    const taken = buffered.subarray(0, length);
    buffered = buffered.subarray(length);
    return taken;
  };
  const line = async (end: string): Promise<string> => {
    await until(() => buffered.includes(end));
    return take(buffered.indexOf(end) + end.length)
      .toString('latin1')
      .slice(0, -end.length);
  };
  const exactly = async (length: number): Promise<Buffer> => {
    await until(() => buffered.length >= length);
    return take(length);
  };
  const chunked = async (): Promise<Buffer> => {
    const parts: Buffer[] = [];
    for (;;) {
      const size = Number.parseInt(await line('\r\n'), 16);
      parts.push(await exactly(size));
      await line('\r\n');
      if (size === 0) return Buffer.concat(parts);
    }
  };
  const next: RawConnection['next'] = async ({ head = false } = {}) => {
    const [first = '', ...fields] = (await line('\r\n\r\n')).split('\r\n');
    const status = Number(/^HTTP\/1\.1 (\d{3})/.exec(first)?.[1]);
    if (status >= 100 && status < 200) return next({ head });
    const headers = new Headers(
      fields.map((field): [string, string] => {
        const colon = field.indexOf(':');
        return [field.slice(0, colon), field.slice(colon + 1).trim()];
      }),
    );
    const bodiless = head || status === 204 || status === 304;
    const length = Number(headers.get('content-length') ?? 0);
    const bytes = bodiless ? Buffer.alloc(0) : await (headers.has('transfer-encoding') ? chunked() : exactly(length));
    const text = bytes.toString();
    const json = text !== '' && headers.get('content-type')?.startsWith('application/json') === true;
    return { status, headers, text, body: json ? JSON.parse(text) : undefined };
  };
  return {
    socket,
    write: (bytes) => void socket.write(bytes),
    next,
    closed: () => (ended ? Promise.resolve() : new Promise((resolve) => socket.once('close', () => resolve()))),
    destroy: () => socket.destroy(),
  };
};

/** Sends the bytes on a connection of their own and returns the one answer to them. */
export const exchange = async (port: number, ...bytes: readonly (string | Uint8Array)[]): Promise<Reply> => {
  const connection = connectRaw(port);
  try {
    for (const part of bytes) connection.write(part);
    return await connection.next();
  } finally {
    connection.destroy();
  }
};

/** A request as bytes, with the headers every request needs. */
export const request = (
  method: string,
  path: string,
  headers: readonly string[] = [],
  body: string | Uint8Array = '',
): Buffer =>
  Buffer.concat([
    Buffer.from([`${method} ${path} HTTP/1.1`, 'Host: gateway', ...headers, '', ''].join('\r\n')),
    Buffer.from(body),
  ]);

/** A request with a JSON body and its true length. */
export const jsonRequest = (
  method: string,
  path: string,
  body: string | Uint8Array,
  headers: readonly string[] = [],
): Buffer =>
  request(
    method,
    path,
    ['Content-Type: application/json', `Content-Length: ${Buffer.byteLength(body)}`, ...headers],
    body,
  );
