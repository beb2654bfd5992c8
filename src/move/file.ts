import { createHash } from 'node:crypto';
import { createReadStream, createWriteStream } from 'node:fs';
import type { Readable, Writable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { createGunzip, createGzip } from 'node:zlib';

/** The version that this gateway writes; it reads no other. */
export const FORMAT = 1;
/** Longest line in bytes: the largest record, escaped, with a vector. */
const MAX_LINE_BYTES = 32 * 1024 * 1024;

/** The first line of a file of memories. */
export interface Header {
  readonly omp_export: number;
  /** The provider, or the address of the gateway, that the memories come from. */
  readonly source: string;
  /** ISO 8601. */
  readonly exported_at: string;
  /** Null: unknown, or several. */
  readonly embedding: { readonly model: string; readonly dimensions: number } | null;
  readonly filters: Readonly<Record<string, unknown>>;
}

/** A memory as on the wire. */
export type Line = Readonly<Record<string, unknown>>;

/** The file is damaged or is none of ours. The message says what to do. */
export class FileError extends Error {}

/**
 * Writes a header, one memory a line, and a last line with their number and the SHA-256 of all lines before it. `path`: `-`
 * is standard output; a name that ends in `.gz` is compressed. Waits for the output, so memory is bounded. Resolves to the
 * number of memories.
 */
export async function writeFile(
  path: string,
  header: Header,
  memories: AsyncIterable<Line>,
  stdout: Writable = process.stdout,
): Promise<number> {
  const hash = createHash('sha256');
  let count = 0;
  async function* lines() {
    const hashed = (value: unknown): string => {
      const line = `${JSON.stringify(value)}\n`;
      hash.update(line);
      return line;
    };
    yield hashed(header);
    for await (const memory of memories) {
      count++;
      yield hashed(memory);
    }
    yield `${JSON.stringify({ count, sha256: hash.digest('hex') })}\n`;
  }
  if (path === '-') await pipeline(lines, stdout, { end: false });
  else if (path.endsWith('.gz')) await pipeline(lines, createGzip(), createWriteStream(path));
  else await pipeline(lines, createWriteStream(path));
  return count;
}

/**
 * The header, then the memories. Throws a `FileError` at the end if the file was cut or changed: a caller that must not act
 * on half a file reads it twice. `path` as for `writeFile`; `-` is standard input.
 */
export async function* readFile(path: string, stdin: Readable = process.stdin): AsyncGenerator<Header | Line> {
  const hash = createHash('sha256');
  let count = -1;
  let previous: Buffer | undefined;
  for await (const line of linesOf(path, stdin)) {
    if (previous) {
      hash.update(previous);
      yield count < 0 ? headerOf(previous) : parsed(previous, count + 2);
      count++;
    }
    previous = line;
  }
  const last = previous && previous.at(-1) === 10 ? parsed(previous, count + 2) : undefined;
  if (last?.count !== count || last.sha256 !== hash.digest('hex')) {
    throw new FileError('the file was cut or changed: its last line does not match; export it again');
  }
}

/** Lines with their ends; the last may have none. */
async function* linesOf(path: string, stdin: Readable): AsyncGenerator<Buffer> {
  const file: Readable = path === '-' ? stdin : createReadStream(path);
  const input: Readable = path.endsWith('.gz') ? file.pipe(createGunzip()) : file;
  if (input !== file) file.once('error', (error) => input.destroy(error));
  let parts: Buffer[] = [];
  let bytes = 0;
  try {
    for await (const chunk of input as AsyncIterable<Buffer>) {
      let start = 0;
      for (let end = chunk.indexOf(10); end >= 0; end = chunk.indexOf(10, start)) {
        yield Buffer.concat([...parts, chunk.subarray(start, end + 1)]);
        parts = [];
        bytes = 0;
        start = end + 1;
      }
      parts.push(chunk.subarray(start));
      bytes += chunk.length - start;
      if (bytes > MAX_LINE_BYTES) throw new FileError(`a line is longer than ${MAX_LINE_BYTES} bytes`);
    }
  } catch (error) {
    if (!String((error as NodeJS.ErrnoException).code).startsWith('Z_')) throw error;
    throw new FileError('the file was cut or changed: it cannot be decompressed; export it again', { cause: error });
  }
  if (bytes > 0) yield Buffer.concat(parts);
}

function headerOf(line: Buffer): Header {
  const header = parsed(line, 1);
  if (header.omp_export === FORMAT) return header as unknown as Header;
  throw new FileError(`line 1 is no header of an export in format ${FORMAT}`);
}

function parsed(line: Buffer, number: number): Line {
  try {
    const value: unknown = JSON.parse(line.toString());
    if (value && typeof value === 'object' && !Array.isArray(value)) return value as Line;
  } catch {}
  throw new FileError(`line ${number} is not a JSON object`);
}
