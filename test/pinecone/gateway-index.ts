import type { Call, Memory } from '#contract';
import { toUnit, toUnitHalf } from '#ranking';
import type { Lsn, Metadata } from '../../providers/pinecone/client/client.ts';
import { connect } from '../../providers/pinecone/client/client.ts';
import { userFilter } from '../../providers/pinecone/filter.ts';
import { createConsistency } from '../../providers/pinecone/gateway-index/consistency.ts';
import { createList } from '../../providers/pinecone/gateway-index/gateway-list.ts';
import type { GatewayIndex } from '../../providers/pinecone/gateway-index/gateway-record.ts';
import { changes, toMetadata } from '../../providers/pinecone/gateway-index/gateway-record.ts';
import { createSearch } from '../../providers/pinecone/gateway-index/gateway-search.ts';
import { createIds, createNamespaces } from '../../providers/pinecone/gateway-index/ids.ts';
import type { Options } from '../../providers/pinecone/options.ts';
import { createOverlay } from '../../providers/pinecone/overlay.ts';
import { type Metric, toValues } from '../../providers/pinecone/score.ts';
import type { Pinecone } from '../pinecone-server/start.ts';
import { call, memoryOf } from '../support/requests.ts';
import { freshUser, recordingLog } from '../support/subject.ts';

export const NAMESPACE = 'memories';
const FIRST_MS = Date.UTC(2026, 0, 1);

/** Texts here are vectors, written as JSON: `[1,0]`. Anything else has no signal. */
export const vectorOf = (text: string, dimension: number): Float32Array => {
  const vector = new Float32Array(dimension);
  if (text.startsWith('[')) vector.set(JSON.parse(text) as number[]);
  return toUnit(toUnitHalf(vector));
};

const EVERY_WRITE = { settle_ms: 3_600_000, shows: () => false, max_entries: 50_000 };
const makeOverlay = () => createOverlay({ ...EVERY_WRITE, log: recordingLog() });

/** What the verbs on a gateway's index work with, on this server. It remembers all of its writes. */
export function openIndex(
  server: Pinecone,
  { layout = 'single', namespace = NAMESPACE, ...more }: Partial<Options & Pick<GatewayIndex, 'metric'>> = {},
) {
  const service = connect({ api_key: 'key', index_host: server.url, timeout_ms: 600_000 });
  const secret = new Uint8Array(32);
  const look = async (where: string, by: Call) => {
    const { dimension = 1 } = await service.stats(by);
    const nobody = { vector: new Float32Array(dimension), topK: 1, filter: userFilter('', []), includeMetadata: false };
    return (await service.query(where, nobody, by)).indexedLsn;
  };
  return {
    service,
    ids: createIds(secret),
    namespaces: createNamespaces(layout, namespace),
    overlay: makeOverlay(),
    consistency: createConsistency({ secret, wait_ms: 0, look }),
    model: 'model',
    metric: more.metric ?? 'cosine',
    moved: false,
    max_scan: more.max_scan ?? 100_000,
  };
}

/** One user's memories in a gateway's index, and all that search works with. Writes bypass the provider's verbs. */
export function openUserIndex(server: Pinecone, dimension: number, metric: Metric = 'cosine') {
  const user_id = freshUser();
  const own = openIndex(server, { metric });
  const { service, ids } = own;

  /** A memory made so many milliseconds after the first. */
  const memory = (ms: number, content: string, more: Partial<Memory> = {}): Memory => {
    const created_at = new Date(FIRST_MS + ms).toISOString();
    return {
      ...memoryOf(user_id, content),
      id: ids.make(user_id, FIRST_MS + ms),
      created_at,
      updated_at: created_at,
      embedding_model: 'model',
      status: 'done',
      ...more,
    };
  };
  const toRecord = (made: Memory) => {
    const { values, embedded } = toValues(vectorOf(made.content, dimension));
    return { id: made.id, values, metadata: toMetadata(made, embedded) };
  };
  const remember = (made: Memory, lsn: Lsn) =>
    own.overlay.put({ memory: made, vector: vectorOf(made.content, dimension) }, { namespace: NAMESPACE, lsn });

  return {
    user_id,
    own: own as GatewayIndex,
    memory,
    /** As this gateway writes. */
    async add(made: Memory) {
      remember(made, await service.upsert(NAMESPACE, [toRecord(made)], call));
    },
    async change(before: Memory, after: Memory) {
      const { values, embedded } = toValues(vectorOf(after.content, dimension));
      const change = { id: after.id, values, metadata: changes(before, after, embedded) };
      remember(after, await service.update(NAMESPACE, change, call));
    },
    async remove(made: Memory) {
      own.overlay.bury(made, { namespace: NAMESPACE, lsn: await service.remove(NAMESPACE, [made.id], call) });
    },
    /** As another gateway writes: any number at once, with any metadata on top. */
    async bulk(made: readonly Memory[], more: Metadata = {}) {
      const together = Math.min(1_000, Math.floor(1_900_000 / (500 + JSON.stringify([made[0], more]).length)));
      for (let at = 0; at < made.length; at += together) {
        const vectors = made.slice(at, at + together).map((one) => {
          const { id, values, metadata } = toRecord(one);
          return { id, values: [...values], metadata: { ...metadata, ...more } };
        });
        const response = await fetch(`${server.url}/vectors/upsert`, {
          method: 'POST',
          headers: { 'content-type': 'application/json', 'api-key': 'key', 'x-pinecone-api-version': '2026-04' },
          body: JSON.stringify({ vectors, namespace: NAMESPACE }),
        });
        if (!response.ok) throw new Error(await response.text());
      }
    },
    /** What a process just started knows of recent writes: nothing. */
    forget() {
      own.overlay.close();
      own.overlay = makeOverlay();
    },
    /** `altered`: parts of the index that err. */
    search(
      query: string,
      more: { tags?: readonly string[]; limit?: number } = {},
      altered: Partial<GatewayIndex> = {},
    ) {
      const used: GatewayIndex = { ...own, ...altered };
      const search = createSearch(used, createList(used));
      const vector = vectorOf(query, dimension);
      return search({ user_id, text: query, vector, tags: [], within: null, max_bytes: 1e9, limit: 10, ...more }, call);
    },
    close: () => own.overlay.close(),
  };
}
