import { readFile, writeFile } from 'node:fs/promises';
import { TABLES, withTables } from './docs-tables.ts';

for (const file of Object.keys(TABLES)) {
  const path = new URL(`../${file}`, import.meta.url);
  await writeFile(path, await withTables(file, await readFile(path, 'utf8')));
}
