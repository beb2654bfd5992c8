import type { Call, ListQuery, Memory } from '#contract';
import type { Pinecone } from '../pinecone-server/start.ts';
import { callBy, listOf } from '../support/requests.ts';
import { openUserIndex, type UserIndex } from './gateway-index.ts';

/** Dimension of the servers these lists run on. */
export const DIMENSION = 2;

/** Some moment long after the first that an id can name. */
export const NOON = Date.UTC(2026, 5, 15, 12);

export type Listing = UserIndex;

let listings = 0;

/** One user's memories in a namespace of their own. */
export const openListing = (server: Pinecone, options: Parameters<typeof openUserIndex>[2] = {}): Listing =>
  openUserIndex(server, DIMENSION, { namespace: `listing-${++listings}`, max_scan: 10_000, ...options });

/** The order of every list (Decision 1). */
const newestFirst = (a: Memory, b: Memory): number => compare(b.created_at, a.created_at) || compare(b.id, a.id);
const compare = (a: string, b: string): number => Number(a > b) - Number(a < b);

export const sorted = (memories: readonly Memory[]): Memory[] => [...memories].sort(newestFirst);
export const idsOf = (memories: readonly Memory[]): string[] => memories.map(({ id }) => id);

export const call: Call = callBy();

/** Requests that `work` makes, by operation. */
export async function requestsOf(server: Pinecone, work: () => Promise<unknown>): Promise<Record<string, number>> {
  await server.resetCalls();
  await work();
  const counts: Record<string, number> = {};
  for (const { operation } of await server.calls()) counts[operation] = (counts[operation] ?? 0) + 1;
  return counts;
}

/** Every page, as the gateway asks for them: one memory more than a page holds tells whether another page follows. */
export async function* paging(
  list: (query: ListQuery, call: Call) => Promise<Memory[]>,
  user_id: string,
  { limit, ...filters }: Partial<ListQuery> & { readonly limit: number },
): AsyncGenerator<Memory[], void> {
  let after: Partial<ListQuery> = {};
  for (;;) {
    const found = await list(listOf(user_id, { ...filters, ...after, limit: limit + 1 }), call);
    const page = found.slice(0, limit);
    yield page;
    const last = page.at(-1);
    if (found.length <= limit || !last) return;
    after = { after: last };
  }
}

export async function allPages(pages: AsyncIterable<Memory[]>): Promise<Memory[]> {
  const all: Memory[] = [];
  for await (const page of pages) all.push(...page);
  return all;
}
