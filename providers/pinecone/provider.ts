import {
  effectivePatch,
  inTurnById,
  type Memory,
  type MemoryPatch,
  mergeExtensions,
  newRecord,
  notBefore,
  type Provider,
} from '#contract';
import { toUnit } from '#ranking';
import { MAX_TOP_K } from './client/client.ts';
import { PROVIDER } from './client/errors.ts';
import { createFind, type FindOptions } from './find.ts';
import { EARLIEST_MS } from './gateway-index/ids.ts';
import { INDEX_RECORD } from './identity.ts';
import { createList } from './list.ts';
import type { Own } from './parts.ts';
import { changes, MAX_CONTENT_LENGTH, requireFits, toMetadata, toValues } from './record.ts';
import { createSearch } from './search.ts';

/** The verbs on an index of ours. */
export function createProvider(own: Own, options: FindOptions): Provider {
  const { service, ids, namespaces, overlay, visibility, model } = own;
  const find = createFind(own, options);
  const list = createList(own);
  const inTurn = inTurnById();
  const createdAt = createClock();

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
    async add(input, found, call) {
      const vector = toUnit(found);
      const created = createdAt();
      const id = ids.make(input.user_id, created);
      const memory = newRecord(input, model, { id, created_at: new Date(created).toISOString() });
      const { values, embedded } = toValues(vector);
      const metadata = toMetadata(memory, embedded);
      requireFits(metadata);
      const namespace = namespaces.of(ids.userPart(input.user_id));
      const lsn = await service.upsert(namespace, { id, values, metadata }, call);
      overlay.put({ memory, vector }, { namespace, lsn });
      visibility.wrote(namespace, lsn, call);
      return memory;
    },
    get: async (ref, call) => (await find(ref, call))?.memory,
    update: (ref, wanted, found, call) =>
      inTurn(ref.id, async () => {
        call.signal.throwIfAborted();
        const current = await find(ref, call);
        const patch = current && effectivePatch(current.memory, wanted);
        if (!patch) return current?.memory;
        const { namespace } = current;
        const memory = patched(current.memory, patch);
        const moved = patch.content === undefined ? undefined : toUnit(found);
        const vector = moved ?? current.vector;
        const { values, embedded } = toValues(vector);
        requireFits(toMetadata(memory, embedded));
        // Only what changes, and never the whole record: another gateway's change of another field stays, and what was
        // deleted meanwhile does not come back.
        const metadata = changes(current.memory, memory, moved && embedded);
        const lsn = await service.update(namespace, { id: ref.id, metadata, ...(moved && { values }) }, call);
        overlay.put({ memory, vector }, { namespace, lsn });
        visibility.wrote(namespace, lsn, call);
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
        visibility.wrote(namespace, lsn, call);
        return true;
      }),
    list,
    search: createSearch(own, list),
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
