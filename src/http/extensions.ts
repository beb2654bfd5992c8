import { type Extensions, invalidRequest, MAX_DEPTH, MAX_EXTENSIONS } from '#contract';
import { isStorable } from './schemas/fields.ts';

/**
 * The caller's `x-` keys of a body, checked to be storable as JSON by every backend. The keys of every object come in
 * one order, so that equal bodies become equal texts, however they were written. Null, which removes a key, is kept for
 * a patch.
 */
export function readExtensions(body: object, onNull: 'omit' | 'keep'): Extensions {
  const extensions: Record<`x-${string}`, unknown> = {};
  const given = Object.entries(body).filter(([key]) => isExtensionKey(key));
  if (given.length > MAX_EXTENSIONS) throw invalidRequest(`a memory holds at most ${MAX_EXTENSIONS} x- keys`);
  for (const [key, value] of inOrder(given)) {
    if (!isExtensionKey(key) || (value === null && onNull === 'omit')) continue;
    if (!isStorable(key)) throw invalidRequest('a key that begins with x- must not contain NUL or lone surrogates');
    extensions[key] = checked(key, value, 1);
  }
  return extensions;
}

const isExtensionKey = (key: string): key is `x-${string}` => key.startsWith('x-');

const inOrder = (entries: [key: string, value: unknown][]) => entries.sort(([a], [b]) => (a < b ? -1 : 1));

/** A copy that holds even `__proto__` as data. */
function checked(key: string, value: unknown, depth: number): unknown {
  const requireStorable = (text: string) => {
    if (!isStorable(text)) throw invalidRequest(`${key}: must not contain NUL or lone surrogates`);
  };
  if (typeof value === 'string') requireStorable(value);
  if (typeof value === 'number' && !Number.isFinite(value))
    throw invalidRequest(`${key}: holds a number too large to store`);
  if (typeof value !== 'object' || value === null) return value;
  if (depth > MAX_DEPTH) throw invalidRequest(`${key}: nested deeper than ${MAX_DEPTH} levels`);
  if (Array.isArray(value)) return value.map((inner) => checked(key, inner, depth + 1));
  const entries = inOrder(Object.entries(value)).map(([name, inner]) => {
    requireStorable(name);
    return [name, checked(key, inner, depth + 1)] as const;
  });
  return Object.fromEntries(entries);
}
