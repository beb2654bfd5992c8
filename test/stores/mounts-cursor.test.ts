import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { ExportedMemory, Memory } from '#contract';
import type { MountedStore, Store } from '../../src/core/store.ts';
import { mountStores } from '../../src/stores/mount-stores.ts';
import { recordingLog } from '../support/gateway.ts';
import { callBy, listOf, memoryOf, openMemory } from '../support/requests.ts';
import { storeOf } from '../support/stores.ts';

const call = callBy();
const SCOPES = [null, 'a/x', 'b', 'b/y'];
/** Few, so that many memories have the same time. */
const TIMES = [0, 0, 1, 1, 2, 5].map((ms) => new Date(1_700_000_000_000 + ms).toISOString());

const some = { scope: fc.constantFrom(...SCOPES), time: fc.constantFrom(...TIMES) };
const step = fc.record({
  limit: fc.integer({ min: 1, max: 4 }),
  adds: fc.array(fc.record(some), { maxLength: 3 }),
  deletes: fc.array(fc.nat(), { maxLength: 3 }),
});

describe('[Decision 49] the pages of a list over several stores', () => {
  it.each([
    ['of memory', true],
    ['of which one knows no times', false],
  ])('repeat and lose nothing while memories come and go: %s', async (_label, temporal) => {
    await fc.assert(
      fc.asyncProperty(
        fc.array(fc.record(some), { maxLength: 12 }),
        fc.array(step, { minLength: 1, maxLength: 12 }),
        async (first, steps) => {
          const counts = new Map<string, number>();
          const counted = (name: string, store: Store): Store => ({
            ...store,
            list: (query, by) => {
              counts.set(name, (counts.get(name) ?? 0) + 1);
              return (store as Required<Store>).list(query, by);
            },
          });
          const open = async (name: string): Promise<Store> => counted(name, storeOf(await openMemory()));
          const mount = async (name: string): Promise<MountedStore> => {
            const inner = await open(name);
            // Without times, a store lists by id.
            const store = temporal || name === 'a' ? inner : timeless(inner);
            return {
              name,
              mount: name,
              provider: 'memory',
              required: true,
              weight: 1,
              embedder: undefined,
              current: () => store,
            };
          };
          const all = mountStores({
            root: await open('root'),
            embedder: undefined,
            mounted: [await mount('a'), await mount('b')],
            log: recordingLog(),
          }) as Required<Store>;
          let made = 0;
          const add = async ({ scope, time }: { scope: string | null; time: string }): Promise<Memory> => {
            const prefix = scope === null ? '' : `~${scope[0]}~`;
            const id = `${prefix}${String((made++ * 7919) % 1000).padStart(4, '0')}`;
            const memory = {
              ...memoryOf('u', id, { scope }),
              id,
              created_at: time,
              updated_at: time,
              embedding_model: null,
              status: null,
            };
            expect(
              await all.import({ items: [{ memory, vector: null }] satisfies ExportedMemory[], replace: false }, call),
            ).toEqual([true]);
            return memory as Memory;
          };
          const present = new Map<string, Memory>();
          for (const one of first) {
            const memory = await add(one);
            present.set(memory.id, memory);
          }
          const throughout = new Set(present.keys());
          const seen: Memory[] = [];
          let after: Memory | undefined;
          for (let at = 0; ; at++) {
            const { limit, adds, deletes } = steps[at % steps.length] as (typeof steps)[number];
            counts.clear();
            const page = await all.list(listOf('u', { limit, ...(after && { after }) }), call);
            expect(Math.max(0, ...counts.values())).toBeLessThanOrEqual(1);
            seen.push(...page);
            if (page.length < limit) break;
            after = page.at(-1);
            if (at >= steps.length) continue;
            for (const one of adds) {
              const memory = await add(one);
              present.set(memory.id, memory);
            }
            for (const one of deletes) {
              const id = [...present.keys()][one % Math.max(1, present.size)];
              if (id === undefined) continue;
              expect(await all.delete({ id, users: null, within: null }, call)).toBe(true);
              present.delete(id);
              throughout.delete(id);
            }
          }
          const ids = seen.map(({ id }) => id);
          expect(new Set(ids).size, 'none twice').toBe(ids.length);
          expect(
            [...throughout].filter((id) => !ids.includes(id)),
            'none missing',
          ).toEqual([]);
          expect(ids).toEqual(seen.toSorted(order(temporal)).map(({ id }) => id));
        },
      ),
      { numRuns: 150 },
    );
  });
});

const storeIn = (id: string): number => ['~a', '~b'].indexOf(id.slice(0, 2)) + 1;
/** Newest first, then by store, then by id; without times, last. */
const order =
  (temporal: boolean) =>
  (a: Memory, b: Memory): number => {
    const time = ({ id, created_at }: Memory) => (temporal || storeIn(id) !== 2 ? created_at : '');
    return time(b).localeCompare(time(a)) || storeIn(a.id) - storeIn(b.id) || (a.id < b.id ? 1 : -1);
  };

function timeless(store: Store): Store {
  const { list, capabilities } = store as Required<Store>;
  return {
    ...store,
    capabilities: { ...capabilities, temporal: false },
    async list({ after, limit, ...query }, by) {
      const memories = await list({ ...query, limit: 1_000 }, by);
      const sorted = memories.toSorted((a, b) => (a.id < b.id ? 1 : -1));
      return sorted.filter(({ id }) => !after || id < after.id).slice(0, limit);
    },
  };
}
