import { readFile, writeFile } from 'node:fs/promises';
import { withTables } from './readme-tables.ts';

const path = new URL('../README.md', import.meta.url);
await writeFile(path, await withTables(await readFile(path, 'utf8')));
