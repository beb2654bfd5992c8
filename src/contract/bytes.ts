import { invalidRequest, OmpError } from './errors.ts';
import { mergeExtensions } from './patch.ts';
import type { Memory, MemoryPatch, NewMemory } from './record.ts';

/** What of a record can be long. */
type Sized = Pick<NewMemory, 'content' | 'tags' | 'source' | 'supersedes' | 'extensions'>;

/**
 * Size of a record: its content in UTF-8, and its other fields as JSON in the longest form that a backend writes, with
 * something for each value and key: many small ones cost more than their text. No
 * measure that a provider takes of a stored record may be larger, or a list would end too early.
 */
export const recordBytes = ({ content, tags, source, supersedes, extensions }: Sized): number =>
  Buffer.byteLength(content) + jsonBytes(tags) + jsonBytes(source) + jsonBytes(supersedes) + jsonBytes(extensions);

/** The size of a record unless the operator allows larger requests: twice as large as one. */
export const MAX_RECORD_BYTES = 2 * 1024 * 1024;

export const recordTooLarge = (most: number): OmpError =>
  new OmpError(
    'payload_too_large',
    `the memory with all its fields takes more than ${most} bytes; remove x- keys with null, or split it into several`,
  );

/** Of each value and each key. */
const NODE_BYTES = 32;

/** Most `x-` keys of a memory. */
export const MAX_EXTENSIONS = 256;

/** Throws when a patch makes a record too large, or gives it too many `x-` keys. What was so before may stay so. */
export function requireFits(before: Memory, patch: MemoryPatch, maxBytes: number): void {
  const after = { ...before, ...patch, extensions: mergeExtensions(before.extensions, patch.extensions) };
  if (recordBytes(after) > Math.max(maxBytes, recordBytes(before))) throw recordTooLarge(maxBytes);
  const keys = Object.keys(after.extensions).length;
  if (keys > Math.max(MAX_EXTENSIONS, Object.keys(before.extensions).length)) {
    throw invalidRequest(`a memory holds at most ${MAX_EXTENSIONS} x- keys; null removes one`);
  }
}

/**
 * As Postgres writes `jsonb`: a space after every comma and colon, and numbers without an exponent. Not recursive: what
 * others wrote may be nested deeper than the stack is long.
 */
function jsonBytes(value: unknown): number {
  let bytes = 0;
  const rest = [value];
  while (rest.length > 0) {
    const next = rest.pop();
    bytes += NODE_BYTES;
    if (typeof next === 'string') bytes += Buffer.byteLength(JSON.stringify(next));
    else if (typeof next === 'number') bytes += numberBytes(next);
    else if (typeof next !== 'object' || next === null) bytes += 5;
    else {
      const keys = Array.isArray(next) ? [] : Object.keys(next);
      const items = Object.values(next);
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

/** How many records, from the first on, together take no more than so many bytes; never fewer than one. */
export function countWithin(records: Iterable<Memory>, maxBytes: number): number {
  let count = 0;
  let bytes = 0;
  for (const record of records) {
    bytes += recordBytes(record);
    if (bytes > maxBytes && count > 0) break;
    count++;
  }
  return count;
}

/** For a provider that holds more than `max_bytes` of a query allow (`ListQuery`): the one that passes it is the last. */
export const upToBytes = <Item>(items: readonly Item[], maxBytes: number, recordOf: (item: Item) => Memory): Item[] =>
  items.slice(0, countWithin(items.map(recordOf), maxBytes) + 1);

/** All that comes, as one buffer. Rejects as soon as it is more than so many bytes: no answer is worth the memory of all. */
export async function readAtMost(chunks: AsyncIterable<Uint8Array>, maxBytes: number): Promise<Buffer> {
  const read: Uint8Array[] = [];
  let bytes = 0;
  for await (const chunk of chunks) {
    bytes += chunk.length;
    if (bytes > maxBytes) throw new Error(`the answer is longer than ${maxBytes} bytes`);
    read.push(chunk);
  }
  return Buffer.concat(read);
}
