import { isDeepStrictEqual } from 'node:util';
import type { Client, Reply } from './client.ts';
import { createEntry, type Entry, LedgerError } from './ledger-entry.ts';
import { freshUser } from './subject.ts';
import type { WireHit, WireMemory, WirePage } from './wire.ts';

export { LedgerError };

type LedgerVerb = 'add' | 'search' | 'list' | 'get' | 'update' | 'delete';

export interface Outcome {
  readonly verb: LedgerVerb;
  /** Unset: answered with success. The code of an error, `no answer`, or `given up` by the client itself. */
  readonly failed?: string;
}

/** A request that did not succeed: a reply, or undefined where the connection broke. */
export type Excuse = (reply: Reply | undefined) => boolean;

export interface LedgerOptions {
  /** Which failures are right; unset: those of a backend that is down. */
  readonly excuse?: Excuse;
  /** Share of the requests that the client itself gives up. */
  readonly impatience?: number;
  /** Once there are so many memories, one is deleted before another is added. */
  readonly mostMemories?: number;
  /** The scope of all its memories, which its lists and searches ask for; unset: none. */
  readonly scope?: string;
  /** Whether some adds have an `Idempotency-Key`, which a move to another store does not take along. Default: true. */
  readonly keys?: boolean;
}

export interface Ledger {
  /** One operation, drawn at random. Throws a `LedgerError` when its answer is wrong. */
  step(): Promise<Outcome>;
  /** Compares everything with what the store holds. Resolves with the number of memories. */
  check(): Promise<number>;
  /**
   * Searches so many memories by their own content, each of which has to come first, and deleted ones by theirs. Those
   * with a write that was not acknowledged come first.
   */
  searchOwn(n: number): Promise<void>;
  /** Whether all of the memories are embedded; rejects when one was given up. */
  allDone(): Promise<boolean>;
}

/** No deadline of a gateway under test is nearly as long. */
const HANGS_MS = 90_000;

/** How often each verb is drawn, of a hundred. */
const SHARES: Readonly<Record<LedgerVerb, number>> = { add: 35, search: 12, list: 5, get: 23, update: 15, delete: 10 };
const DRAWN = Object.entries(SHARES).flatMap(([verb, share]) => new Array<LedgerVerb>(share).fill(verb as LedgerVerb));

const pick = <Item>(items: readonly Item[]): Item | undefined => items[Math.floor(Math.random() * items.length)];

/** The envelope of a dependency that is down. */
export const downOf = (...dependencies: readonly string[]): Excuse => refusedWith('provider_error', 502, dependencies);

/** The envelope of too many requests; of the gateway itself, or of one of these. */
export const rateLimitedBy = (...dependencies: readonly string[]): Excuse =>
  refusedWith('rate_limited', 429, [undefined, ...dependencies]);

const refusedWith =
  (code: string, status: number, providers: readonly (string | undefined)[]): Excuse =>
  (reply) => {
    const { error } = (reply?.body ?? {}) as { error?: { code: string; provider?: string } };
    return reply?.status === status && error?.code === code && providers.includes(error.provider);
  };

/** Whatever any of these excuses. */
export const anyOf =
  (...excuses: readonly Excuse[]): Excuse =>
  (reply) =>
    excuses.some((excuse) => excuse(reply));

/** The gateway itself is down. */
export const brokenConnection: Excuse = (reply) => reply === undefined;

/** Of how many requests for one memory, in a hundred, it was deleted before. */
const DELETED_SHARE = 5;

/**
 * The memories of one user, as a client knows them that asks one thing after the other and notes what was acknowledged.
 * It accepts right answers and the failures that are excused, nothing else. Some requests it gives up itself. What it
 * adds with an `Idempotency-Key` it sends again until that is acknowledged, and once more after that; nothing it writes may
 * ever be there twice. Each write sets several fields at once, all of which name it: half of one is never found.
 */
export function openLedger(
  client: Client,
  {
    excuse = downOf('postgres'),
    impatience = 0.1,
    mostMemories = Number.POSITIVE_INFINITY,
    scope,
    keys = true,
  }: LedgerOptions = {},
): Ledger {
  const user_id = freshUser();
  const within: Readonly<Record<string, string>> = scope === undefined ? {} : { scope };
  const entries = new Map<string, Entry>();
  /** Adds that were not acknowledged: they may turn up under an unknown id. */
  const unacknowledged = new Set<number>();
  const toRepeat: { readonly key: string; readonly version: number; readonly id?: string }[] = [];
  /** Deleted, or with a write that was not acknowledged: since the last check, and ever. */
  const toRead = new Map<string, Entry>();
  const doubtful = new Set<string>();
  let written = 0;
  let patient = false;
  const fieldsOf = (version: number) => ({
    content: `note ${version} about ${user_id}`,
    tags: [`note-${version}`],
    'x-note': version,
  });

  /** A string says why there is no answer that could be judged. */
  const send = async (path: string, method = 'GET', body?: object, headers = {}): Promise<Reply | string> => {
    const givenUp = !patient && Math.random() < impatience;
    const patience = AbortSignal.timeout(givenUp ? 1 + Math.floor(Math.random() * 20) : HANGS_MS);
    const reply = await client
      .raw(path, {
        method,
        headers: body ? { 'content-type': 'application/json', ...headers } : {},
        ...(body && { body: JSON.stringify(body) }),
        signal: patience,
      })
      .catch((cause: unknown) => {
        if (patience.aborted && givenUp) return 'given up';
        if (patience.aborted) throw new LedgerError('hangs', `${method} ${path.split('?')[0]}`, cause);
        if (excuse(undefined)) return 'no answer';
        throw new LedgerError('wrong', `${method} ${path.split('?')[0]} was not answered`, cause);
      });
    if (typeof reply === 'string' || !excuse(reply)) return reply;
    return (reply.body as { error: { code: string } }).error.code;
  };
  const wrong = (what: string, reply: Reply) =>
    new LedgerError('wrong', `${what} answered ${reply.status}: ${reply.text}`);

  const versionOf = ({ id, content, tags, 'x-note': version }: WireMemory): number => {
    const written = { content, tags, 'x-note': version };
    if (isDeepStrictEqual(written, fieldsOf(version as number))) return version as number;
    throw new LedgerError('wrong', `${id} was written by halves: ${JSON.stringify(written)}`);
  };
  /** What is found must be possible, and what must be there has to be found where all is asked for. */
  const compare = (found: readonly WireMemory[], all: boolean) => {
    const versions = new Set<number>();
    for (const memory of found) {
      const { id } = memory;
      const version = versionOf(memory);
      const entry = entries.get(id);
      if (versions.has(version)) throw new LedgerError('wrong', `found twice: ${memory.content}`);
      versions.add(version);
      if (entry) entry.found(version);
      // Deleted or changed later on, it is still known under its id.
      else if (unacknowledged.delete(version)) entries.set(id, createEntry(id, version));
      else throw new LedgerError('wrong', `${id} should not be found with: ${memory.content}`);
    }
    if (!all) return;
    const ids = new Set(found.map(({ id }) => id));
    for (const [id, entry] of entries) if (!ids.has(id)) entry.missed();
  };

  const add = async (): Promise<string | undefined> => {
    const again = Math.random() < 0.3 ? toRepeat.shift() : undefined;
    const key = again?.key ?? (keys && Math.random() < 0.3 ? crypto.randomUUID() : undefined);
    const version = again?.version ?? written++;
    const fields = { user_id, ...within, ...fieldsOf(version) };
    const reply = await send('/memories', 'POST', fields, key ? { 'idempotency-key': key } : {});
    if (typeof reply === 'string') {
      if (!again) unacknowledged.add(version);
      if (key) toRepeat.push({ ...again, key, version });
      return reply;
    }
    if (reply.status !== 201) throw wrong('add', reply);
    const memory = reply.body as WireMemory;
    const { id } = memory;
    if (versionOf(memory) !== version || id !== (again?.id ?? id)) throw wrong('add', reply);
    if (key && !again?.id) toRepeat.push({ key, version, id });
    // One that was found before it was acknowledged may have been changed since.
    if (entries.has(id)) return undefined;
    if (!unacknowledged.delete(version) && again) throw new LedgerError('wrong', `added twice: ${memory.content}`);
    entries.set(id, createEntry(id, version));
    return undefined;
  };
  const search = async (q = 'note about', limit = '20'): Promise<readonly WireMemory[] | string> => {
    const reply = await send(`/memories/search?${new URLSearchParams({ user_id, q, limit, ...within })}`);
    if (typeof reply === 'string') return reply;
    if (reply.status !== 200) throw wrong('search', reply);
    const found = (reply.body as { results: WireHit[] }).results.map(({ memory }) => memory);
    compare(found, false);
    return found;
  };
  const list = async (): Promise<string | undefined> => {
    const reply = await send(`/memories?${new URLSearchParams({ user_id, limit: '10', ...within })}`);
    if (typeof reply === 'string') return reply;
    if (reply.status !== 200) throw wrong('list', reply);
    compare((reply.body as WirePage).items, false);
    return undefined;
  };
  const byId = async (id: string, entry: Entry, verb: 'get' | 'update' | 'delete'): Promise<string | undefined> => {
    const version = written++;
    const method = { get: 'GET', update: 'PATCH', delete: 'DELETE' }[verb];
    const reply = await send(client.byId(id), method, verb === 'update' ? fieldsOf(version) : undefined);
    if (verb === 'delete' || (verb === 'update' && typeof reply === 'string')) {
      toRead.set(id, entry);
      doubtful.add(id);
    }
    if (typeof reply === 'string') {
      if (verb === 'update') entry.mayBecome(version);
      if (verb === 'delete') entry.mayGo();
      return reply;
    }
    if (reply.status === 404) entry.missed();
    else if (reply.status !== (verb === 'delete' ? 204 : 200)) throw wrong(verb, reply);
    else if (verb === 'delete') entry.deleted();
    else {
      const memory = reply.body as WireMemory;
      if (verb === 'update') entry.updated(version);
      if (memory.id !== id || (verb === 'update' && versionOf(memory) !== version)) throw wrong(verb, reply);
      compare([memory], false);
    }
    return undefined;
  };
  const all = async (): Promise<WireMemory[]> => {
    const found: WireMemory[] = [];
    let cursor: string | undefined;
    do {
      const page: WirePage = await client.list({ user_id, limit: 200, cursor, ...within });
      found.push(...page.items);
      cursor = page.next_cursor ?? undefined;
    } while (cursor);
    compare(found, true);
    return found;
  };
  /** By get, with no excuse. */
  const read = async (id: string, entry: Entry) => {
    const failed = await byId(id, entry, 'get');
    if (failed !== undefined) throw new LedgerError('wrong', `get answered ${failed}`);
  };
  const searchFor = async (id: string, entry: Entry): Promise<void> => {
    const { version } = entry;
    const { content } = fieldsOf(version);
    const found = await search(content, '5');
    if (typeof found === 'string') throw new LedgerError('wrong', `search answered ${found}`);
    if (entry.gone || found[0]?.id === id) return;
    await read(id, entry);
    // A write that was not acknowledged may have happened in between.
    if (!entry.gone && entry.version === version)
      throw new LedgerError('wrong', `not found by its content: ${content}`);
    return searchFor(id, entry);
  };
  const patiently = async (work: () => Promise<void>) => {
    patient = true;
    await work().finally(() => {
      patient = false;
    });
  };

  return {
    async step() {
      const of = (gone: boolean) => [...entries].filter(([, entry]) => entry.gone === gone);
      const there = of(false);
      const known = pick(there);
      const drawn = (known && pick(DRAWN)) ?? 'add';
      const verb = drawn === 'add' && there.length >= mostMemories ? 'delete' : drawn;
      let failed: string | undefined;
      if (verb === 'add') failed = await add();
      else if (verb === 'list') failed = await list();
      else if (verb === 'search') {
        const found = await search();
        if (typeof found === 'string') failed = found;
      } else {
        const deleted = Math.random() * 100 < DELETED_SHARE ? pick(of(true)) : undefined;
        failed = await byId(...(deleted ?? (known as [string, Entry])), verb);
      }
      return { verb, ...(failed !== undefined && { failed }) };
    },
    async check() {
      await all();
      // List, get and list again have to agree, also about a write that was not acknowledged.
      await patiently(async () => {
        for (const [id, entry] of toRead) await read(id, entry);
      });
      toRead.clear();
      return (await all()).length;
    },
    searchOwn: (n) =>
      patiently(async () => {
        const shuffled = [...entries].sort(() => Math.random() - 0.5);
        const half = (inDoubt: boolean) => shuffled.filter(([id]) => doubtful.has(id) === inDoubt).slice(0, n);
        for (const [id, entry] of [...half(true), ...half(false)].slice(0, n)) await searchFor(id, entry);
      }),
    async allDone() {
      const memories = await all();
      const given = memories.find(({ status }) => status === 'failed');
      if (given) throw new LedgerError('wrong', `given up, though nothing is wrong with it: ${given.id}`);
      return memories.every(({ status }) => status === 'done');
    },
  };
}
