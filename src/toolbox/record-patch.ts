import { isDeepStrictEqual } from 'node:util';
import { type ExtensionKey, type Extensions, type Memory, type MemoryPatch, type Ref, versionChanged } from '#contract';

/** Whether both are the same JSON: 0 and -0 are. */
const isSame = (a: unknown, b: unknown): boolean =>
  isDeepStrictEqual(a, b) || (typeof a !== 'string' && isDeepStrictEqual(asJson(a), asJson(b)));
const asJson = (value: unknown) => (value === undefined ? undefined : JSON.parse(JSON.stringify(value)));

/** The part of a patch that changes this record; undefined if nothing changes (Decision 7). */
export function effectivePatch(memory: Memory, { extensions, ...fields }: MemoryPatch): MemoryPatch | undefined {
  const changed = Object.entries(fields).filter(
    ([field, value]) => value !== undefined && !isSame(memory[field as keyof Memory], value),
  );
  const added = Object.entries(extensions ?? {}).filter(
    ([key, value]) => !isSame(memory.extensions[key as ExtensionKey] ?? null, value),
  );
  if (changed.length + added.length === 0) return undefined;
  return { ...Object.fromEntries(changed), ...(added.length > 0 && { extensions: Object.fromEntries(added) }) };
}

/** Returns the record that was found, if any. Throws `versionChanged` unless it has one of the versions of the reference. */
export function requireVersion<Found extends Memory | undefined>(memory: Found, { versions }: Ref): Found {
  if (memory && versions && !versions.includes(memory.updated_at)) throw versionChanged(memory.updated_at);
  return memory;
}

/** The `x-` keys after a patch: null removes one. */
export const mergeExtensions = (before: Extensions, changes: Extensions = {}): Extensions =>
  Object.fromEntries(Object.entries({ ...before, ...changes }).filter(([, value]) => value !== null));

/** Whether both records are the same, apart from what belongs to their stores: status and model of the vector. */
export const isSameRecord = (a: Memory, b: Memory | undefined): boolean =>
  b !== undefined && isSame({ ...a, ...OF_THE_STORE }, { ...b, ...OF_THE_STORE });
const OF_THE_STORE = { embedding_model: null, status: null };
