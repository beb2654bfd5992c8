import { invalidRequest, MAX_EXTENSIONS, type Memory, type MemoryPatch, type NewMemory, OmpError } from '#contract';
import { mergeExtensions } from './record-patch.ts';

/** The fields of a record that can be long. */
type Sized = Pick<NewMemory, 'content' | 'tags' | 'source' | 'supersedes' | 'extensions'>;

/**
 * Size of a record: its content in UTF-8, its other fields as JSON in the longest form of all backends, and 32 bytes per
 * value and key, since small values take more memory than their text. If a provider measured a stored record as larger, a
 * list would end too early.
 */
export const recordBytes = ({ content, tags, source, supersedes, extensions }: Sized): number =>
  Buffer.byteLength(content) + jsonBytes(tags) + jsonBytes(source) + jsonBytes(supersedes) + jsonBytes(extensions);

export const recordTooLarge = (maxBytes: number): OmpError =>
  new OmpError(
    'payload_too_large',
    `the memory with all its fields takes more than ${maxBytes} bytes; remove x- keys with null, or split it into several`,
  );

/** Per value and per key. */
const VALUE_BYTES = 32;

/**
 * Throws if a patch makes a record too large or gives it too many `x-` keys. A record that exceeded a limit before may
 * stay as large.
 */
export function requireFits(before: Memory, patch: MemoryPatch, maxBytes: number): void {
  const after = { ...before, ...patch, extensions: mergeExtensions(before.extensions, patch.extensions) };
  if (recordBytes(after) > Math.max(maxBytes, recordBytes(before))) throw recordTooLarge(maxBytes);
  const keys = Object.keys(after.extensions).length;
  if (keys > Math.max(MAX_EXTENSIONS, Object.keys(before.extensions).length)) {
    throw invalidRequest(`a memory holds at most ${MAX_EXTENSIONS} x- keys; null removes one`);
  }
}

/**
 * Size of a value in the text form of Postgres `jsonb`: a space after every comma and colon, numbers without an exponent. Not
 * recursive: values in a mapped table may be nested deeper than the stack.
 */
export function jsonBytes(value: unknown): number {
  let bytes = 0;
  const rest = [value];
  while (rest.length > 0) {
    const next = rest.pop();
    bytes += VALUE_BYTES;
    if (typeof next === 'string') bytes += Buffer.byteLength(JSON.stringify(next));
    else if (typeof next === 'number') bytes += numberBytes(next);
    else if (typeof next !== 'object' || next === null) bytes += 5;
    else {
      const keys = Array.isArray(next) ? [] : Object.keys(next);
      const items = Array.isArray(next) ? next : Object.values(next);
      bytes += 2 + 2 * (keys.length + items.length);
      for (const part of keys) rest.push(part);
      for (const part of items) rest.push(part);
    }
  }
  return bytes;
}

function numberBytes(value: number): number {
  const text = String(value);
  const exponent = text.indexOf('e');
  return text.length + (exponent < 0 ? 0 : Math.abs(Number(text.slice(exponent + 1))));
}

/** How many records from the start fit into `maxBytes`, at least one, and their size. */
export function sizeWithin(records: Iterable<Memory>, maxBytes: number): { count: number; bytes: number } {
  let count = 0;
  let bytes = 0;
  for (const record of records) {
    const size = recordBytes(record);
    if (bytes + size > maxBytes && count > 0) break;
    bytes += size;
    count++;
  }
  return { count, bytes };
}

export const countWithin = (records: Iterable<Memory>, maxBytes: number): number => sizeWithin(records, maxBytes).count;

/** The items up to and including the first that exceeds `maxBytes`, as `ListQuery.max_bytes` requires. */
export const upToBytes = <Item>(items: readonly Item[], maxBytes: number, recordOf: (item: Item) => Memory): Item[] =>
  items.slice(0, countWithin(items.map(recordOf), maxBytes) + 1);
