import { randomUUID } from 'node:crypto';
import {
  type Call,
  effectivePatch,
  invalidRequest,
  mergeExtensions,
  newIdentity,
  type Provider,
  providerError,
  recordBytes,
  recordTooLarge,
  requireFits,
} from '#contract';
import { toUnit } from '#ranking';
import type { Row } from '../client/connections.ts';
import { PROVIDER } from '../errors.ts';
import type { Query } from '../tables/memory-statements.ts';
import type { Layout } from './layout.ts';
import { type Statements, unsupported } from './mapped-statements.ts';
import { requirePlaces } from './places.ts';
import { refusing } from './refusal.ts';
import type { Reading } from './row-reading.ts';

export interface WriteOptions {
  readonly layout: Layout;
  readonly reading: Reading;
  readonly statements: Statements;
  readonly get: Provider['get'];
  readonly max_bytes: number;
  run(query: Query, call: Call): Promise<Row[]>;
}

/** The verbs that change a table somebody else fills. Columns and keys that no field has a place in are never touched. */
export function createWrites({ layout, reading, statements, get, max_bytes, run }: WriteOptions) {
  const write = async (query: Query, call: Call): Promise<Row | undefined> =>
    (await refusing(layout, run(query, call)))[0];

  return {
    async add(input, vector, call) {
      const user_id = layout.owner.toStored(input.user_id);
      if (user_id === undefined) throw unsupported('user_id: the table cannot hold memories of this user');
      // Where all rows are one user's, others have no place either.
      requirePlaces(layout, { ...input, user_id });
      const { id, created_at } = newIdentity();
      const ids = { text: id, uuid: randomUUID(), database: undefined };
      const row = { input: { ...input, user_id }, id: ids[layout.id.newIds], created_at, vector: toUnit(vector) };
      const kept = await write(statements.insert(row), call);
      const memory = kept && reading.toMemory(kept);
      if (!memory) throw providerError(PROVIDER, 'the table did not keep what was added');
      return memory;
    },

    async update(ref, wanted, vector, call) {
      const current = await get(ref, call);
      const patch = current && effectivePatch(current, wanted);
      if (!patch) return current;
      requirePlaces(layout, patch);
      requireFits(current, patch, max_bytes);
      // Whoever may touch all users still changes this one's memory.
      const query = statements.update(
        { ...ref, users: [current.user_id] },
        { patch, vector: patch.content === undefined ? undefined : toUnit(vector), max_bytes },
      );
      const updated = query && (await write(query, call));
      if (updated) return reading.toMemory(updated);
      // Gone meanwhile, or there and not to be changed.
      const present = await get(ref, call);
      if (present === undefined) return undefined;
      const extensions = mergeExtensions(present.extensions, patch.extensions);
      if (recordBytes({ ...present, ...patch, extensions }) > max_bytes) throw recordTooLarge(max_bytes);
      throw invalidRequest(
        `${Object.keys(patch).join(', ')}: the row keeps something else in this place, or is guarded`,
      );
    },

    async delete(ref, call) {
      const query = statements.remove(ref);
      return query !== undefined && (await write(query, call)) !== undefined;
    },
  } satisfies Required<Pick<Provider, 'add' | 'update' | 'delete'>>;
}
