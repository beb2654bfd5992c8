// Makes the files of an empty embedded Postgres, which a first start only unpacks: initialising one takes 600 MB of memory.
// Left as it is while package-lock.json, which names the engine, is older.
import {
  existsSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join, relative } from 'node:path';
import { fileURLToPath } from 'node:url';
import { deflateRawSync } from 'node:zlib';
import { PGlite } from '@electric-sql/pglite';

const file = fileURLToPath(new URL('../dist/embedded-database.json', import.meta.url));
const changed = (path) => statSync(path).mtimeMs;
const sources = [fileURLToPath(import.meta.url), fileURLToPath(new URL('../package-lock.json', import.meta.url))];

if (!existsSync(file) || sources.some((source) => changed(source) > changed(file))) {
  const folder = mkdtempSync(join(tmpdir(), 'omp-database-'));
  try {
    const db = await PGlite.create({ dataDir: folder });
    await db.close();
    // By path; a folder is null, a file its deflated bytes.
    const entries = readdirSync(folder, { recursive: true, withFileTypes: true }).map((entry) => {
      const path = join(entry.parentPath, entry.name);
      const bytes = entry.isDirectory() ? null : deflateRawSync(readFileSync(path)).toString('base64');
      return [relative(folder, path), bytes];
    });
    writeFileSync(`${file}.${process.pid}`, JSON.stringify(Object.fromEntries(entries)));
    renameSync(`${file}.${process.pid}`, file);
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}
