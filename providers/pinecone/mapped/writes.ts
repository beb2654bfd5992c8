import { randomUUID } from 'node:crypto';
import {
  effectivePatch,
  inTurnById,
  invalidRequest,
  type Memory,
  newIdentity,
  type Provider,
  type Vector,
} from '#contract';
import { toUnit } from '#ranking';
import { requireFits } from '../record.ts';
import { isZero } from '../score.ts';
import type { Find } from './find.ts';
import { changes, newMetadata, requireStorable, toMemory } from './mapped-record.ts';
import type { Existing } from './parts.ts';

/** The verbs that change an index somebody else fills. Keys that no field names are never touched. */
export function createWrites(existing: Existing, find: Find): Required<Pick<Provider, 'add' | 'update' | 'delete'>> {
  const { service, namespace, fields, overlay } = existing;
  const inTurn = inTurnById();

  const valuesOf = (vector: Vector): Float32Array => {
    const values = toUnit(vector);
    // The service keeps no vector of zeros, and the owner would take any other for the meaning of the text.
    if (isZero(values)) throw invalidRequest('content: the embedder finds nothing in this text to search it by');
    return values;
  };

  return {
    async add(input, vector, call) {
      requireStorable(fields, input);
      const metadata = newMetadata(fields, input, newIdentity().created_at);
      requireFits(metadata);
      const values = valuesOf(vector);
      const id = randomUUID();
      const lsn = await service.upsert(namespace, { id, values, metadata }, call);
      const memory = toMemory(fields, id, metadata) as Memory;
      overlay.put({ memory, vector: values }, { namespace, lsn });
      return memory;
    },

    update: (ref, wanted, vector, call) =>
      inTurn(ref.id, async () => {
        call.signal.throwIfAborted();
        const found = await find(ref, call);
        const patch = found && effectivePatch(found.memory, wanted);
        if (!patch) return found?.memory;
        requireStorable(fields, patch);
        const now = new Date(Math.max(Date.now(), Date.parse(found.memory.updated_at) + 1)).toISOString();
        const updated_at = fields.updated === undefined ? found.memory.updated_at : now;
        const memory: Memory = { ...found.memory, ...patch, extensions: {}, updated_at };
        // The owner's other keys count too.
        requireFits({ ...found.metadata, ...newMetadata(fields, memory, memory.created_at) });
        const values = patch.content === undefined ? undefined : valuesOf(vector);
        const metadata = changes(fields, patch, found.metadata, now);
        const lsn = await service.update(namespace, { id: ref.id, metadata, ...(values && { values }) }, call);
        overlay.put({ memory, vector: values ?? found.vector }, { namespace, lsn });
        return memory;
      }),

    delete: (ref, call) =>
      inTurn(ref.id, async () => {
        call.signal.throwIfAborted();
        const found = await find(ref, call);
        if (!found) return false;
        const lsn = await service.remove(namespace, [ref.id], call);
        overlay.bury(found.memory, { namespace, lsn });
        return true;
      }),
  };
}
