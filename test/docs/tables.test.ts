import { expect, it } from 'vitest';
import { TABLES, withTables } from '../../scripts/docs-tables.ts';
import { messagesOf } from '../../scripts/error-tables.ts';
import { read } from './markdown.ts';

it.each(Object.keys(TABLES))('the generated tables of %s are current (`npm run docs` updates them)', async (file) => {
  const text = read(file);
  expect(text).toBe(await withTables(file, text));
});

it('the messages of errors.md include those that are constants, or parts of others, and no fragments', () => {
  expect(messagesOf('scope_denied')).toContain('- this needs a key with the grant admin:');
  expect(messagesOf('invalid_request')).toContain('- the JSON holds a whole number');
  expect(messagesOf('rate_limited')).toContain('- more than … concurrent requests of one caller');
  expect(messagesOf('rate_limited')).not.toMatch(/^- …; retry/m);
});
