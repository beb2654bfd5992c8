import { createReadStream } from 'node:fs';
import { mkdir, readdir, stat, statfs, writeFile } from 'node:fs/promises';
import { join, relative } from 'node:path';
import { pipeline } from 'node:stream/promises';
import { constants, createGunzip, createGzip } from 'node:zlib';
import { syncFolder } from './folder.ts';

/** The unit of a tar file: headers take one, contents whole ones. */
const BLOCK = 512;
const MAX_REST_BYTES = 1024 * 1024;
const FOLDER = '5';
const FILE = '0';
/** `tar` unpacks it too. Nothing else is read: a path never leads out of the folder. */
const PATH = /^(?!.*\.\.)[\w.-]+(?:\/[\w.-]+)*\/?$/;

/** Packs everything in the folder as a tar.gz. The checksum of gzip covers all of it. Resolves to the bytes of it. */
export async function pack(folder: string, output: NodeJS.WritableStream): Promise<number> {
  let bytes = 0;
  // Vectors hardly shrink, however long one tries.
  const gzip = createGzip({ level: constants.Z_BEST_SPEED });
  gzip.on('data', ({ length }: Buffer) => {
    bytes += length;
  });
  await pipeline(blocksOf(folder), gzip, output);
  return bytes;
}

async function* blocksOf(folder: string): AsyncGenerator<Buffer> {
  const entries = await readdir(folder, { recursive: true, withFileTypes: true });
  const paths = entries.map((entry) => ({ entry, path: join(entry.parentPath, entry.name) }));
  // A folder comes before what it holds.
  for (const { entry, path } of paths.sort((a, b) => (a.path < b.path ? -1 : 1))) {
    const name = relative(folder, path);
    if (entry.isDirectory()) yield header(`${name}/`, 0, FOLDER);
    else {
      const { size } = await stat(path);
      yield header(name, size, FILE);
      yield* createReadStream(path);
      yield Buffer.alloc(padding(size));
    }
  }
  yield Buffer.alloc(2 * BLOCK);
}

const padding = (size: number): number => (BLOCK - (size % BLOCK)) % BLOCK;

/** A header of the POSIX format (ustar). */
function header(path: string, size: number, type: string): Buffer {
  const block = Buffer.alloc(BLOCK);
  const put = (text: string, at: number) => block.write(text, at, 'latin1');
  put(path, 0);
  put(type === FOLDER ? '0000700' : '0000600', 100);
  put('0000000', 108);
  put('0000000', 116);
  put(size.toString(8).padStart(11, '0'), 124);
  put('00000000000', 136);
  put(type, 156);
  put('ustar\x0000', 257);
  put(`${sumOf(block).toString(8).padStart(6, '0')}\0 `, 148);
  return block;
}

/** The sum counts its own place as spaces. */
const sumOf = (block: Buffer): number =>
  block.reduce((sum, byte, at) => sum + (at >= 148 && at < 156 ? 0x20 : byte), 0);

/** The archive is cut, damaged, or of something else. */
class NotWhole extends Error {}
class TooLarge extends Error {}

/** Four times what was measured (docs/operations.md), and a small database beside it, most of which is zeros. */
const MAX_RATIO = 50;
const SMALL_BYTES = 256 * 1024 * 1024;
/** What an entry takes on the disk in any case. */
const ENTRY_BYTES = 4_096;

/**
 * Unpacks the archive into an empty folder, durably; `-` is standard input. Throws an `Error` that names the file if it is not
 * whole, or as soon as it unpacks to more than a backup of its size, or than there is space. A file fails at the header in it
 * that says so; the size of standard input is what was read of it.
 */
export async function unpack(file: string, folder: string): Promise<void> {
  const isStream = file === '-';
  const [name, input] = isStream ? ['standard input', process.stdin] : [file, createReadStream(file)];
  const size = isStream ? undefined : (await stat(file)).size;
  const { bavail, bsize } = await statfs(folder);
  const free = bavail * bsize;
  const most = (read: number) => Math.min(free, SMALL_BYTES + MAX_RATIO * read);
  const bounds = { declared: size === undefined ? free : most(size), unpacked: () => most(size ?? input.bytesRead) };
  try {
    await pipeline(input, createGunzip(), (source: AsyncIterable<Buffer>) => write(source, folder, bounds));
  } catch (cause) {
    const { code } = cause as NodeJS.ErrnoException;
    if (cause instanceof TooLarge) {
      const isFull = bounds.unpacked() === free;
      const reason = isFull ? `the ${Math.floor(free / 1024 ** 2)} MB that are free` : 'a backup of this size does';
      throw new Error(`${name} unpacks to more than ${reason}; nothing was restored`, { cause });
    }
    if (cause instanceof NotWhole || code?.startsWith('Z_'))
      throw new Error(`${name} is not a whole backup: it is cut, damaged, or another file`, { cause });
    throw cause;
  }
}

/** Limits for the bytes of all files together. */
interface Bounds {
  /** As their headers say. */
  readonly declared: number;
  /** As they are unpacked. */
  unpacked(): number;
}

async function write(source: AsyncIterable<Buffer>, folder: string, { declared, unpacked }: Bounds): Promise<void> {
  const { read, parts, rest } = reader(source, unpacked);
  const folders = [folder];
  let bytes = 0;
  for (;;) {
    const block = await read(BLOCK);
    if (block.every((byte) => byte === 0)) break;
    const path = block.toString('latin1', 0, block.indexOf(0));
    const size = Number.parseInt(block.toString('latin1', 124, 135), 8);
    const type = String.fromCharCode(block[156] ?? 0);
    // What gzip makes of damaged bytes arrives before its checksum does.
    if (Number.parseInt(block.toString('latin1', 148, 154), 8) !== sumOf(block)) throw new NotWhole();
    if (!PATH.test(path) || !(size >= 0)) throw new NotWhole();
    bytes += ENTRY_BYTES + size;
    if (bytes > declared) throw new TooLarge();
    const target = join(folder, path);
    if (type === FOLDER) {
      await mkdir(target, { mode: 0o700 });
      folders.push(target);
    } else await writeFile(target, parts(size), { mode: 0o600, flush: true });
    await read(padding(size));
  }
  // The checksum is at the end.
  await rest();
  for (const path of folders) await syncFolder(path);
}

function reader(source: AsyncIterable<Buffer>, most: Bounds['unpacked']) {
  const chunks = source[Symbol.asyncIterator]();
  let left: Buffer = Buffer.alloc(0);
  let bytes = 0;
  /** The next `size` bytes as they arrive. */
  async function* parts(size: number): AsyncGenerator<Buffer> {
    for (let missing = size; missing > 0; ) {
      if (left.length === 0) {
        const { value, done } = await chunks.next();
        if (done) throw new NotWhole();
        bytes += value.length;
        if (bytes > most()) throw new TooLarge();
        left = value;
      }
      const part = left.subarray(0, missing);
      left = left.subarray(part.length);
      missing -= part.length;
      yield part;
    }
  }
  return {
    parts,
    async read(size: number): Promise<Buffer> {
      const read: Buffer[] = [];
      for await (const part of parts(size)) read.push(part);
      return Buffer.concat(read);
    },
    /** The end of a tar file is filled up with less than this. */
    async rest() {
      for (let bytes = 0; ; ) {
        const { value, done } = await chunks.next();
        if (done) return;
        bytes += value.length;
        if (bytes > MAX_REST_BYTES) throw new NotWhole();
      }
    },
  };
}
