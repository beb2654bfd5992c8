import type { Call, Extensions, Memory, Ref, Source } from '#provider';
import type { Metadata, MetadataValue, Service, StoredRecord } from '../client/client.ts';
import { newest, type Overlay, type RecentWrite } from '../overlay.ts';
import type { Metric } from '../score.ts';
import { type IndexConsistency, waitUntil } from './consistency.ts';
import { type Ids, type Namespaces, parseId } from './ids.ts';

/** A memory as it is in a record. Outside it has `moved_id` as its id, if that is set (`transfer.ts`). */
export interface StoredMemory extends Memory {
  readonly moved_id?: string;
}

/** Keys cannot be removed from a record: a cleared field gets a value that no other field has. */
const CLEARED_TEXT = '';
const CLEARED_LIST: readonly string[] = [''];

/**
 * The metadata of a record, with the names of the protocol and without empty fields. `embedded`: whether the embedder found
 * anything in the text (`toValues`).
 */
export function toMetadata(memory: StoredMemory, embedded: boolean): Metadata {
  const { tags, source, confidence, valid_from, valid_to, supersedes } = memory;
  const extensions = Object.entries(memory.extensions).map(([key, value]) => [key, JSON.stringify(value)]);
  return {
    ...(Object.fromEntries(extensions) as Record<string, string>),
    content: memory.content,
    user_id: memory.user_id,
    created_at: memory.created_at,
    updated_at: memory.updated_at,
    ...(tags.length > 0 && { tags }),
    ...(source !== null && { source: JSON.stringify(source) }),
    ...(confidence !== null && { confidence }),
    ...(valid_from !== null && { valid_from }),
    ...(valid_to !== null && { valid_to }),
    ...(supersedes.length > 0 && { supersedes }),
    ...(!embedded && { embedded }),
    ...(memory.moved_id !== undefined && { moved_id: memory.moved_id }),
  };
}

/**
 * The metadata to set so that `before` becomes `after`, and no more: concurrent changes of other fields stay. `embedded` is
 * given exactly if the content changes.
 */
export function changes(before: StoredMemory, after: StoredMemory, embedded?: boolean): Metadata {
  const old = toMetadata(before, true);
  const next = toMetadata(after, true);
  const changedKeys = Object.keys({ ...old, ...next }).filter((key) => !isSame(old[key], next[key]));
  const clearedValue = (key: string) => (Array.isArray(old[key]) ? CLEARED_LIST : CLEARED_TEXT);
  return {
    ...Object.fromEntries(changedKeys.map((key) => [key, next[key] ?? clearedValue(key)])),
    ...(embedded !== undefined && { embedded }),
  };
}

const isSame = (a: MetadataValue | undefined, b: MetadataValue | undefined): boolean =>
  JSON.stringify(a) === JSON.stringify(b);

/** The memory in a record; undefined if there is none. Optional fields that cannot be read are left out. */
export function toMemory(id: string, metadata: Metadata, model: string): StoredMemory | undefined {
  const { confidence } = metadata;
  const content = textIn(metadata.content);
  const user_id = textIn(metadata.user_id);
  const created_at = textIn(metadata.created_at);
  if (content === null || user_id === null || created_at === null) return undefined;
  return {
    id,
    content,
    user_id,
    created_at,
    updated_at: textIn(metadata.updated_at) ?? created_at,
    scope: null,
    tags: listIn(metadata.tags),
    source: sourceIn(metadata.source),
    confidence: typeof confidence === 'number' ? confidence : null,
    valid_from: textIn(metadata.valid_from),
    valid_to: textIn(metadata.valid_to),
    supersedes: listIn(metadata.supersedes),
    extensions: extensionsIn(metadata),
    embedding_model: model,
    status: 'done',
    ...(typeof metadata.moved_id === 'string' && { moved_id: metadata.moved_id }),
  };
}

const textIn = (value: MetadataValue | undefined): string | null =>
  typeof value === 'string' && value !== CLEARED_TEXT ? value : null;

const listIn = (value: MetadataValue | undefined): string[] =>
  Array.isArray(value) ? value.filter((one) => one !== CLEARED_LIST[0]) : [];

/** Undefined if the value is not JSON. */
function jsonIn(value: MetadataValue | undefined): unknown {
  if (typeof value !== 'string') return undefined;
  try {
    return JSON.parse(value);
  } catch {
    return undefined;
  }
}

function sourceIn(value: MetadataValue | undefined): Source | null {
  const source = jsonIn(value);
  return typeof source === 'object' ? source : null;
}

function extensionsIn(metadata: Metadata): Extensions {
  const own = Object.keys(metadata).filter((key) => key.startsWith('x-'));
  const entries = own.map((key) => [key, jsonIn(metadata[key])] as const);
  return Object.fromEntries(entries.filter(([, value]) => value !== undefined));
}

/** Whether the embedder found anything in the text: otherwise the vector means nothing. */
export const isEmbedded = (metadata: Metadata): boolean => metadata.embedded !== false;

/** The reverse of `toValues`. */
export const toVector = ({ values, metadata }: Pick<StoredRecord, 'values' | 'metadata'>): Float32Array =>
  isEmbedded(metadata) ? Float32Array.from(values) : new Float32Array(values.length);

/** What the verbs on the gateway's index work with. */
export interface GatewayIndex {
  readonly service: Service;
  readonly ids: Ids;
  readonly namespaces: Namespaces;
  readonly overlay: Overlay;
  readonly consistency: IndexConsistency;
  /** Model of the embedder. */
  readonly model: string;
  readonly metric: Metric;
  /** Whether memories of other stores were moved here: only then are ids looked up that are none of the gateway. */
  moved: boolean;
  /** Maximum records read for one page of a filtered list. */
  readonly max_scan: number;
}

/** The latest version of a record that this gateway knows. */
export interface FoundRecord extends RecentWrite {
  readonly namespace: string;
}

export interface FindOptions {
  /** Every read shows records older than this. */
  readonly settle_ms: number;
  readonly consistency_wait_ms: number;
}

/** Finds records by id: the newer of what Pinecone has and what this process wrote. */
const createLook =
  ({ service, overlay, model }: GatewayIndex) =>
  async (namespace: string, ids: readonly string[], call: Call): Promise<Map<string, FoundRecord>> => {
    const records = await service.fetch(namespace, ids, call);
    const hits = new Map<string, FoundRecord>();
    for (const id of ids) {
      const record = records.get(id);
      // Read after the fetch: the record may have been written meanwhile.
      const write = overlay.get(id);
      if (write === null) continue;
      const memory = newest(write?.memory, record && toMemory(id, record.metadata, model));
      if (write && memory === write.memory) hits.set(id, { ...write, namespace });
      else if (record && memory) hits.set(id, { memory, vector: toVector(record), namespace });
    }
    return hits;
  };

/**
 * Finds one record: the newer of what Pinecone has and what this process wrote. Pinecone is asked for recent writes too,
 * since another gateway may have changed the record.
 */
export function createIndexFind(index: GatewayIndex, { settle_ms, consistency_wait_ms }: FindOptions) {
  const { ids, namespaces, overlay, consistency } = index;
  const look = createLook(index);

  return async ({ id, users }: Ref, call: Call): Promise<FoundRecord | undefined> => {
    const parts = parseId(id);
    // The id names the user: for other users there is no request and no wait, whether the record exists or not.
    const isInReach = users === null || users.some((user) => ids.userPart(user) === parts?.userPart);
    if (!parts || !isInReach || overlay.get(id) === null) return undefined;
    const namespace = namespaces.of(parts.userPart);
    await consistency.caughtUp(namespace, call);
    let record: FoundRecord | undefined;
    const isFound = async () => {
      record = (await look(namespace, [id], call)).get(id);
      return record !== undefined;
    };
    // Another gateway may have created it. Fetch reports no position: the only way is to look again.
    const isExpected = consistency.names(namespace, call) && Date.now() - parts.created_ms < settle_ms;
    if (!(await waitUntil(isFound, isExpected ? consistency_wait_ms : 0, call)) && isExpected)
      call.consistency?.behind();
    return record && (users === null || users.includes(record.memory.user_id)) ? record : undefined;
  };
}
