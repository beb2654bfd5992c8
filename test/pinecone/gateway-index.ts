import { collectionMethods } from '#collections';
import type { Call, Memory } from '#contract';
import { toUnit, toUnitHalf } from '#ranking';
import { connect, type Metadata } from '../../providers/pinecone/client/client.ts';
import { userFilter } from '../../providers/pinecone/filter.ts';
import { createConsistency } from '../../providers/pinecone/gateway-index/consistency.ts';
import { createGatewayCollection } from '../../providers/pinecone/gateway-index/gateway-collection.ts';
import type { GatewayIndex } from '../../providers/pinecone/gateway-index/gateway-reads.ts';
import { toMetadata } from '../../providers/pinecone/gateway-index/gateway-record.ts';
import { createIds, createNamespaces } from '../../providers/pinecone/gateway-index/ids.ts';
import { createOverlay } from '../../providers/pinecone/overlay.ts';
import type { Options } from '../../providers/pinecone/pinecone-options.ts';
import { toPoint } from '../../src/collections/points.ts';
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
    metric,
    moved: false,
    ...{ settle_ms: EVERY_WRITE.settle_ms, consistency_wait_ms: 0 },
  };
  const namespace = own.namespaces.of(ids.userPart(user_id));

  const pointOf = (memory: Memory) => toPoint(memory, vectorOf(memory.content, dimension), 'text');
  const toRecord = (memory: Memory) => {
    const { id, vector, fields } = pointOf(memory);
    return { id, values: vector, metadata: toMetadata(id, fields) };
  };
  /** What a process just started makes of the index: it remembers no pages. */
  const collectionOf = (index: GatewayIndex = own) => createGatewayCollection(index);
  const methodsOf = (index?: GatewayIndex) =>
    collectionMethods(
      { collection: collectionOf(index), model: 'model', dimensions: dimension, scoped: false, max_scan },
      1e9,
    );
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
    metadataOf: (memory: Memory): Metadata => toRecord(memory).metadata,
    /** As this gateway writes. */
    add: (memory: Memory) => collectionOf().upsert([pointOf(memory)], call),
    change: (before: Memory, after: Memory) => collectionOf().patch?.(pointOf(after), pointOf(before), call),
    remove: ({ id }: Memory) => collectionOf().remove([id], call),
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
    /** `altered`: parts of the index that err. */
    methods: (altered: Partial<GatewayIndex>) => methodsOf({ ...own, ...altered }),
    /** A list of a process just started, which remembers no pages. */
    restarted: () => methodsOf().list,
    /** `altered`: parts of the index that err. */
    search(
      query: string,
      more: { tags?: readonly string[]; limit?: number } = {},
      altered: Partial<GatewayIndex> = {},
    ) {
      const vector = vectorOf(query, dimension);
      const asked = { user_id, text: query, vector, tags: [], within: null, max_bytes: 1e9, limit: 10, ...more };
      return methodsOf({ ...own, ...altered }).search(asked, call);
    },
    close: () => own.overlay.close(),
  };
}
export type UserIndex = ReturnType<typeof openUserIndex>;
