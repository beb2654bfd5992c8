import type { Metadata } from './record-set.ts';
import { check } from './replies.ts';

/** The documented limits. Where a unit is ambiguous ("2 MB"), the smaller reading: a client that keeps it keeps both. */
export const LIMITS = {
  metadataBytes: 40_960,
  idLength: 512,
  namespaceLength: 512,
  upsertRecords: 1_000,
  upsertBytes: 2_000_000,
  ids: 1_000,
  topK: 10_000,
  resultBytes: 4_000_000,
  listPage: 100,
  fetchByMetadataPage: 10_000,
} as const;

// biome-ignore lint/suspicious/noControlCharactersInRegex: every ASCII character but NUL.
const ASCII = /^[\x01-\x7f]*$/;

export function checkId(id: string): void {
  check(id.length > 0, 'Vector ID must not be empty');
  check(id.length <= LIMITS.idLength, `Vector ID must be at most ${LIMITS.idLength} characters`);
  check(ASCII.test(id), `Vector ID must be ASCII, but got '${id}'`);
}

/** A list of ids as fetch and delete take it. */
export function checkIds(ids: readonly string[]): void {
  check(ids.length > 0, 'at least one id is required');
  check(ids.length <= LIMITS.ids, `at most ${LIMITS.ids} ids are allowed, got ${ids.length}`);
  for (const id of ids) checkId(id);
}

/** "Does not accept values containing spaces", says the interface of ids and prefixes that travel in a query string. */
export const checkNoSpaces = (values: readonly string[]): void =>
  check(!values.some((value) => value.includes(' ')), 'values containing spaces are not accepted');

export function checkNamespaceName(name: string): void {
  check(name.length <= LIMITS.namespaceLength, `Namespace must be at most ${LIMITS.namespaceLength} characters`);
  check(ASCII.test(name), 'Namespace must be ASCII');
}

/** Whether every value may be kept. An empty list is established nowhere, and refused. */
export function checkMetadata(metadata: Readonly<Record<string, unknown>>): asserts metadata is Metadata {
  for (const [key, value] of Object.entries(metadata)) {
    check(!key.startsWith('$'), `Metadata key cannot start with '$', got '${key}'`);
    const list = Array.isArray(value) && value.length > 0 && value.every((one) => typeof one === 'string');
    check(
      list || ['string', 'number', 'boolean'].includes(typeof value),
      `Metadata value must be a string, number, boolean or list of strings, got '${JSON.stringify(value)}' for field '${key}'`,
    );
  }
}

/** Counted in bytes of UTF-8 JSON: how the service counts is not documented. */
export function checkMetadataSize(metadata: Metadata): void {
  const bytes = Buffer.byteLength(JSON.stringify(metadata));
  check(
    bytes <= LIMITS.metadataBytes,
    `Metadata size is ${bytes} bytes, which exceeds the limit of ${LIMITS.metadataBytes} bytes per vector`,
  );
}

/** A vector of the index's dimension, as 32-bit floats. */
export function toVector(values: readonly number[], dimension: number): Float32Array {
  check(
    values.length === dimension,
    `Vector dimension ${values.length} does not match the dimension of the index ${dimension}`,
  );
  const vector = Float32Array.from(values);
  check(vector.every(Number.isFinite), 'Vector values must be 32-bit floats');
  return vector;
}

export function toStoredVector(values: readonly number[], dimension: number): Float32Array {
  const vector = toVector(values, dimension);
  check(
    vector.some((value) => value !== 0),
    'Dense vectors must contain at least one non-zero value',
  );
  return vector;
}

/** "At most 4 MB": of the answer's JSON. */
export const checkResultSize = (body: object): void =>
  check(
    Buffer.byteLength(JSON.stringify(body)) <= LIMITS.resultBytes,
    `the result exceeds the limit of ${LIMITS.resultBytes} bytes`,
  );

/** A page size in a query string; 1 to 100, and 100 when absent. More is not established, and refused. */
export function pageSize(given: string | null): number {
  const limit = given === null ? LIMITS.listPage : Number(given);
  check(limit >= 1 && limit <= LIMITS.listPage, `limit must be between 1 and ${LIMITS.listPage}`);
  return limit;
}
