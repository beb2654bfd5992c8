import fc from 'fast-check';
import { expect, it } from 'vitest';
import type { ExportedMemory } from '../../clients/typescript/src/index.ts';
import { type Side, verify } from '../../src/move/verify.ts';

const sideOf = (name: string, memories: readonly ExportedMemory[]): Side => ({
  ...{ name, store: undefined },
  async *memories() {
    yield* memories;
  },
});
const memory = fc
  .record({ id: fc.constantFrom('1', '2', '3'), content: fc.constantFrom('tea', 'coffee') })
  .map((fields) => ({ ...fields, user_id: 'ana' }) as ExportedMemory);
const sorted = (memories: readonly ExportedMemory[]) => memories.map((one) => JSON.stringify(one)).sort();

it('[Decision 43] nothing differs if both have the same memories the same number of times, and only then', async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(memory, { maxLength: 5 }), fc.array(memory, { maxLength: 5 }), async (a, b) => {
      const { different } = await verify(sideOf('a', a), sideOf('b', b), 0, () => {});
      expect(different === 0).toBe(sorted(a).join() === sorted(b).join());
      expect((await verify(sideOf('a', a), sideOf('b', a.toReversed()), 0, () => {})).different).toBe(0);
    }),
    // Verifying allocates its sums each time.
    { numRuns: 60, examples: [[[], []]] },
  );
});

it('[Decision 43] a memory that one side has twice is named', async () => {
  const [one, two] = ['1', '2'].map((id) => ({ id, user_id: 'ana', content: 'tea' }) as ExportedMemory) as [
    ExportedMemory,
    ExportedMemory,
  ];
  const found = await verify(sideOf('a', [one, two, two]), sideOf('b', [one]), 0, () => {});
  expect(found).toMatchObject({ counts: [3, 1], different: 2, users: [{ user_id: 'ana', difference: -2 }] });
  expect(found.differences).toEqual([
    expect.objectContaining({ id: '2', repeated_in: 'a' }),
    expect.objectContaining({ id: '2', missing_in: 'b' }),
  ]);
});

it('[Decision 43] [Decision 54] the mark of an untrusted key counts, and the origin, which an import changes, does not', async () => {
  const one = { id: '1', user_id: 'ana', content: 'tea' } as ExportedMemory;
  const differences = async (fields: object) =>
    (await verify(sideOf('a', [one]), sideOf('b', [{ ...one, ...fields }]), 0, () => {})).differences;
  expect(await differences({ 'x-omp-origin': { via: 'import' } })).toEqual([]);
  expect(await differences({ 'x-omp-untrusted': true })).toMatchObject([{ id: '1', fields: ['x-omp-untrusted'] }]);
});
