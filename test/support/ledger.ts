import type { Client, Reply } from './client.ts';
import { freshUser } from './subject.ts';
import type { WireHit, WireMemory, WirePage } from './wire.ts';

/** What may be found of one memory. An acknowledged write leaves one possibility, any other adds one. */
interface Entry {
  readonly contents: Set<string>;
  mayBeThere: boolean;
  mayBeGone: boolean;
}

/** `lost`: what was acknowledged is not there; `wrong`: an answer that cannot be right; `hangs`: none at all. */
export class LedgerError extends Error {
  readonly kind: 'lost' | 'wrong' | 'hangs';

  constructor(kind: LedgerError['kind'], message: string, cause?: unknown) {
    super(`${kind}: ${message}`, { cause });
    this.kind = kind;
  }
}

export type Verb = 'add' | 'search' | 'list' | 'get' | 'update' | 'delete';

export interface Outcome {
  readonly verb: Verb;
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
}

export interface Ledger {
  /** One operation, drawn at random. Throws a `LedgerError` when its answer is wrong. */
  step(): Promise<Outcome>;
  /** Compares everything with what the store holds. Resolves with the number of memories. */
  check(): Promise<number>;
  /** Searches so many memories by their own content, each of which has to come first. */
  searchOwn(n: number): Promise<void>;
  /** Whether all of the memories are embedded; rejects when one was given up. */
  allDone(): Promise<boolean>;
}

/** No deadline of a gateway under test is nearly as long. */
const HANGS_MS = 90_000;

/** How often each verb is drawn, of a hundred. */
const SHARES: Readonly<Record<Verb, number>> = { add: 35, search: 12, list: 5, get: 23, update: 15, delete: 10 };
const DRAWN = Object.entries(SHARES).flatMap(([verb, share]) => new Array<Verb>(share).fill(verb as Verb));

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

/**
 * The memories of one user, as a client knows them that asks one thing after the other and notes what was acknowledged.
 * It accepts right answers and the failures that are excused, nothing else. Some requests it gives up itself. What it
 * adds with an `Idempotency-Key` it sends again until that is acknowledged, and once more after that; no content may ever
 * be there twice.
 */
export function openLedger(
  client: Client,
  { excuse = downOf('postgres'), impatience = 0.1, mostMemories = Number.POSITIVE_INFINITY }: LedgerOptions = {},
): Ledger {
  const user_id = freshUser();
  const entries = new Map<string, Entry>();
  /** Contents whose add was not acknowledged: they may turn up under an unknown id. */
  const unacknowledged = new Set<string>();
  const toRepeat: { readonly key: string; readonly content: string; readonly id?: string }[] = [];
  let written = 0;
  let patient = false;
  const newContent = () => `note ${written++} about ${user_id}`;

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

  /** What is found must be possible, and what must be there has to be found where all is asked for. */
  const compare = (found: readonly WireMemory[], all: boolean) => {
    const contents = new Set<string>();
    for (const { id, content } of found) {
      const entry = entries.get(id);
      if (entry ? !entry.mayBeThere || !entry.contents.has(content) : !unacknowledged.has(content)) {
        throw new LedgerError('wrong', `${id} should not be found with: ${content}`);
      }
      if (contents.has(content)) throw new LedgerError('wrong', `found twice: ${content}`);
      contents.add(content);
      // Deleted or changed later on, it is still known under its id.
      if (!entry) entries.set(id, { contents: new Set([content]), mayBeThere: true, mayBeGone: false });
    }
    if (!all) return;
    const ids = new Set(found.map(({ id }) => id));
    for (const [id, { mayBeGone }] of entries) if (!mayBeGone && !ids.has(id)) throw new LedgerError('lost', id);
  };

  const add = async (): Promise<string | undefined> => {
    const again = Math.random() < 0.3 ? toRepeat.shift() : undefined;
    const key = again?.key ?? (Math.random() < 0.3 ? crypto.randomUUID() : undefined);
    const content = again?.content ?? newContent();
    const reply = await send('/memories', 'POST', { user_id, content }, key ? { 'idempotency-key': key } : {});
    if (typeof reply === 'string') {
      unacknowledged.add(content);
      if (key) toRepeat.push({ key, content });
      return reply;
    }
    if (reply.status !== 201) throw wrong('add', reply);
    const memory = reply.body as WireMemory;
    if (memory.content !== content || memory.id !== (again?.id ?? memory.id)) throw wrong('add', reply);
    if (key && !again?.id) toRepeat.push({ key, content, id: memory.id });
    // One that was found before it was acknowledged may have been changed since.
    if (!entries.has(memory.id)) {
      entries.set(memory.id, { contents: new Set([content]), mayBeThere: true, mayBeGone: false });
    }
    return undefined;
  };
  const search = async (q = 'note about', limit = '20'): Promise<readonly WireMemory[] | string> => {
    const reply = await send(`/memories/search?${new URLSearchParams({ user_id, q, limit })}`);
    if (typeof reply === 'string') return reply;
    if (reply.status !== 200) throw wrong('search', reply);
    const found = (reply.body as { results: WireHit[] }).results.map(({ memory }) => memory);
    compare(found, false);
    return found;
  };
  const list = async (): Promise<string | undefined> => {
    const reply = await send(`/memories?${new URLSearchParams({ user_id, limit: '10' })}`);
    if (typeof reply === 'string') return reply;
    if (reply.status !== 200) throw wrong('list', reply);
    compare((reply.body as WirePage).items, false);
    return undefined;
  };
  const byId = async (id: string, entry: Entry, verb: 'get' | 'update' | 'delete'): Promise<string | undefined> => {
    const content = newContent();
    const method = { get: 'GET', update: 'PATCH', delete: 'DELETE' }[verb];
    const reply = await send(client.byId(id), method, verb === 'update' ? { content } : undefined);
    if (typeof reply === 'string') {
      if (verb === 'update') entry.contents.add(content);
      if (verb === 'delete') entry.mayBeGone = true;
      return reply;
    }
    if (reply.status === 404 && entry.mayBeGone) entry.mayBeThere = false;
    else if (reply.status !== (verb === 'delete' ? 204 : 200)) throw wrong(verb, reply);
    else if (verb === 'delete') Object.assign(entry, { mayBeThere: false, mayBeGone: true });
    else if (verb === 'get') compare([reply.body as WireMemory], false);
    else {
      // With an update that was not acknowledged, nobody knows which one came last.
      if (entry.contents.size === 1) entry.contents.clear();
      entry.contents.add(content);
    }
    return undefined;
  };
  const all = async (): Promise<WireMemory[]> => {
    const found: WireMemory[] = [];
    let cursor: string | undefined;
    do {
      const page: WirePage = await client.list({ user_id, limit: 200, cursor });
      found.push(...page.items);
      cursor = page.next_cursor ?? undefined;
    } while (cursor);
    return found;
  };

  return {
    async step() {
      const there = [...entries].filter(([, { mayBeThere }]) => mayBeThere);
      const known = pick(there);
      const drawn = (known && pick(DRAWN)) ?? 'add';
      const verb = drawn === 'add' && there.length >= mostMemories ? 'delete' : drawn;
      let failed: string | undefined;
      if (verb === 'add') failed = await add();
      else if (verb === 'list') failed = await list();
      else if (verb === 'search') {
        const found = await search();
        if (typeof found === 'string') failed = found;
      } else failed = await byId(...(known as [string, Entry]), verb);
      return { verb, ...(failed !== undefined && { failed }) };
    },
    async check() {
      const found = await all();
      compare(found, true);
      return found.length;
    },
    async searchOwn(n) {
      patient = true;
      const certain = [...entries].filter(([, entry]) => !entry.mayBeGone && entry.contents.size === 1);
      for (const [id, { contents }] of certain.sort(() => Math.random() - 0.5).slice(0, n)) {
        const [content = ''] = contents;
        const found = await search(content, '5');
        if (typeof found === 'string') throw new LedgerError('wrong', `search answered ${found}`);
        if (found[0]?.id !== id) throw new LedgerError('wrong', `not found by its own content: ${content}`);
      }
      patient = false;
    },
    async allDone() {
      const memories = await all();
      const given = memories.find(({ status }) => status === 'failed');
      if (given) throw new LedgerError('wrong', `given up, though nothing is wrong with it: ${given.id}`);
      return memories.every(({ status }) => status === 'done');
    },
  };
}
