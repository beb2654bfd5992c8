import type { z } from 'zod';
import { invalidRequest } from '#contract';
import { parse } from './parse.ts';

/**
 * What the schema makes of the query string. Names it does not know are ignored; a known one given twice is refused,
 * since picking one of the two would silently drop a filter.
 */
export function parseQuery<Schema extends z.ZodObject>(schema: Schema, url: string): z.output<Schema> {
  const values: Record<string, string> = {};
  for (const [name, value] of pairs(url)) {
    if (!Object.hasOwn(schema.shape, name)) continue;
    if (Object.hasOwn(values, name)) throw invalidRequest(`${name}: given more than once`);
    values[name] = value;
  }
  return parse(schema, values);
}

function* pairs(url: string): Generator<[name: string, value: string]> {
  const start = url.indexOf('?');
  if (start < 0) return;
  for (const pair of url.slice(start + 1).split('&')) {
    const equals = pair.indexOf('=');
    yield equals < 0 ? [decode(pair), ''] : [decode(pair.slice(0, equals)), decode(pair.slice(equals + 1))];
  }
}

function decode(text: string): string {
  if (!/[%+]/.test(text)) return text;
  try {
    return decodeURIComponent(text.replaceAll('+', ' '));
  } catch {
    throw invalidRequest('query string: malformed percent-encoding');
  }
}
