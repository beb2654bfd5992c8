import { expect, it } from 'vitest';
import { TABLES, withTables } from '../../scripts/docs-tables.ts';
import { read } from './markdown.ts';

it.each(Object.keys(TABLES))('the generated tables of %s are current (`npm run docs` updates them)', async (file) => {
  const text = read(file);
  expect(text).toBe(await withTables(file, text));
});
