import { requireFits } from '../client/client.ts';
import { randomUUID } from 'node:crypto';
import {
  type Call,
  effectivePatch,
  inTurnById,
  invalidRequest,
  type Memory,
  newIdentity,
  type Provider,
} from '#contract';
import { isZero, toUnit } from '../score.ts';
import type { Find } from './find.ts';
import { changes, newMetadata, requireStorable, toMemory } from './mapped-record.ts';
import type { Existing } from './parts.ts';

/** The verbs that change an index somebody else fills. Keys that no field names are never touched. */
export function createWrites(existing: Existing, find: Find): Required<Pick<Provider, 'add' | 'update' | 'delete'>> {
  const { service, namespace, fields, embedder, overlay } = existing;
  const inTurn = inTurnById();

  const embed = async (text: string, call: Call): Promise<Float32Array> => {
    const vector = toUnit((await embedder.embed([text], 'document', call))[0] as Float32Array);
    // The service keeps no vector of zeros, and the owner would take any other for the meaning of the text.
    if (isZero(vector)) throw invalidRequest('content: the embedder finds nothing in this text to search it by');
    return vector;
  };

  return {
    async add(input, call) {
      requireStorable(fields, input);
      const metadata = newMetadata(fields, input, newIdentity().created_at);
      requireFits(metadata);
      const vector = await embed(input.content, call);
      const id = randomUUID();
      const lsn = await service.upsert(namespace, { id, values: vector, metadata }, call);
      const memory = toMemory(fields, id, metadata) as Memory;
      overlay.put({ memory, vector }, { namespace, lsn });
      return memory;
    },

    update: (ref, wanted, call) =>
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
        const values = patch.content === undefined ? undefined : await embed(patch.content, call);
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
