import type { Call, ListQuery, Memory } from '#contract';
import { createList } from '../../providers/pinecone/gateway-index/gateway-list.ts';
import type { GatewayIndex } from '../../providers/pinecone/gateway-index/gateway-record.ts';
import { toMetadata } from '../../providers/pinecone/gateway-index/gateway-record.ts';
import type { Options } from '../../providers/pinecone/options.ts';
import { post } from '../pinecone-server/plain.ts';
import type { Pinecone } from '../pinecone-server/start.ts';
import { callBy, listOf, memoryOf } from '../support/requests.ts';
import { freshUser } from '../support/subject.ts';
import { openIndex } from './gateway-index.ts';

/** Dimension of the servers these lists run on. */
export const DIMENSION = 2;
const VECTOR = Float32Array.of(1, 0);

/** Some moment long after the first that an id can name. */
export const NOON = Date.UTC(2026, 5, 15, 12);

export interface Listing {
  readonly own: GatewayIndex;
  readonly user_id: string;
  readonly userPart: string;
  readonly namespace: string;
  /** A list of a process just started, which remembers no pages. */
  restarted(): (query: ListQuery, call: Call) => Promise<Memory[]>;
  /** A memory of the user made then. */
  memory(created_ms: number, more?: Partial<Memory>): Memory;
  /** Writes as another gateway does. */
  seed(memories: readonly Memory[]): Promise<void>;
  drop(memories: readonly Memory[]): Promise<void>;
  /** Writes as this gateway does. */
  add(memory: Memory): Promise<void>;
  remove(memory: Memory): Promise<void>;
  close(): void;
}

let listings = 0;

/** Lists of one user, in namespaces of their own. */
export function openListing(
  server: Pinecone,
  { layout = 'single', max_scan = 10_000 }: Partial<Pick<Options, 'layout' | 'max_scan'>> = {},
): Listing {
  const user_id = freshUser();
  listings += 1;
  const own = openIndex(server, { layout, namespace: `listing-${listings}`, max_scan });
  const { ids, overlay } = own;
  const userPart = ids.userPart(user_id);
  const namespace = own.namespaces.of(userPart);
  const where = { namespace, lsn: undefined };

  const send = async (path: string, body: object) => {
    const { status, body: answer } = await post(server, path, { ...body, namespace });
    if (status !== 200) throw new Error(JSON.stringify(answer));
  };
  const inThousands = async (memories: readonly Memory[], write: (some: readonly Memory[]) => Promise<void>) => {
    for (let at = 0; at < memories.length; at += 1_000) await write(memories.slice(at, at + 1_000));
  };
  const seed: Listing['seed'] = (memories) =>
    inThousands(memories, (some) =>
      send('/vectors/upsert', {
        vectors: some.map((memory) => ({ id: memory.id, values: [...VECTOR], metadata: toMetadata(memory, true) })),
      }),
    );
  const drop: Listing['drop'] = (memories) =>
    inThousands(memories, (some) => send('/vectors/delete', { ids: some.map(({ id }) => id) }));

  return {
    own,
    user_id,
    userPart,
    namespace,
    restarted: () => createList(own),
    memory(created_ms, more = {}) {
      const created_at = new Date(created_ms).toISOString();
      const made = { id: ids.make(user_id, created_ms), created_at, updated_at: created_at };
      return { ...memoryOf(user_id, 'tea'), ...made, embedding_model: 'model', status: 'done', ...more };
    },
    seed,
    drop,
    async add(memory) {
      await seed([memory]);
      overlay.put({ memory, vector: VECTOR }, where);
    },
    async remove(memory) {
      await drop([memory]);
      overlay.bury(memory, where);
    },
    close: () => overlay.close(),
  };
}

/** The order of every list (Decision 1). */
export const newestFirst = (a: Memory, b: Memory): number => compare(b.created_at, a.created_at) || compare(b.id, a.id);
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
