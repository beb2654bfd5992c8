import { type Extensions, invalidRequest } from '#contract';
import { isStorable } from './schemas/fields.ts';

/** Deeper values are refused: no client needs them, and every walk over them is recursive, in Postgres too. */
const MAX_DEPTH = 32;

/** The caller's `x-` keys of a body, checked to be storable as JSON by every backend. */
export function readExtensions(body: object, onNull: 'omit' | 'refuse'): Extensions {
  const extensions: Record<`x-${string}`, unknown> = {};
  for (const [key, value] of Object.entries(body)) {
    if (!isExtensionKey(key) || (value === null && onNull === 'omit')) continue;
    if (value === null) throw invalidRequest(`${key}: must not be null`);
    if (!isStorable(key)) throw invalidRequest('a key that begins with x- must not contain NUL or lone surrogates');
    check(key, value, 1);
    extensions[key] = value;
  }
  return extensions;
}

const isExtensionKey = (key: string): key is `x-${string}` => key.startsWith('x-');

function check(key: string, value: unknown, depth: number): void {
  if (typeof value === 'string' && !isStorable(value))
    throw invalidRequest(`${key}: must not contain NUL or lone surrogates`);
  if (typeof value === 'number' && !Number.isFinite(value))
    throw invalidRequest(`${key}: holds a number too large to store`);
  if (typeof value !== 'object' || value === null) return;
  if (depth > MAX_DEPTH) throw invalidRequest(`${key}: nested deeper than ${MAX_DEPTH} levels`);
  for (const [name, inner] of Object.entries(value)) {
    if (!isStorable(name)) throw invalidRequest(`${key}: must not contain NUL or lone surrogates`);
    check(key, inner, depth + 1);
  }
}
