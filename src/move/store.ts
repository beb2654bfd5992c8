import { setTimeout } from 'node:timers/promises';
import { globMatcher } from '#toolbox';
import {
  type Capabilities,
  type ExportedMemory,
  type LeftOut,
  MemoryClient,
  MemoryError,
  NotFoundError,
} from '../../clients/typescript/src/index.ts';

/** A store that memories are read from or written to, spoken to through a gateway. */
export interface GatewayStore {
  /** Messages name the store so. */
  readonly name: string;
  readonly client: MemoryClient;
  readonly capabilities: Capabilities;
  /** Whether what is copied has its versions. */
  readonly versions?: true;
  close(): Promise<void>;
}

export interface Filters {
  /** None: every user. */
  readonly users: readonly string[];
  /** Glob. */
  readonly scope?: string | undefined;
  /** A memory must have all of these. */
  readonly tags: readonly string[];
  /** ISO 8601: changed at or after this. */
  readonly since?: string | undefined;
  readonly vectors: boolean;
}

/** Where a walk over a store goes on. */
export interface WalkPlace {
  readonly user: number;
  readonly cursor?: string | undefined;
}

export interface Page {
  readonly memories: readonly ExportedMemory[];
  /** Where the walk goes on after this page; undefined: it is the last one, or the walk cannot go on later. */
  readonly next: WalkPlace | undefined;
}

const PAGE = 500;

/** Waits for a request that is retried while a gateway restarts or is out of its rate limit, in milliseconds. */
export const PATIENCE = { timeout: 120_000, totalTimeout: 600_000, retries: 20 } as const;

interface StoreOptions {
  readonly url: string;
  readonly key?: string | undefined;
  readonly fetch?: typeof fetch;
  /** Called with what went wrong when a request is about to be sent again, once until another one succeeds. */
  onRetry?(trouble: string): void;
  /** Waits until this aborts, or for as long as for any request, while the gateway does not answer; unset: for some seconds. */
  readonly patience?: AbortSignal | undefined;
  /** Called with a warning of the client, such as of a store that answers lack. */
  onWarning?(message: string): void;
}

export async function openStore(
  name: string,
  { url, key, patience, fetch: send = fetch, onRetry = () => {}, onWarning = () => {} }: StoreOptions,
  close: () => Promise<void> = async () => {},
): Promise<GatewayStore> {
  const client = new MemoryClient({ url, ...PATIENCE, ...(key && { key }), fetch: watched(send, onRetry), onWarning });
  // The name of no gateway is to be told soon.
  const capabilities = await client.capabilities(patience ? { signal: patience } : { retries: 2 });
  return { name, client, capabilities, close };
}

function watched(request: typeof fetch, onRetry: (trouble: string) => void): typeof fetch {
  let failing = false;
  const failed = (trouble: string) => {
    if (!failing) onRetry(trouble);
    failing = true;
  };
  return async (url, init) => {
    try {
      const response = await request(url, init);
      if (response.status === 429 || response.status >= 500) failed(`answers ${response.status}`);
      else failing = false;
      return response;
    } catch (error) {
      if (!init?.signal?.aborted) failed('does not answer');
      throw error;
    }
  };
}

/**
 * All memories of a store that the filters leave, page by page: by its export, or else user by user by its lists. Throws
 * if the store can list neither all memories nor its users, and no users are given.
 */
export async function* pagesOf(store: GatewayStore, filters: Filters, from?: WalkPlace): AsyncGenerator<Page> {
  const { client, capabilities } = store;
  const { since, vectors } = filters;
  const matches = matcherOf(filters);
  const canExport = capabilities.features.export === true;
  const users: readonly (string | undefined)[] =
    filters.users.length > 0 ? filters.users : canExport ? [undefined] : await allUsers(store);
  for (let user = from?.user ?? 0; user < users.length; user++) {
    let cursor = user === from?.user ? from.cursor : undefined;
    do {
      const user_id = users[user];
      const page = canExport
        ? await client.export({ user_id, since, vectors, versions: store.versions, limit: PAGE, cursor }).page()
        : await listed(client, { user_id: user_id as string, limit: PAGE, cursor });
      requireWhole(store, page);
      cursor = page.next_cursor ?? undefined;
      const next = cursor === undefined ? { user: user + 1 } : { user, cursor };
      yield { memories: page.memories.filter(matches), next: canExport && next.user < users.length ? next : undefined };
    } while (cursor !== undefined);
  }
}

/** Throws if the page lacks a store: what is missing would count as deleted. */
function requireWhole({ name }: GatewayStore, page: object): void {
  const { 'x-partial': partial = [], 'x-without': without = [] } = page as LeftOut;
  const [first] = [...partial, ...without];
  if (first === undefined) return;
  throw new Error(`${name} could not read its store ${first}; move that one by itself, as config#${first}`);
}

const listed = async (client: MemoryClient, query: Parameters<MemoryClient['memories']['list']>[0]) => {
  const { items, ...rest } = await client.memories.list(query).page();
  return { memories: items, ...rest };
};

async function allUsers({ name, client, capabilities }: GatewayStore): Promise<string[]> {
  if (!capabilities.features.users) throw new Error(`${name} cannot list its users; name them with --user`);
  const users: string[] = [];
  for await (const { user_id } of client.users.list({ limit: PAGE })) users.push(user_id);
  return users;
}

/** Ids of one request, and their characters: a URL holds them. */
const IDS = 50;
const ID_CHARACTERS = 4_000;

/** These memories as they are now, with their vectors if the store can give them; without those that do not exist. */
export async function memoriesOf(
  { client, capabilities, versions }: GatewayStore,
  ids: readonly string[],
  signal: AbortSignal,
): Promise<ExportedMemory[]> {
  // A gateway that knows no freeze knows no export by ids either, and would answer all memories.
  const canExport = capabilities.features.export === true && capabilities.features.freeze !== undefined;
  const found: ExportedMemory[] = [];
  for (let at = 0; at < ids.length; ) {
    const some: string[] = [];
    for (let characters = 0; at < ids.length && some.length < IDS; at++) {
      const id = ids[at] as string;
      characters += encodeURIComponent(id).length;
      if (characters > ID_CHARACTERS && some.length > 0) break;
      some.push(id);
    }
    if (canExport) {
      for await (const memory of client.export({ id: some, vectors: true, versions, limit: IDS }, { signal }))
        found.push(memory);
    } else {
      const all = await Promise.all(some.map((id) => orAbsent(client.memories.get(id, { signal }))));
      found.push(...all.filter((memory) => memory !== undefined));
    }
  }
  return found;
}

/** Deletes a memory, or all memories of a user, however often the gateway fails meanwhile. One that does not exist is deleted. */
export const deleteMemory = ({ client }: GatewayStore, id: string, signal: AbortSignal): Promise<void> =>
  insist(async () => void (await orAbsent(client.memories.delete(id, { signal }))), signal);

export async function eraseUser(store: GatewayStore, user_id: string, signal: AbortSignal): Promise<void> {
  const { client, capabilities } = store;
  if (capabilities.features.erase)
    return insist(async () => {
      const { 'x-partial': left } = await client.users.erase(user_id, { signal });
      if (left) throw new MemoryError(`no answer from ${left.join(', ')}`);
    }, signal);
  const ids: string[] = [];
  for await (const { id } of client.memories.list({ user_id, limit: PAGE }, { signal })) ids.push(id);
  for (const id of ids) await deleteMemory(store, id, signal);
}

async function orAbsent<Result>(work: Promise<Result>): Promise<Result | undefined> {
  try {
    return await work;
  } catch (error) {
    if (error instanceof NotFoundError) return undefined;
    throw error;
  }
}

/** Milliseconds between two attempts. */
const PAUSE_MS = 1_000;

/** Repeats what may be repeated, which the client does not know: only this command changes the target. */
async function insist<Result>(work: () => Promise<Result>, signal: AbortSignal): Promise<Result> {
  const end = Date.now() + PATIENCE.totalTimeout;
  for (;;) {
    try {
      return await work();
    } catch (error) {
      const { status } = error as { readonly status?: number };
      const mayPass = error instanceof MemoryError && (status === undefined || status >= 500);
      if (!mayPass || signal.aborted || Date.now() > end) throw error;
    }
    await setTimeout(PAUSE_MS, undefined, { signal });
  }
}

/** Whether the filters leave a memory. */
export function matcherOf({ users, scope, tags, since }: Filters): (memory: ExportedMemory) => boolean {
  const inScope = scope === undefined ? undefined : globMatcher(scope);
  return (memory) =>
    (users.length === 0 || users.includes(memory.user_id)) &&
    (!inScope || (memory.scope != null && inScope(memory.scope))) &&
    tags.every((tag) => memory.tags?.includes(tag)) &&
    // A time that cannot be read is for the target to reject.
    (since === undefined || !(momentOf(memory.updated_at ?? memory.created_at ?? '') < momentOf(since)));
}

/** Milliseconds since 1970. Without an offset a time is UTC, as in the protocol. */
export const momentOf = (time: string): number =>
  Date.parse(time.includes('T') && !/(?:Z|[+-]\d\d:?\d\d)$/.test(time) ? `${time}Z` : time);
