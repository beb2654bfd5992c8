import { createReadStream } from 'node:fs';
import { open, readdir, stat, statfs } from 'node:fs/promises';
import { join } from 'node:path';
import { pipeline } from 'node:stream/promises';
import { constants, createGunzip, createGzip } from 'node:zlib';
import { packTar, type UnpackOptionsFS, unpackTar } from 'modern-tar/fs';
import { syncFolder } from './folder.ts';

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
  const map: Header = (header) => ({ ...header, uid: 0, gid: 0, mtime: new Date(0) });
  await pipeline(packTar(folder, { map }), gzip, output);
  return bytes;
}

type Header = NonNullable<UnpackOptionsFS['map']>;

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
  let [declared, unpacked] = [0, 0];
  async function* bounded(source: AsyncIterable<Buffer>) {
    for await (const part of source) {
      unpacked += part.length;
      if (unpacked > most(size ?? input.bytesRead)) throw new TooLarge();
      yield part;
    }
  }
  const map: Header = (header) => {
    const isKnown = header.type === 'file' || header.type === 'directory';
    if (!isKnown || !PATH.test(header.name)) throw new Error('an entry that no backup has');
    declared += ENTRY_BYTES + header.size;
    if (declared > (size === undefined ? free : most(size))) throw new TooLarge();
    return header;
  };
  const writer = unpackTar(folder, { strict: true, dmode: 0o700, fmode: 0o600, map });
  try {
    await pipeline(input, createGunzip(), bounded, writer);
  } catch (cause) {
    if (cause instanceof TooLarge) {
      const isFull = most(size ?? input.bytesRead) === free;
      const reason = isFull ? `the ${Math.floor(free / 1024 ** 2)} MB that are free` : 'a backup of this size does';
      throw new Error(`${name} unpacks to more than ${reason}; nothing was restored`, { cause });
    }
    // Of the disk, or because the file cannot be read.
    if ((cause as NodeJS.ErrnoException).syscall !== undefined) throw cause;
    throw new Error(`${name} is not a whole backup: it is cut, damaged, or another file`, { cause });
  }
  await syncAll(folder);
}

async function syncAll(folder: string): Promise<void> {
  for (const entry of await readdir(folder, { recursive: true, withFileTypes: true })) {
    const path = join(entry.parentPath, entry.name);
    if (entry.isDirectory()) await syncFolder(path);
    else {
      const file = await open(path, 'r+');
      await file.sync().finally(() => file.close());
    }
  }
  await syncFolder(folder);
}
