import type { Memory, MemoryPatch } from '#contract';
import { effectivePatch } from '#toolbox';

/** The fields that a restore brings back: those that a client may change. */
const RESTORED = ['content', 'scope', 'tags', 'confidence', 'valid_to', 'supersedes'] as const;
const COMPARED = [...RESTORED, 'source', 'valid_from'] as const;

/** What turns a memory into another state of it, but for the fields that no change reaches; undefined: nothing differs. */
export const restoringPatch = (memory: Memory, wanted: Memory): MemoryPatch | undefined =>
  patchTo(memory, wanted, RESTORED);

/** What differs between two states of a memory. */
export const differenceOf = (before: Memory, after: Memory): MemoryPatch | undefined =>
  patchTo(before, after, COMPARED);

function patchTo(memory: Memory, wanted: Memory, compared: readonly (keyof Memory)[]): MemoryPatch | undefined {
  const fields = Object.fromEntries(compared.map((field) => [field, wanted[field]])) as MemoryPatch;
  // Null removes an `x-` key.
  const removed = Object.fromEntries(Object.keys(memory.extensions).map((key) => [key, null]));
  return effectivePatch(memory, { ...fields, extensions: { ...removed, ...wanted.extensions } });
}
