import { isDeepStrictEqual } from 'node:util';
import type { Client } from '../support/client.ts';
import type { WireMemory } from '../support/wire.ts';
import { OWNERS, SCOPES, USERS } from './cases.ts';

/** A word that every record holds, so that a search for it finds all that may be found. */
export const WORD = 'coffee';

/** A store with one record of every owner in every scope, and what has to be in it at any time. */
export interface World {
  /** Those records, oldest first; nobody may end up having changed them. */
  readonly targets: readonly WireMemory[];
  /** Another record like this one, for a key that is allowed to change it. */
  copy(target: WireMemory): Promise<WireMemory>;
  /** The store has to hold this from now on. */
  expect(memory: WireMemory): void;
  /** The store must not hold this any more. */
  expectGone(id: string): void;
  /** Where the store differs from what it has to hold. */
  differences(): Promise<unknown[]>;
  /** Removes everything but the targets. */
  tidy(): Promise<void>;
}

/** `seeder` makes the targets and nothing else, `master` looks after the rest; both may do everything. */
export async function openWorld(seeder: Client, master: Client): Promise<World> {
  const due = new Map<string, WireMemory>();
  const targets: WireMemory[] = [];
  for (const user_id of OWNERS) {
    for (const scope of SCOPES) {
      const memory = await seeder.add({ user_id, scope, content: `${WORD} note of ${user_id} in ${scope}` });
      targets.push(memory);
      due.set(memory.id, memory);
    }
  }
  const permanent = new Set(due.keys());
  return {
    targets,
    async copy({ content, user_id, scope }) {
      const memory = await master.add({ content, user_id, scope });
      due.set(memory.id, memory);
      return memory;
    },
    expect: (memory) => void due.set(memory.id, memory),
    expectGone: (id) => void due.delete(id),
    async differences() {
      const pages = await Promise.all(USERS.map((user_id) => master.list({ user_id, limit: 500 })));
      const stored = new Map(pages.flatMap(({ items }) => items).map((memory) => [memory.id, memory]));
      return [...new Set([...due.keys(), ...stored.keys()])]
        .map((id) => ({ due: due.get(id), stored: stored.get(id) }))
        .filter((pair) => !isDeepStrictEqual(pair.due, pair.stored));
    },
    async tidy() {
      const extra = [...due.keys()].filter((id) => !permanent.has(id));
      await Promise.all(extra.map((id) => master.remove(id)));
      for (const id of extra) due.delete(id);
    },
  };
}
