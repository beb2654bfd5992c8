import { createHash, type Hash } from 'node:crypto';
import { createReadStream } from 'node:fs';
import { type FileHandle, open, rename, rm } from 'node:fs/promises';
import type { Readable, Writable } from 'node:stream';
import { createGunzip, gzipSync } from 'node:zlib';
import { MAX_BYTES, parseJson, TOO_LONG } from './json.ts';

/** The version that this gateway writes; it reads no other. */
export const FORMAT = 1;

/** The first line of a file of memories. */
export interface Header {
  readonly omp_export: number;
  /** The provider, or the address of the gateway, that the memories come from. */
  readonly source: string;
  /** ISO 8601. */
  readonly exported_at: string;
  /** The embedder of the vectors in the file; null: it has none. */
  readonly embedding: { readonly model: string; readonly dimensions: number } | null;
  readonly filters: Readonly<Record<string, unknown>>;
}

/** A memory as on the wire. */
export type Line = Readonly<Record<string, unknown>>;

/** Where lines of JSON go. */
export interface Output {
  readonly name: string;
  /** How a text is written, without a change of what it means as JSON. */
  readonly escaped: (text: string) => string;
  /** Resolves to the bytes of the unfinished file, which are on the disk by then. */
  write(text: string): Promise<number>;
  /** Gives the file its name. */
  finish(): Promise<void>;
  close(): Promise<void>;
}

/** A new file that only its user may read. Removes an older one of this name. */
async function createPrivate(path: string): Promise<FileHandle> {
  // Its mode would stay.
  await rm(path, { force: true });
  return open(path, 'wx', 0o600);
}

export const partOf = (path: string): string => `${path}.part`;

/**
 * Writes `path`, under another name until it is finished; a name that ends in `.gz` is compressed. `bytes`: goes on with an unfinished
 * file after so many bytes.
 */
export async function fileOutput(path: string, bytes?: number): Promise<Output> {
  const part = partOf(path);
  const file = bytes === undefined ? await createPrivate(part) : await open(part, 'r+');
  if (bytes !== undefined) await file.truncate(bytes);
  let written = bytes ?? 0;
  return {
    name: path,
    escaped: (text) => text,
    async write(text) {
      // Each piece is a whole member, so that an unfinished file can be continued.
      const piece = path.endsWith('.gz') ? gzipSync(text) : Buffer.from(text);
      for (let done = 0; done < piece.length; ) {
        done += (await file.write(piece, done, piece.length - done, written + done)).bytesWritten;
      }
      await file.datasync();
      written += piece.length;
      return written;
    },
    finish: () => rename(part, path),
    close: () => file.close(),
  };
}

/** An output that cannot be continued, such as a pipe. Waits until its reader has taken what was written. */
export function streamOutput(name: string, output: Writable, escaped: Output['escaped']): Output {
  // The callback of the write has it too.
  output.on('error', () => {});
  return {
    name,
    escaped,
    write: (text) =>
      new Promise((resolve, reject) => output.write(escaped(text), (error) => (error ? reject(error) : resolve(0)))),
    finish: async () => {},
    close: async () => {},
  };
}

export const asLines = (values: readonly object[]): string =>
  values.map((value) => `${JSON.stringify(value)}\n`).join('');

/** Writes a header, one memory a line, and a last line with their number and the SHA-256 of all lines before it. */
export interface Writer extends Pick<Output, 'name' | 'close'> {
  readonly count: number;
  /** As `Output.write`. */
  write(memories: readonly Line[]): Promise<number>;
  /** Gives the file its name, after `whole`, which is called once all of it is on the disk. Resolves to the number of memories. */
  finish(whole?: () => Promise<void>): Promise<number>;
}

/** As `fileOutput`. What goes on with an unfinished file leaves `header` out. */
export async function openWriter(path: string, header: Header, bytes?: number): Promise<Writer> {
  const output = await fileOutput(path, bytes);
  if (bytes === undefined) return writerTo(output, header);
  const hash = createHash('sha256');
  let lines = 0;
  for await (const line of linesOf(partOf(path), path.endsWith('.gz'))) {
    hash.update(line);
    lines++;
  }
  return writerTo(output, undefined, { hash, count: lines - 1 });
}

export function writerTo(
  output: Output,
  header: Header | undefined,
  { hash, count } = { hash: createHash('sha256'), count: 0 },
): Writer {
  let first = header === undefined ? '' : asLines([header]);
  const put = (lines: readonly object[]) => {
    const text = first + asLines(lines);
    first = '';
    hash.update(output.escaped(text));
    return output.write(text);
  };
  return {
    name: output.name,
    close: output.close,
    get count() {
      return count;
    },
    async write(memories) {
      const bytes = await put(memories);
      count += memories.length;
      return bytes;
    },
    async finish(whole) {
      if (first !== '') await put([]);
      await put([{ count, sha256: hash.copy().digest('hex') }]);
      await whole?.();
      await output.finish();
      return count;
    },
  };
}

/**
 * The memories, after `onHeader` was called. Throws at the end if the file was cut or changed: a caller that must
 * not act on half a file reads it twice. `path` says whether `input` is compressed.
 */
export async function* readFile(
  path: string,
  onHeader: (header: Header) => void = () => {},
  input: string | Readable = path,
): AsyncGenerator<Line> {
  const hash: Hash = createHash('sha256');
  let count = -1;
  let previous: Buffer | undefined;
  for await (const line of linesOf(input, path.endsWith('.gz'))) {
    if (previous) {
      hash.update(previous);
      if (count < 0) onHeader(headerOf(previous));
      else yield parsed(previous, count + 2);
      count++;
    }
    previous = line;
  }
  const last = previous && previous.at(-1) === 10 ? parsed(previous, count + 2) : undefined;
  if (last?.count !== count || last.sha256 !== hash.digest('hex')) {
    throw new Error('the file was cut or changed: its last line does not match; export it again');
  }
}

/** Lines with their ends; the last may have none. */
async function* linesOf(from: string | Readable, compressed: boolean): AsyncGenerator<Buffer> {
  const file = typeof from === 'string' ? createReadStream(from) : from;
  let number = 1;
  const input: Readable = compressed ? file.pipe(createGunzip()) : file;
  if (input !== file) file.once('error', (error: Error) => input.destroy(error));
  let parts: Buffer[] = [];
  let bytes = 0;
  try {
    for await (const chunk of input as AsyncIterable<Buffer>) {
      let start = 0;
      for (let end = chunk.indexOf(10); end >= 0; end = chunk.indexOf(10, start)) {
        yield Buffer.concat([...parts, chunk.subarray(start, end + 1)]);
        parts = [];
        bytes = 0;
        number++;
        start = end + 1;
      }
      parts.push(chunk.subarray(start));
      bytes += chunk.length - start;
      if (bytes > MAX_BYTES) throw new Error(`line ${number} ${TOO_LONG}`);
    }
  } catch (error) {
    if (!String((error as NodeJS.ErrnoException).code).startsWith('Z_')) throw error;
    throw new Error('the file was cut or changed: it cannot be decompressed; export it again', { cause: error });
  }
  if (bytes > 0) yield Buffer.concat(parts);
}

function headerOf(line: Buffer): Header {
  const header = parsed(line, 1);
  if (header.omp_export === FORMAT) return header as unknown as Header;
  throw new Error(`line 1 is no header of an export in format ${FORMAT}`);
}

function parsed(line: Buffer, number: number): Line {
  try {
    const value = parseJson(line);
    if (value && typeof value === 'object' && !Array.isArray(value)) return value as Line;
  } catch (error) {
    if (error instanceof RangeError) throw new Error(`line ${number} ${error.message}`);
  }
  throw new Error(`line ${number} is not a JSON object`);
}

/** Replaces a small file as a whole. `indent`: for people. */
export async function replaceFile(path: string, value: unknown, indent?: number): Promise<void> {
  const file = await createPrivate(`${path}.new`);
  await file.writeFile(JSON.stringify(value, null, indent)).finally(() => file.close());
  await rename(`${path}.new`, path);
}
