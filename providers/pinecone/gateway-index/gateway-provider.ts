import {
  type BatchOutcome,
  type Call,
  createKeyedMutex,
  effectivePatch,
  MAX_RECORD_BYTES,
  type Memory,
  type MemoryPatch,
  mergeExtensions,
  type NewMemory,
  newRecord,
  notBefore,
  OmpError,
  type Provider,
  requireFits as requireRecordFits,
  toUnit,
  type Vector,
} from '#provider';
import {
  MAX_CONTENT_LENGTH,
  MAX_DELETED,
  MAX_TOP_K,
  type NewRecord,
  requireFits,
  upsertChunks,
} from '../client/client.ts';
import { PROVIDER } from '../client/pinecone-errors.ts';
import type { RecentWrite } from '../overlay.ts';
import { toValues } from '../score.ts';
import { INDEX_RECORD } from '../startup.ts';
import { createIndexList } from './gateway-list.ts';
import {
  changes,
  createIndexFind,
  type FindOptions,
  type GatewayIndex,
  type StoredMemory,
  toMetadata,
} from './gateway-record.ts';
import { createIndexSearch } from './gateway-search.ts';
import { EARLIEST_MS } from './ids.ts';
import { signOf, withExport } from './index-export.ts';

/** A new record, not yet stored. */
interface NewEntry extends RecentWrite {
  readonly namespace: string;
  readonly record: NewRecord;
}

/** The verbs on the gateway's index. */
export function createGatewayProvider(index: GatewayIndex, options: FindOptions): Provider {
  const { service, ids, namespaces, overlay, consistency } = index;
  const find = createIndexFind(index, options);
  const list = createIndexList(index);
  const mutex = createKeyedMutex();

  const provider: Provider = {
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
      etags: false,
      explain: true,
    },
    ...createAdds(index),
    get: async (ref, call) => (await find(ref, call))?.memory,
    update: ({ ref, patch: wanted, vector: embedding }, call) =>
      mutex(ref.id, async () => {
        call.throwIfAborted();
        const current = await find(ref, call);
        const patch = current && effectivePatch(current.memory, wanted);
        if (!patch) return current?.memory;
        requireRecordFits(current.memory, patch, MAX_RECORD_BYTES);
        const { namespace } = current;
        const memory = applyPatch(current.memory, patch);
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
        call.throwIfAborted();
        const current = await find(ref, call);
        if (!current) return false;
        const { namespace, memory } = current;
        const lsn = await service.remove(namespace, [ref.id], call);
        overlay.bury(memory, { namespace, lsn });
        consistency.wrote(namespace, lsn, call);
        return true;
      }),
    list,
    async erase({ user_id }, call) {
      const namespace = namespaces.of(ids.userPart(user_id));
      const page = { user_id, tags: [], within: null, limit: MAX_DELETED, max_bytes: Number.POSITIVE_INFINITY };
      for (let count = 0; ; ) {
        const memories = await list(page, call);
        if (memories.length === 0) return count;
        const all = memories.map(({ id }) => id);
        const lsn = await service.remove(namespace, all, call);
        const signs = memories.flatMap(({ moved_id }: StoredMemory) =>
          moved_id === undefined ? [] : [signOf(moved_id)],
        );
        if (signs.length > 0) await service.remove(namespaces.base, signs, call);
        for (const memory of memories) overlay.bury(memory, { namespace, lsn });
        consistency.wrote(namespace, lsn, call);
        count += memories.length;
      }
    },
    search: createIndexSearch(index, list),
    stats: () => ({ queue_length: service.queueLength() }),
    ping: async (call) => void (await service.fetch(namespaces.base, [INDEX_RECORD], call)),
    close: async () => overlay.close(),
  };
  return withExport(provider, index);
}

function createAdds({ service, ids, namespaces, overlay, consistency, model }: GatewayIndex) {
  const createdAt = createClock();
  /** Throws `payload_too_large` if the record is too large. */
  const create = (input: NewMemory, embedding: Vector): NewEntry => {
    const vector = toUnit(embedding);
    const createdMs = createdAt();
    const id = ids.make(input.user_id, createdMs);
    const memory = newRecord(input, model, { id, created_at: new Date(createdMs).toISOString() });
    const { values, embedded } = toValues(vector);
    const metadata = toMetadata(memory, embedded);
    requireFits(metadata);
    const namespace = namespaces.of(ids.userPart(input.user_id));
    return { memory, vector, namespace, record: { id, values, metadata } };
  };
  const store = async (namespace: string, all: readonly NewEntry[], call: Call): Promise<void> => {
    const records = all.map(({ record }) => record);
    const lsn = await service.upsert(namespace, records, call);
    for (const { memory, vector } of all) overlay.put({ memory, vector }, { namespace, lsn });
    consistency.wrote(namespace, lsn, call);
  };

  return {
    async add({ input, vector }, call) {
      const entry = create(input, vector);
      await store(entry.namespace, [entry], call);
      return entry.memory;
    },
    async batch({ items }, call) {
      const outcomes: BatchOutcome[] = [];
      const byNamespace = new Map<string, (NewEntry & { readonly place: number })[]>();
      for (const [place, { input, vector }] of items.entries()) {
        try {
          const entry = create(input, vector);
          const others = byNamespace.get(entry.namespace) ?? [];
          byNamespace.set(entry.namespace, [...others, { ...entry, place }]);
        } catch (error) {
          if (!(error instanceof OmpError)) throw error;
          outcomes[place] = error;
        }
      }
      let failure: OmpError | undefined;
      for (const [namespace, all] of byNamespace) {
        for (const chunk of upsertChunks(all)) {
          if (!failure) {
            failure = await store(namespace, chunk, call).then(
              () => undefined,
              (error: unknown) => {
                // Later upserts would hit the same fault; what was stored before must be reported.
                if (error instanceof OmpError && outcomes.some((outcome) => outcome && !(outcome instanceof OmpError)))
                  return error;
                throw error;
              },
            );
          }
          for (const { place, memory } of chunk) outcomes[place] = failure ?? memory;
        }
      }
      return outcomes;
    },
  } satisfies Pick<Provider, 'add' | 'batch'>;
}

const applyPatch = (memory: Memory, patch: MemoryPatch): Memory => ({
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
