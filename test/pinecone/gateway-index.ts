import type { Call, Memory } from '#contract';
import { toUnit, toUnitHalf } from '#ranking';
import type { Metadata } from '../../providers/pinecone/client/client.ts';
import { connect } from '../../providers/pinecone/client/client.ts';
import { userFilter } from '../../providers/pinecone/filter.ts';
import { createConsistency } from '../../providers/pinecone/gateway-index/consistency.ts';
import { createIndexList } from '../../providers/pinecone/gateway-index/gateway-list.ts';
import type { GatewayIndex } from '../../providers/pinecone/gateway-index/gateway-record.ts';
import { changes, toMetadata } from '../../providers/pinecone/gateway-index/gateway-record.ts';
import { createIndexSearch } from '../../providers/pinecone/gateway-index/gateway-search.ts';
import { createIds, createNamespaces } from '../../providers/pinecone/gateway-index/ids.ts';
import { createOverlay } from '../../providers/pinecone/overlay.ts';
import type { Options } from '../../providers/pinecone/pinecone-options.ts';
import { toValues } from '../../providers/pinecone/score.ts';
import { post } from '../pinecone-server/plain.ts';
import type { Pinecone } from '../pinecone-server/start.ts';
import { call, memoryOf } from '../support/requests.ts';
import { freshUser, recordingLog } from '../support/subject.ts';

export const NAMESPACE = 'memories';

/** Texts here are vectors, written as JSON: `[1,0]`. Anything else has no signal. */
export const vectorOf = (text: string, dimension: number): Float32Array => {
  const vector = new Float32Array(dimension);
  if (text.startsWith('[')) vector.set(JSON.parse(text) as number[]);
  return toUnit(toUnitHalf(vector));
};

const EVERY_WRITE = { settle_ms: 3_600_000, shows: () => false, max_entries: 50_000 };
const makeOverlay = () => createOverlay({ ...EVERY_WRITE, log: recordingLog() });

/** One user's memories in a gateway's index on this server, and what its verbs work with. It remembers all of its writes. */
export function openUserIndex(
  server: Pinecone,
  dimension: number,
  {
    layout = 'single',
    namespace: base = NAMESPACE,
    metric = 'cosine',
    max_scan = 100_000,
  }: Partial<Options & Pick<GatewayIndex, 'metric'>> = {},
) {
  const user_id = freshUser();
  const service = connect({ api_key: 'key', index_host: server.url, timeout_ms: 600_000 });
  const secret = new Uint8Array(32);
  const nobody = { vector: new Float32Array(dimension), topK: 1, filter: userFilter('', []), includeMetadata: false };
  const look = async (where: string, by: Call) => (await service.query(where, nobody, by)).indexedLsn;
  const ids = createIds(secret);
  const own = {
    service,
    ids,
    namespaces: createNamespaces(layout, base),
    overlay: makeOverlay(),
    consistency: createConsistency({ secret, wait_ms: 0, look }),
    model: 'model',
    metric,
    moved: false,
    max_scan,
  };
  const namespace = own.namespaces.of(ids.userPart(user_id));

  const toRecord = (memory: Memory) => {
    const { values, embedded } = toValues(vectorOf(memory.content, dimension));
    return { id: memory.id, values, metadata: toMetadata(memory, embedded) };
  };
  const remember = (memory: Memory, lsn: number | undefined) =>
    own.overlay.put({ memory, vector: vectorOf(memory.content, dimension) }, { namespace, lsn });
  const send = async (path: string, body: object) => {
    const { status, body: answer } = await post(server, path, { ...body, namespace });
    if (status !== 200) throw new Error(JSON.stringify(answer));
  };

  return {
    user_id,
    userPart: ids.userPart(user_id),
    namespace,
    own: own as GatewayIndex,
    /** A memory of the user made then. */
    memory(created_ms: number, more: Partial<Memory> = {}): Memory {
      const created_at = new Date(created_ms).toISOString();
      const made = { id: ids.make(user_id, created_ms), created_at, updated_at: created_at };
      return { ...memoryOf(user_id, 'tea'), ...made, embedding_model: 'model', status: 'done', ...more };
    },
    /** As this gateway writes. */
    async add(memory: Memory) {
      remember(memory, await service.upsert(namespace, [toRecord(memory)], call));
    },
    async change(before: Memory, after: Memory) {
      const { values, embedded } = toValues(vectorOf(after.content, dimension));
      const change = { id: after.id, values, metadata: changes(before, after, embedded) };
      remember(after, await service.update(namespace, change, call));
    },
    async remove(memory: Memory) {
      own.overlay.bury(memory, { namespace, lsn: await service.remove(namespace, [memory.id], call) });
    },
    /** As another gateway writes: any number at once, with any metadata on top. */
    async seed(memories: readonly Memory[], more: Metadata = {}) {
      const together = Math.min(1_000, Math.floor(1_900_000 / (500 + JSON.stringify([memories[0], more]).length)));
      for (let at = 0; at < memories.length; at += together) {
        const vectors = memories.slice(at, at + together).map((memory) => {
          const { id, values, metadata } = toRecord(memory);
          return { id, values: [...values], metadata: { ...metadata, ...more } };
        });
        await send('/vectors/upsert', { vectors });
      }
    },
    async drop(memories: readonly Memory[]) {
      if (memories.length > 0) await send('/vectors/delete', { ids: memories.map(({ id }) => id) });
    },
    /** What a process just started knows of recent writes: nothing. */
    forget() {
      own.overlay.close();
      own.overlay = makeOverlay();
    },
    /** A list of a process just started, which remembers no pages. */
    restarted: () => createIndexList(own),
    /** `altered`: parts of the index that err. */
    search(
      query: string,
      more: { tags?: readonly string[]; limit?: number } = {},
      altered: Partial<GatewayIndex> = {},
    ) {
      const used: GatewayIndex = { ...own, ...altered };
      const search = createIndexSearch(used, createIndexList(used));
      const vector = vectorOf(query, dimension);
      return search({ user_id, text: query, vector, tags: [], within: null, max_bytes: 1e9, limit: 10, ...more }, call);
    },
    close: () => own.overlay.close(),
  };
}
export type UserIndex = ReturnType<typeof openUserIndex>;
