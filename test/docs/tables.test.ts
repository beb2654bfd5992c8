import { readFile } from 'node:fs/promises';
import { expect, it } from 'vitest';
import { withTables } from '../../scripts/readme-tables.ts';

it('the tables in the README are what the code says; `npm run docs` brings them up to date', async () => {
  const readme = await readFile(new URL('../../README.md', import.meta.url), 'utf8');
  expect(readme).toBe(await withTables(readme));
});
