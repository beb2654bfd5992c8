import type { Memory, MemoryPatch, Provider } from '#contract';
import { toUnit } from '#ranking';
import { createKeyedMutex, effectivePatch, mergeExtensions, newRecord, notBefore } from '#toolbox';
import { MAX_CONTENT_LENGTH, MAX_TOP_K, requireFits } from '../client/client.ts';
import { PROVIDER } from '../client/errors.ts';
import { toValues } from '../score.ts';
import { INDEX_RECORD } from '../startup.ts';
import { createList } from './gateway-list.ts';
import { changes, createFind, type FindOptions, type GatewayIndex, toMetadata } from './gateway-record.ts';
import { createSearch } from './gateway-search.ts';
import { EARLIEST_MS } from './ids.ts';

/** The verbs on the gateway's index. */
export function createGatewayProvider(index: GatewayIndex, options: FindOptions): Provider {
  const { service, ids, namespaces, overlay, consistency, model } = index;
  const find = createFind(index, options);
  const list = createList(index);
  const mutex = createKeyedMutex();
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
      max_list_scan: index.max_scan,
      consistency_tokens: true,
      explain: true,
    },
    async add(input, embedding, call) {
      const vector = toUnit(embedding);
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
    update: (ref, wanted, embedding, call) =>
      mutex(ref.id, async () => {
        call.signal.throwIfAborted();
        const current = await find(ref, call);
        const patch = current && effectivePatch(current.memory, wanted);
        if (!patch) return current?.memory;
        const { namespace } = current;
        const memory = patched(current.memory, patch);
        const changed = patch.content === undefined ? undefined : toUnit(embedding);
        const vector = changed ?? current.vector;
        const { values, embedded } = toValues(vector);
        requireFits(toMetadata(memory, embedded));
        // Only what changes, never the whole record: another gateway's change of another field stays, and a memory that it
        // deleted is not restored.
        const metadata = changes(current.memory, memory, changed && embedded);
        const lsn = await service.update(namespace, { id: ref.id, metadata, ...(changed && { values }) }, call);
        overlay.put({ memory, vector }, { namespace, lsn });
        consistency.wrote(namespace, lsn, call);
        return memory;
      }),
    delete: (ref, call) =>
      mutex(ref.id, async () => {
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
    search: createSearch(index, list),
    stats: () => ({ queue_length: service.queueLength() }),
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

/** Milliseconds since 1970, growing as `notBefore` does and never the same twice: later memories are listed first. */
function createClock(): () => number {
  let latest = 0;
  return () => {
    latest = notBefore(latest + 1, Math.max(EARLIEST_MS, Date.now()));
    return latest;
  };
}
