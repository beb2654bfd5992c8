import type { Collection, Where } from 'chromadb';
import {
  byScore,
  type Call,
  invalidRequest,
  type ListQuery,
  type Memory,
  type ProviderMethods,
  recordBytes,
  roundScore,
  type SearchHit,
  type SearchQuery,
  toUnit,
} from 'omp-gateway/provider';
import { all, ask, getRows, RECORD, type Row } from './chroma.ts';

/** A collection as lists and searches see it: the gateway's own (`memories.ts`), or one that a library fills (`mapped.ts`). */
export interface Shelf {
  readonly collection: Collection;
  /** The metadata key that holds the user. */
  readonly user_field: string;
  /** Undefined: the record is no memory. */
  toMemory(row: Row): Memory | undefined;
  /** The cosine, from the distance by which the collection measures. */
  toCosine(distance: number): number;
  /** The ids of all records that a list may show, in its order. */
  inOrder(query: ListQuery, call: Call): Promise<string[]>;
}

/** Records that one request reads: a page of 100 and one more. However large they are, they fit into memory. */
const CHUNK = 101;
/** The most that a search ranks, and that the gateway reads to filter one page by scope. */
export const MAX_RESULTS = 10_000;
/** If the results of a query are not enough, the next one asks for this many times as many. */
const GROWTH = 4;

export const hasTags = (tags: readonly string[]): Where[] => tags.map((tag) => ({ tags: { $contains: tag } }));

/** The verbs that are the same for both kinds. */
export const readingVerbs = (shelf: Shelf): Required<Pick<ProviderMethods, 'list' | 'search' | 'ping' | 'close'>> => ({
  async list(query, call) {
    const rows = readInOrder(shelf.collection, await shelf.inOrder(query, call), { chunk: query.limit }, call);
    return (await readPage(rows, query, shelf.toMemory)).items.map(({ memory }) => memory);
  },
  search: (query, call) => search(shelf, query, call),
  ping: async (call) => void (await getRows(shelf.collection, { ids: ['ping'] }, [], call)),
  close: async () => {},
});

/**
 * The memories of rows until the page is full: it has `limit` of them, or the last one exceeds `max_bytes`. `full` is then the id of the last
 * row. A record that was deleted meanwhile does not make the page shorter.
 */
export async function readPage(
  rows: AsyncIterable<Row> | Iterable<Row>,
  { limit, max_bytes }: { readonly limit: number; readonly max_bytes: number },
  toMemory: (row: Row) => Memory | undefined,
): Promise<{ items: { row: Row; memory: Memory }[]; full?: string }> {
  const items: { row: Row; memory: Memory }[] = [];
  let bytes = 0;
  for await (const row of rows) {
    const memory = toMemory(row);
    if (!memory) continue;
    items.push({ row, memory });
    bytes += recordBytes(memory);
    if (items.length === limit || bytes > max_bytes) return { items, full: row.id };
  }
  return { items };
}

/** Reads records in the order of the ids, at most `chunk` at once. Leaves out those that are not there any more. */
export async function* readInOrder(
  collection: Collection,
  ids: readonly string[],
  { chunk, include = RECORD }: { readonly chunk: number; readonly include?: typeof RECORD },
  call: Call,
): AsyncGenerator<Row, void> {
  const size = Math.min(chunk, CHUNK);
  for (let start = 0; start < ids.length; start += size) {
    const some = ids.slice(start, start + size);
    const rows = new Map((await getRows(collection, { ids: some }, include, call)).map((row) => [row.id, row]));
    yield* some.flatMap((id) => rows.get(id) ?? []);
  }
}

/** All records that match, if they are at most `max`: Chroma returns any part of more, and sorts nothing. */
export async function findAll(
  collection: Collection,
  { where, max }: { readonly where: Where; readonly max: number },
  include: typeof RECORD,
  call: Call,
): Promise<Row[]> {
  const rows = await getRows(collection, { where, limit: max + 1 }, include, call);
  if (rows.length <= max) return rows;
  throw invalidRequest(`more than ${max} memories cannot be put in order; narrow the list by tag, since or until`);
}

/** Ranks by cosine; equal scores newest first. Chroma's index is approximate: of very many memories it may miss one. */
async function search(shelf: Shelf, query: SearchQuery, call: Call): Promise<SearchHit[]> {
  const { user_id, tags, limit, max_content_bytes = Number.POSITIVE_INFINITY } = query;
  const where = all([{ [shelf.user_field]: user_id }, ...hasTags(tags)]);
  for (let count = limit + 1; ; count = Math.min(count * GROWTH, MAX_RESULTS)) {
    const { ranked, isAll } = await rank(shelf, { unit: [...toUnit(query.vector)], where, count }, call);
    // What was not found has at most the last score: only higher ones are in their final place.
    const final = isAll ? ranked : ranked.filter(({ score }) => score > (ranked.at(-1)?.score ?? 0));
    const scores = new Map(final.map(({ row, score }) => [row.id, score]));
    const rows = final.every(({ row }) => row.metadata)
      ? final.map(({ row }) => row)
      : readInOrder(shelf.collection, [...scores.keys()], { chunk: limit }, call);
    const { items, full } = await readPage(rows, query, (row) => {
      const memory = shelf.toMemory(row);
      return memory && Buffer.byteLength(memory.content) <= max_content_bytes ? memory : undefined;
    });
    const hits = items.map(({ row, memory }) => ({ memory, score: scores.get(row.id) ?? 0 }));
    if (isAll || full !== undefined) return hits.sort(byScore);
  }
}

type Ranking = { readonly unit: number[]; readonly where: Where; readonly count: number };

/** The best `count` records, or all. The rows of a small ranking hold the whole record. */
async function rank({ collection, toCosine }: Shelf, { unit, where, count }: Ranking, call: Call) {
  const include = [...(count <= CHUNK ? RECORD : []), 'distances' as const];
  const query = { queryEmbeddings: [unit], nResults: count, where, include };
  let rows: Row[] = (await ask(call, () => collection.query(query))).rows()[0] ?? [];
  // In the graph of the index, some of many vectors that are alike are not reached. Then all are compared here.
  if (rows.length < count && rows.length < (await getRows(collection, { where, limit: count }, [], call)).length) {
    rows = await getRows(collection, { where, limit: MAX_RESULTS }, ['embeddings'], call);
  }
  const isAll = rows.length !== count || count === MAX_RESULTS;
  const cosineOf = ({ distance, embedding }: Row) => (embedding ? cosine(unit, embedding) : toCosine(distance ?? 0));
  const ranked = rows.map((row) => ({ row, score: roundScore(Math.min(1, Math.max(0, cosineOf(row)))) }));
  return { ranked: ranked.sort((a, b) => b.score - a.score || (a.row.id < b.row.id ? 1 : -1)), isAll };
}

/** `unit` has length 1. The cosine of a vector of zeros is 0, as in Chroma. */
function cosine(unit: readonly number[], vector: readonly number[]): number {
  const dot = (other: readonly number[]) => vector.reduce((sum, component, i) => sum + component * (other[i] ?? 0), 0);
  return dot(unit) / (Math.sqrt(dot(vector)) || 1);
}
