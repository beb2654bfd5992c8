import type { Where } from 'chromadb';
import {
  byScore,
  type Call,
  invalidRequest,
  type ListQuery,
  type Memory,
  recordBytes,
  roundScore,
  type SearchHit,
  type SearchQuery,
  toUnit,
} from 'omp-gateway/provider';
import { all, type Include, RECORD, type Row, type Store } from './chroma.ts';

/** A collection as lists and searches see it: the gateway's own (`memories.ts`), or one that a library fills (`mapped.ts`). */
export interface Shelf {
  readonly store: Store;
  /** The metadata key that holds the user. */
  readonly user_field: string;
  /** Undefined: the record is no memory. */
  toMemory(row: Row): Memory | undefined;
  /** The cosine, from the distance by which the collection measures. */
  toCosine(distance: number): number;
  /** The ids of all records that a list may show, in its order. */
  inOrder(query: ListQuery, call: Call): Promise<string[]>;
}

/** Records that one request reads: however large they are, they fit into memory. */
const CHUNK = 50;
/** The most that a search ranks, and that the gateway reads to filter one page by scope. */
export const MAX_RESULTS = 10_000;
/** If the results of a query are not enough, the next one asks for this many times as many. */
const GROWTH = 4;

export const hasTags = (tags: readonly string[]): Where[] => tags.map((tag) => ({ tags: { $contains: tag } }));

export async function list(shelf: Shelf, query: ListQuery, call: Call): Promise<Memory[]> {
  const { limit, max_bytes } = query;
  const ids = await shelf.inOrder(query, call);
  const memories: Memory[] = [];
  let bytes = 0;
  // A record may be deleted meanwhile: reading goes on until the page is full.
  for await (const row of readInOrder(shelf.store, ids, { chunk: limit }, call)) {
    const memory = shelf.toMemory(row);
    if (!memory) continue;
    memories.push(memory);
    bytes += recordBytes(memory);
    if (memories.length === limit || bytes > max_bytes) break;
  }
  return memories;
}

/** Reads records in the order of the ids, at most `chunk` at once. Leaves out those that are not there any more. */
export async function* readInOrder(
  store: Store,
  ids: readonly string[],
  { chunk, include = RECORD }: { readonly chunk: number; readonly include?: Include },
  call: Call,
): AsyncGenerator<Row, void> {
  const size = Math.min(chunk, CHUNK);
  for (let start = 0; start < ids.length; start += size) {
    const some = ids.slice(start, start + size);
    const rows = new Map((await store.get({ ids: some }, include, call)).map((row) => [row.id, row]));
    yield* some.flatMap((id) => rows.get(id) ?? []);
  }
}

/** All records that match, if they are at most `max`: Chroma returns any part of more, and sorts nothing. */
export async function findAll(
  store: Store,
  { where, max }: { readonly where: Where; readonly max: number },
  include: Include,
  call: Call,
): Promise<Row[]> {
  const rows = await store.get({ where, limit: max + 1 }, include, call);
  if (rows.length <= max) return rows;
  throw invalidRequest(`more than ${max} memories cannot be put in order; narrow the list by tag, or by since and until`);
}

/** Ranks by cosine; equal scores newest first. Chroma's index is approximate: of very many memories it may miss one. */
export async function search(shelf: Shelf, query: SearchQuery, call: Call): Promise<SearchHit[]> {
  const { user_id, tags, limit, max_bytes, max_content_bytes = Number.POSITIVE_INFINITY } = query;
  const vector = [...toUnit(query.vector)];
  const where = all([{ [shelf.user_field]: user_id }, ...hasTags(tags)]);
  const scoreOf = ({ distance }: Row) => roundScore(Math.min(1, Math.max(0, shelf.toCosine(distance ?? Number.NaN))));
  for (let count = limit + 1; ; count = Math.min(count * GROWTH, MAX_RESULTS)) {
    const isSmall = count <= CHUNK;
    const rows = await shelf.store.query({ vector, where, limit: count }, isSmall ? RECORD : [], call);
    const ranked = rows
      .map((row) => ({ row, score: scoreOf(row) }))
      .sort((a, b) => b.score - a.score || (a.row.id < b.row.id ? 1 : -1));
    const isAll = rows.length < count || count === MAX_RESULTS;
    // What was not found has at most this score: only higher ones are in their final place.
    const floor = isAll ? -1 : (ranked.at(-1)?.score ?? -1);
    const final = new Map(ranked.filter(({ score }) => score > floor).map(({ row, score }) => [row.id, { row, score }]));
    const found = isSmall
      ? [...final.values()].map(({ row }) => row)
      : readInOrder(shelf.store, [...final.keys()], { chunk: limit }, call);
    const hits: SearchHit[] = [];
    let bytes = 0;
    for await (const row of found) {
      const memory = shelf.toMemory(row);
      if (!memory || Buffer.byteLength(memory.content) > max_content_bytes) continue;
      hits.push({ memory, score: final.get(row.id)?.score ?? 0 });
      bytes += recordBytes(memory);
      if (hits.length === limit || bytes > max_bytes) break;
    }
    if (isAll || hits.length === limit || bytes > max_bytes) return hits.sort(byScore);
  }
}
