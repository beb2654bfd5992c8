import { createHash } from 'node:crypto';
import { invalidRequest, type NewMemory, type Once } from '#contract';

/** Printable ASCII. */
export const IDEMPOTENCY_KEY = /^[\x20-\x7e]{1,255}$/;

/**
 * What `Idempotency-Key` says, bare or as a quoted string (Decision 20): both are one and the same key. The
 * fields of the memory must come in one order, whatever that of the request was.
 */
export function readOnce(header: string | undefined, memory: NewMemory): Omit<Once, 'caller'> | undefined {
  if (header === undefined) return undefined;
  const quoted = /^"((?:[^"\\]|\\["\\])*)"$/.exec(header)?.[1];
  const key = quoted?.replace(/\\(["\\])/g, '$1') ?? header;
  if (!IDEMPOTENCY_KEY.test(key)) throw invalidRequest('Idempotency-Key: must be 1 to 255 printable ASCII characters');
  return { key, fingerprint: createHash('sha256').update(JSON.stringify(memory)).digest('hex') };
}
