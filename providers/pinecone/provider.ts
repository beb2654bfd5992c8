import { MAX_CONTENT_LENGTH, requireFits } from './client/client.ts';
import { toValues } from './score.ts';
import {
  type Call,
  type Embedder,
  effectivePatch,
  inTurnById,
  type Memory,
  type MemoryPatch,
  mergeExtensions,
  newRecord,
  notBefore,
  type Provider,
} from '#contract';
import { MAX_TOP_K } from './client/client.ts';
import { PROVIDER } from './client/errors.ts';
import { createFind, type FindOptions } from './gateway-index/gateway-record.ts';
import { EARLIEST_MS } from './gateway-index/ids.ts';
import { INDEX_RECORD } from './identity.ts';
import { createList } from './gateway-index/gateway-list.ts';
import type { GatewayIndex } from './gateway-index/gateway-record.ts';
import { changes, toMetadata } from './gateway-index/gateway-record.ts';
import { toUnit } from './score.ts';
import { createSearch } from './search.ts';

/** The verbs on an index of ours. */
export function createProvider(own: GatewayIndex, embedder: Embedder, options: FindOptions): Provider {
  const { service, ids, namespaces, overlay, consistency, model } = own;
  const find = createFind(own, options);
  const list = createList(own);
  const inTurn = inTurnById();
  const createdAt = createClock();
  const embed = async (text: string, purpose: 'document' | 'query', call: Call) =>
    toUnit((await embedder.embed([text], purpose, call))[0] as Float32Array);

  return {
    name: PROVIDER,
    capabilities: {
      vector_search: true,
      keyword_search: false,
      temporal: true,
      scopes: 'tags',
      tags: true,
      max_content_length: MAX_CONTENT_LENGTH,
      supports_supersession: true,
      max_search_results: MAX_TOP_K,
      max_list_scan: own.max_scan,
      consistency_tokens: true,
    },
    async add(input, call) {
      const vector = await embed(input.content, 'document', call);
      const created = createdAt();
      const id = ids.make(input.user_id, created);
      const memory = newRecord(input, model, { id, created_at: new Date(created).toISOString() });
      const { values, embedded } = toValues(vector);
      const metadata = toMetadata(memory, embedded);
      requireFits(metadata);
      const namespace = namespaces.of(ids.userPart(input.user_id));
      const lsn = await service.upsert(namespace, { id, values, metadata }, call);
      overlay.put({ memory, vector }, { namespace, lsn });
      consistency.wrote(namespace, lsn, call);
      return memory;
    },
    get: async (ref, call) => (await find(ref, call))?.memory,
    update: (ref, wanted, call) =>
      inTurn(ref.id, async () => {
        call.signal.throwIfAborted();
        const current = await find(ref, call);
        const patch = current && effectivePatch(current.memory, wanted);
        if (!patch) return current?.memory;
        const { namespace } = current;
        const memory = patched(current.memory, patch);
        const moved = patch.content === undefined ? undefined : await embed(patch.content, 'document', call);
        const vector = moved ?? current.vector;
        const { values, embedded } = toValues(vector);
        requireFits(toMetadata(memory, embedded));
        // Only what changes, and never the whole record: another gateway's change of another field stays, and what was
        // deleted meanwhile does not come back.
        const metadata = changes(current.memory, memory, moved && embedded);
        const lsn = await service.update(namespace, { id: ref.id, metadata, ...(moved && { values }) }, call);
        overlay.put({ memory, vector }, { namespace, lsn });
        consistency.wrote(namespace, lsn, call);
        return memory;
      }),
    delete: (ref, call) =>
      inTurn(ref.id, async () => {
        call.signal.throwIfAborted();
        const current = await find(ref, call);
        if (!current) return false;
        const { namespace, memory } = current;
        const lsn = await service.remove(namespace, [ref.id], call);
        overlay.bury(memory, { namespace, lsn });
        consistency.wrote(namespace, lsn, call);
        return true;
      }),
    list,
    search: createSearch({ own, embed: (text, call) => embed(text, 'query', call), list }),
    stats: () => ({ waiting: service.queueLength() }),
    ping: async (call) => void (await service.fetch(namespaces.base, [INDEX_RECORD], call)),
    close: async () => overlay.close(),
  };
}

const patched = (memory: Memory, patch: MemoryPatch): Memory => ({
  ...memory,
  ...patch,
  extensions: mergeExtensions(memory.extensions, patch.extensions),
  updated_at: new Date(Math.max(Date.now(), Date.parse(memory.updated_at) + 1)).toISOString(),
});

/** Milliseconds since 1970, growing as `notBefore` does, and never two the same: what is added later lists first. */
function createClock(): () => number {
  let latest = 0;
  return () => {
    latest = notBefore(latest + 1, Math.max(EARLIEST_MS, Date.now()));
    return latest;
  };
}
