/** Most ids of one fetch, which travel in the address. */
const FETCHED = 100;
/** Most characters of an address: servers and proxies in between cut it off at 8 KB. */
const ADDRESS = 8_000;
/** Most ids of one delete. */
const DELETED = 1_000;

/** The ids Pinecone can hold and fetch: printable ASCII without spaces, 1 to 512 characters, each of them once. */
export const holdable = (ids: readonly string[]): string[] =>
  [...new Set(ids)].filter((id) => /^[\x21-\x7e]{1,512}$/.test(id));

/** The ids in groups, each small enough for the address of one fetch. */
export function fetchChunks(namespace: string, ids: readonly string[]): string[][] {
  const room = ADDRESS - '/vectors/fetch?&namespace='.length - encodeURIComponent(namespace).length;
  const chunks: string[][] = [];
  let chunk: string[] = [];
  let used = 0;
  for (const id of ids) {
    const takes = '&ids='.length + encodeURIComponent(id).length;
    if (chunk.length > 0 && (chunk.length === FETCHED || used + takes > room)) {
      chunks.push(chunk);
      chunk = [];
      used = 0;
    }
    chunk.push(id);
    used += takes;
  }
  return chunk.length > 0 ? [...chunks, chunk] : chunks;
}

/** The ids in groups for one delete each. */
export const deleteChunks = (ids: readonly string[]): string[][] =>
  Array.from({ length: Math.ceil(ids.length / DELETED) }, (_, at) => ids.slice(at * DELETED, (at + 1) * DELETED));

/** Requests of one call under way at once. */
const AT_ONCE = 4;

/** Does the work for every chunk, a few at once, and begins no more of it after the first failure. In the given order. */
export async function forEachChunk<Result>(
  chunks: readonly string[][],
  work: (chunk: string[]) => Promise<Result>,
): Promise<Result[]> {
  const results: Result[] = [];
  const waiting = [...chunks.entries()];
  const worker = async () => {
    for (let next = waiting.shift(); next; next = waiting.shift()) results[next[0]] = await work(next[1]);
  };
  try {
    await Promise.all(Array.from({ length: AT_ONCE }, worker));
  } finally {
    waiting.length = 0;
  }
  return results;
}
