import { isDeepStrictEqual } from 'node:util';
import { monotonicFactory, ulidToUUID } from 'ulid';
import {
  type ExtensionKey,
  type Extensions,
  type Identity,
  invalidRequest,
  isReserved,
  isUntrusted,
  MAX_EXTENSIONS,
  type Memory,
  type MemoryPatch,
  type MemoryVersion,
  type NewMemory,
  OmpError,
  ORIGIN,
  type Origin,
  type Position,
  type Ref,
  type SearchHit,
  type Times,
  UNTRUSTED,
  versionChanged,
  type Written,
} from '#contract';

/** A pool of random bytes: the library would request random bytes for every character. */
const pool = new Uint8Array(4_096);
let position = pool.length;
function random(): number {
  if (position === pool.length) {
    crypto.getRandomValues(pool);
    position = 0;
  }
  return (pool[position++] as number) / 256;
}

/** If the clock is set back further, its earlier time was wrong. */
const MAX_BACK_MS = 86_400_000;

const FIRST_MOMENT = Date.parse('0001-01-01T00:00:00Z');
const LAST_MOMENT = Date.parse('9999-12-31T23:59:59.999Z');

/** Whether every backend can store this time, in milliseconds since 1970: from the year 0001 to 9999 in UTC. An offset may lead out of them. */
export const isStorableTime = (milliseconds: number): boolean =>
  milliseconds >= FIRST_MOMENT && milliseconds <= LAST_MOMENT;

/**
 * `now` in milliseconds, or `latest` if the clock was set back by at most a day, so that newer records list first. After a
 * larger correction the corrected time counts.
 */
export function notBefore(latest: number, now = Date.now()): number {
  return latest - now > MAX_BACK_MS ? now : Math.max(latest, now);
}

/** Shared by all gateways of a process on purpose: no id may come twice. */
let ulid = monotonicFactory(random);
let latest = 0;

/** Id and creation time of a new record, for providers that generate ids. Within one process both increase like `notBefore`. */
export function newIdentity(): { id: string; created_at: string } {
  const now = notBefore(latest);
  // The old factory would continue from the later time.
  if (now < latest) ulid = monotonicFactory(random);
  latest = now;
  return { id: `mem_${ulid(latest)}`, created_at: new Date(latest).toISOString() };
}

/** The same with a UUID in lower case as id, which sorts as a text by when it was made. */
export function newUuidIdentity(): { id: string; created_at: string } {
  const { id, created_at } = newIdentity();
  return { id: ulidToUUID(id.slice('mem_'.length)).toLowerCase(), created_at };
}

/**
 * A new record, for providers that generate ids. Its status is `done` unless the identity has another. With the identity of
 * an earlier add, this is the record of that add.
 */
export function newRecord(
  input: NewMemory,
  embeddingModel: string | null,
  { id, created_at, status = 'done' }: Partial<Identity> & Pick<Identity, 'id' | 'created_at'> = newIdentity(),
): Memory {
  return { id, created_at, ...input, updated_at: created_at, embedding_model: embeddingModel, status };
}

/** The order of lists; ids are ASCII. */
export function newestFirst(a: Position, b: Position): number {
  if (a.created_at !== b.created_at) return a.created_at > b.created_at ? -1 : 1;
  if (a.id === b.id) return 0;
  return a.id > b.id ? -1 : 1;
}

/** What the memories of one conversation have in common (`NeighboursQuery`); undefined: the memory is in none. */
export const conversationOf = ({
  user_id,
  scope,
  source,
}: Pick<Memory, 'user_id' | 'scope' | 'source'>): string | undefined =>
  source?.ref ? JSON.stringify([user_id, scope, source.app, source.ref]) : undefined;

/** The order of hits. */
export const byScore = (a: SearchHit, b: SearchHit): number => b.score - a.score || newestFirst(a.memory, b.memory);

/** Merges two parts of one ranking, each best first, up to `limit` hits. Keeps the order within each part. */
export function mergeHits(a: readonly SearchHit[], b: readonly SearchHit[], limit: number): SearchHit[] {
  const merged: SearchHit[] = [];
  for (let [i, j] = [0, 0]; merged.length < limit && (i < a.length || j < b.length); ) {
    const [left, right] = [a[i], b[j]];
    if (left && (!right || byScore(left, right) <= 0)) {
      merged.push(left);
      i++;
    } else if (right) {
      merged.push(right);
      j++;
    }
  }
  return merged;
}

/** Whether both are the same JSON: 0 and -0 are. */
const isSame = (a: unknown, b: unknown): boolean =>
  isDeepStrictEqual(a, b) || (typeof a !== 'string' && isDeepStrictEqual(asJson(a), asJson(b)));
const asJson = (value: unknown) => (value === undefined ? undefined : JSON.parse(JSON.stringify(value)));

/**
 * The part of a patch that changes this record; undefined if nothing changes (Decision 7). What the gateway notes about a change is
 * none itself (Decision 54), and a mark stays as long as the content that it is about. With the mark goes what the untrusted key
 * superseded.
 */
export function effectivePatch(memory: Memory, { extensions, ...fields }: MemoryPatch): MemoryPatch | undefined {
  const changed = Object.entries(fields).filter(
    ([field, value]) => value !== undefined && !isSame(memory[field as keyof Memory], value),
  );
  const keepsContent = fields.content === undefined || fields.content === memory.content;
  const added = Object.entries(extensions ?? {}).filter(
    ([key, value]) =>
      !isSame(memory.extensions[key as ExtensionKey] ?? null, value) &&
      !(key === UNTRUSTED && value === null && keepsContent),
  );
  if (changed.length === 0 && added.every(([key]) => isReserved(key))) return undefined;
  const losesMark = added.some(([key, value]) => key === UNTRUSTED && value === null);
  if (losesMark && fields.supersedes === undefined) changed.push(['supersedes', []]);
  return { ...Object.fromEntries(changed), ...(added.length > 0 && { extensions: Object.fromEntries(added) }) };
}

/** Returns the record that was found, if any. Throws `versionChanged` unless it has one of the versions of the reference. */
export function requireVersion<Found extends Memory | undefined>(memory: Found, { versions }: Ref): Found {
  if (memory && versions && !versions.includes(memory.updated_at)) throw versionChanged(memory.updated_at);
  return memory;
}

/** A function that tells whether a query for this wants a memory. */
export function writtenMatcher({ origin, trusted }: Written = {}): (memory: Pick<Memory, 'extensions'>) => boolean {
  const matches = (actual: Partial<Origin> | undefined) => {
    if (!origin) return true;
    if ('key' in origin) return actual?.key === origin.key;
    return origin.via === 'unknown' ? actual === undefined : actual?.via === origin.via;
  };
  return (memory) =>
    !(trusted && isUntrusted(memory)) && matches(memory.extensions[ORIGIN] as Partial<Origin> | undefined);
}

/** Whether a memory was created within these bounds. */
export const isInTime = ({ created_at }: Pick<Memory, 'created_at'>, { since, until }: Times): boolean =>
  (since === undefined || created_at >= since) && (until === undefined || created_at <= until);

/** The `x-` keys after a patch: null removes one. */
export const mergeExtensions = (before: Extensions, changes: Extensions = {}): Extensions =>
  Object.fromEntries(Object.entries({ ...before, ...changes }).filter(([, value]) => value !== null));

/** Whether both records are the same, apart from what belongs to their stores: status and model of the vector, and the origin. */
export const isSameRecord = (a: Memory, b: Memory | undefined): boolean =>
  b !== undefined && isSame(withoutStore(a), withoutStore(b));
const withoutStore = ({ extensions: { [ORIGIN]: _, ...extensions }, ...memory }: Memory) => ({
  ...memory,
  extensions,
  embedding_model: null,
  status: null,
});

interface Moved {
  readonly memory: Memory;
  readonly versions?: readonly MemoryVersion[] | undefined;
}

/** The same with its memory, and that of each of its versions, changed. */
export const withMemories = <Item extends Moved>(item: Item, change: (memory: Memory) => Memory): Item => ({
  ...item,
  memory: change(item.memory),
  ...(item.versions && { versions: item.versions.map((one) => ({ ...one, memory: change(one.memory) })) }),
});

/** The fields of a record that can be long. */
type Sized = Pick<NewMemory, 'content' | 'tags' | 'source' | 'supersedes' | 'extensions'>;

/**
 * Size of a record: its content in UTF-8, its other fields as JSON in the longest form of all backends, and 32 bytes per
 * value and key, since small values take more memory than their text. If a provider measured a stored record as larger, a
 * list would end too early.
 */
export const recordBytes = ({ content, tags, source, supersedes, extensions }: Sized): number =>
  Buffer.byteLength(content) + jsonBytes(tags) + jsonBytes(source) + jsonBytes(supersedes) + jsonBytes(extensions);

export const recordTooLarge = (maxBytes: number): OmpError =>
  new OmpError(
    'payload_too_large',
    `the memory with all its fields takes more than ${maxBytes} bytes; remove x- keys with null, or split it into several`,
  );

/** The `x-` keys of clients. */
const ownExtensions = (extensions: Extensions): Extensions =>
  Object.fromEntries(Object.entries(extensions).filter(([key]) => !isReserved(key)));

/** Per value and per key. */
const VALUE_BYTES = 32;

/**
 * Throws if a patch makes a record too large or gives it too many `x-` keys. A record that exceeded a limit before may
 * stay as large.
 */
export function requireFits(before: Memory, patch: MemoryPatch, maxBytes: number): void {
  // What the gateway notes about a change does not count.
  const old = ownExtensions(before.extensions);
  const after = {
    ...before,
    ...patch,
    extensions: ownExtensions(mergeExtensions(before.extensions, patch.extensions)),
  };
  if (recordBytes(after) > Math.max(maxBytes, recordBytes({ ...before, extensions: old })))
    throw recordTooLarge(maxBytes);
  const keys = Object.keys(after.extensions).length;
  if (keys > Math.max(MAX_EXTENSIONS, Object.keys(old).length)) {
    throw invalidRequest(`a memory holds at most ${MAX_EXTENSIONS} x- keys; null removes one`);
  }
}

/**
 * Size of a value in the text form of Postgres `jsonb`: a space after every comma and colon, numbers without an exponent. Not
 * recursive: values in a mapped table may be nested deeper than the stack.
 */
export function jsonBytes(value: unknown): number {
  let bytes = 0;
  const rest = [value];
  while (rest.length > 0) {
    const next = rest.pop();
    bytes += VALUE_BYTES;
    if (typeof next === 'string') bytes += Buffer.byteLength(JSON.stringify(next));
    else if (typeof next === 'number') bytes += numberBytes(next);
    else if (typeof next !== 'object' || next === null) bytes += 5;
    else {
      const keys = Array.isArray(next) ? [] : Object.keys(next);
      const items = Array.isArray(next) ? next : Object.values(next);
      bytes += 2 + 2 * (keys.length + items.length);
      for (const part of keys) rest.push(part);
      for (const part of items) rest.push(part);
    }
  }
  return bytes;
}

function numberBytes(value: number): number {
  const text = String(value);
  const exponent = text.indexOf('e');
  return text.length + (exponent < 0 ? 0 : Math.abs(Number(text.slice(exponent + 1))));
}

/** How many records from the start fit into `maxBytes`, at least one, and their size. */
export function sizeWithin(records: Iterable<Memory>, maxBytes: number): { count: number; bytes: number } {
  let count = 0;
  let bytes = 0;
  for (const record of records) {
    const size = recordBytes(record);
    if (bytes + size > maxBytes && count > 0) break;
    bytes += size;
    count++;
  }
  return { count, bytes };
}

export const countWithin = (records: Iterable<Memory>, maxBytes: number): number => sizeWithin(records, maxBytes).count;

/** The items up to and including the first that exceeds `maxBytes`, as `ListQuery.max_bytes` requires. */
export const upToBytes = <Item>(items: readonly Item[], maxBytes: number, recordOf: (item: Item) => Memory): Item[] =>
  items.slice(0, countWithin(items.map(recordOf), maxBytes) + 1);
