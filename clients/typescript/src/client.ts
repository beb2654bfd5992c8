import { ApiError, ConnectionError } from './errors.ts';
import {
  type Answer,
  type ApiPromise,
  type CallOptions,
  type ClientOptions,
  createSend,
  type Request,
  type Send,
  toPromise,
  unlessAborted,
} from './transport.ts';
import type {
  AddedMemory,
  AuditEntry,
  AuditPage,
  AuditQuery,
  BatchResult,
  Capabilities,
  Change,
  ChangePage,
  ChangesQuery,
  ContextBlock,
  ContextQuery,
  CreatedKey,
  Delivery,
  EmbeddingUsage,
  EmbeddingUsageQuery,
  EmbeddingUsageRow,
  Erased,
  ExportedMemory,
  ExportPage,
  ExportQuery,
  Freeze,
  FreezeState,
  Health,
  ImportResult,
  Key,
  KeyPage,
  KeysQuery,
  ListQuery,
  Memory,
  MemoryPage,
  MemoryPatch,
  MemoryVersion,
  NewExportedMemory,
  NewKey,
  NewMemory,
  NewWebhook,
  PersonLine,
  RetentionItem,
  RetentionPage,
  RetentionQuery,
  RollbackItem,
  RollbackPage,
  RollbackQuery,
  SearchQuery,
  SearchResults,
  Stats,
  User,
  UserPage,
  UsersQuery,
  VersionPage,
  VersionsQuery,
  Webhook,
  WebhookWithSecret,
} from './types.ts';

/** All items of a paged answer: `for await` reads page after page; `page()` reads one. */
export interface Pages<Item, OnePage> extends AsyncIterable<Item> {
  page(): ApiPromise<OnePage>;
}

export interface ByIdOptions extends CallOptions {
  /** The memory must belong to this user; that of another user counts as absent. */
  readonly userId?: string;
}

export interface ChangeOptions extends ByIdOptions {
  /** Change the memory only in this version: `version(memory)` or an `ETag`. Else throws `PreconditionFailedError`. */
  readonly ifMatch?: string;
}

export interface AddOptions extends CallOptions {
  /**
   * The same key adds the memory once, also over several calls, if `features.idempotency` is true. By default each call
   * has a new one, so that it can be retried.
   */
  readonly idempotencyKey?: string;
}

export interface AddOneOptions extends AddOptions {
  /** Whether the answer names other memories that say nearly the same, `x-omp-similar` (`features.similar`). */
  readonly similar?: boolean;
}

export interface ImportOptions extends CallOptions {
  /** What happens to a memory whose id is stored already; default `skip`. */
  readonly on_conflict?: 'skip' | 'replace';
}

/** Memories of a batch if the gateway does not say, and bytes of its body. */
const BATCH = 100;
const BATCH_BYTES = 1_000_000;

/**
 * A client of one gateway. All methods throw an `ApiError` for an error that the gateway answers, `ConnectionError` or
 * `TimeoutError` if no answer arrived, and the reason of the caller's signal if that ended the call.
 *
 *     const client = new MemoryClient({ url: 'http://localhost:8080', key: process.env.GATEWAY_KEY });
 *     await client.memories.add({ user_id: 'u1', content: 'prefers pnpm' });
 */
export class MemoryClient {
  readonly memories: Memories;
  readonly users: Users;
  readonly keys: Keys;
  readonly webhooks: Webhooks;
  readonly #send: Send;
  #capabilities: Promise<Answer<Capabilities>> | undefined;

  constructor(options: ClientOptions) {
    this.#send = createSend(options);
    this.memories = new Memories(this.#send, () => this.#knownCapabilities());
    this.users = new Users(this.#send);
    this.keys = new Keys(this.#send);
    this.webhooks = new Webhooks(this.#send);
  }

  /** Memories for a prompt, within a token budget. */
  context(query: ContextQuery, options?: CallOptions): ApiPromise<ContextBlock> {
    return toPromise(this.#send(reading('POST', ['context'], { body: query }), options));
  }

  /** The audit log of a user, newest first. */
  audit(query: AuditQuery, options?: CallOptions): Pages<AuditEntry, AuditPage> {
    return pages(this.#send, { path: ['audit'], query, itemsOf: (page) => page.entries }, options);
  }

  /** One page of the changes that the key may read, oldest first. Throws `CursorGoneError`. */
  changes({ wait, ...query }: ChangesQuery = {}, options?: CallOptions): ApiPromise<ChangePage> {
    const times = wait === undefined ? {} : { timeout: wait * 1_000 + 30_000, totalTimeout: wait * 1_000 + 60_000 };
    return toPromise(this.#send(reading('GET', ['changes'], { query: { ...query, wait } }), { ...times, ...options }));
  }

  /**
   * Change after change, and then the next ones as they happen, until `options.signal` ends it with its reason. Keep `cursor` of the
   * last change that was dealt with: it is `after` of the next time.
   */
  async *follow(query: Omit<ChangesQuery, 'wait'> = {}, options?: CallOptions): AsyncGenerator<Change, never, void> {
    for (let { after } = query; ; ) {
      const { changes, next_cursor }: ChangePage = await this.changes({ ...query, after, wait: 30 }, options);
      yield* changes;
      after = next_cursor;
    }
  }

  /** All memories of the store, or of a user, in a fixed order. Needs a key that reads everything. */
  export(query: ExportQuery = {}, options?: CallOptions): Pages<ExportedMemory, ExportPage> {
    return pages(this.#send, { path: ['export'], query, itemsOf: (page) => page.memories }, options);
  }

  /** Stores up to 100 memories with their ids and times. The results are in the order of the memories. */
  import(
    memories: readonly NewExportedMemory[],
    { on_conflict, ...options }: ImportOptions = {},
  ): ApiPromise<{ results: ImportResult[] }> {
    return toPromise(this.#send(reading('POST', ['import'], { body: { memories, on_conflict } }), options));
  }

  /**
   * Deletes what the retention rules of the gateway say, or says with `dry_run` what it would delete, if `features.retention` is true. Each
   * page that is read deletes what it counts. Needs a key that reads and deletes everything.
   */
  retention(query: RetentionQuery = {}, options?: CallOptions): Pages<RetentionItem, RetentionPage> {
    const itemsOf = (page: RetentionPage) => page.items;
    return pages(this.#send, { method: 'POST', path: ['retention'], query, itemsOf }, options);
  }

  /** Since when the store takes no changes, and who froze it. Throws `ScopeDeniedError` unless the key has the grant `admin:*`. */
  frozen(options?: CallOptions): ApiPromise<FreezeState> {
    return toPromise(this.#send(reading('GET', ['freeze']), options));
  }

  /** Stops all changes of memories on every gateway of this store. Throws `ScopeDeniedError`. */
  freeze(options?: CallOptions): ApiPromise<Freeze> {
    return toPromise(this.#send(reading('POST', ['freeze']), options));
  }

  /** Allows them again, and answers the freeze that ended. Throws `ScopeDeniedError`. */
  unfreeze(options?: CallOptions): ApiPromise<Freeze> {
    return toPromise(this.#send({ method: 'DELETE', path: ['freeze'], repeatable: true }, options));
  }

  /** What the embedding service was used for, by day and caller. Throws `ScopeDeniedError` unless the key has the grant `admin:*`. */
  embeddingUsage(query: EmbeddingUsageQuery = {}, options?: CallOptions): Pages<EmbeddingUsageRow, EmbeddingUsage> {
    const itemsOf = (page: EmbeddingUsage) => page.items;
    // All pages are of the same days, also after midnight.
    const until = new Date().toISOString().slice(0, 10);
    return pages(this.#send, { path: ['embedding-usage'], query: { until, ...query }, itemsOf }, options);
  }

  /** Verbs, features and limits of the gateway. */
  capabilities(options?: CallOptions): ApiPromise<Capabilities> {
    return toPromise(this.#send(reading('GET', ['capabilities']), options));
  }

  /** Whether the gateway runs and its backend answers. */
  health(options?: CallOptions): ApiPromise<Health> {
    return toPromise(this.#send(reading('GET', ['healthz']), options));
  }

  /** Asks once, and again if the gateway did not answer. */
  async #knownCapabilities(): Promise<Capabilities | undefined> {
    this.#capabilities ??= this.capabilities().withResponse();
    try {
      return (await this.#capabilities).data;
    } catch {
      this.#capabilities = undefined;
      return undefined;
    }
  }
}

class Memories {
  readonly #send: Send;
  readonly #knownCapabilities: () => Promise<Capabilities | undefined>;

  constructor(send: Send, knownCapabilities: () => Promise<Capabilities | undefined>) {
    this.#send = send;
    this.#knownCapabilities = knownCapabilities;
  }

  /** Throws `InvalidRequestError`, `ScopeDeniedError`, `PayloadTooLargeError`. */
  add(memory: NewMemory, { similar, ...options }: AddOneOptions = {}): ApiPromise<AddedMemory> {
    return toPromise(this.#add(['memories'], memory, options, { similar }));
  }

  /**
   * Adds any number of memories, in as many batches as the gateway's limits need. The results are in the order of the
   * memories. If a batch fails as a whole, the call throws, and the memories of the batches before it are added.
   */
  async addMany(memories: readonly NewMemory[], options: AddOptions = {}): Promise<BatchResult[]> {
    const capabilities = await (options.signal
      ? unlessAborted(this.#knownCapabilities(), options.signal)
      : this.#knownCapabilities());
    if (!capabilities?.features.batch) return this.#addEach(memories, options);
    const results: BatchResult[] = [];
    for (const [index, batch] of split(memories, capabilities.limits?.max_batch_size ?? BATCH).entries()) {
      // A single memory may be too large: then its result is the error.
      if (batch.length === 1) {
        results.push(...(await this.#addEach(batch, withNumber(options, index))));
        continue;
      }
      const { data } = await this.#add<{ results: BatchResult[] }>(
        ['memories', 'batch'],
        { memories: batch },
        withNumber(options, index),
      );
      results.push(...data.results);
    }
    return results;
  }

  /** Throws `NotFoundError`. */
  get(id: string, options: ByIdOptions = {}): ApiPromise<Memory> {
    return toPromise(this.#send({ ...byId('GET', id, options), repeatable: true }, options));
  }

  /** Changes only the given fields. Throws `NotFoundError`, `PreconditionFailedError`. */
  update(id: string, patch: MemoryPatch, options: ChangeOptions = {}): ApiPromise<Memory> {
    return toPromise(this.#send({ ...byId('PATCH', id, options), body: patch }, options));
  }

  /** Deletes permanently. Throws `NotFoundError`, `PreconditionFailedError`. */
  delete(id: string, options: ChangeOptions = {}): ApiPromise<void> {
    return toPromise(this.#send(byId('DELETE', id, options), options));
  }

  /** The versions of a memory, newest first, if `features.versions` is true: the current one is the first. Throws `NotFoundError`. */
  versions(id: string, query: VersionsQuery = {}, options: ByIdOptions = {}): Pages<MemoryVersion, VersionPage> {
    const { headers } = byId('GET', id, options);
    const path = ['memories', id, 'versions'];
    return pages(this.#send, { path, query, headers, itemsOf: (page) => page.items }, options);
  }

  /** Throws `NotFoundError`. */
  getVersion(id: string, version: number, options: ByIdOptions = {}): ApiPromise<MemoryVersion> {
    const path = ['memories', id, 'versions', String(version)];
    return toPromise(this.#send({ ...byId('GET', id, options), path, repeatable: true }, options));
  }

  /** Gives the memory what it had in this version, as a new version. Throws `NotFoundError`, `PreconditionFailedError`. */
  restore(id: string, version: number, options: ChangeOptions = {}): ApiPromise<Memory> {
    const path = ['memories', id, 'restore'];
    return toPromise(this.#send({ ...byId('POST', id, options), path, body: { version } }, options));
  }

  /** Deletes the versions before the current one permanently. Throws `NotFoundError`. */
  purgeVersions(id: string, options: ByIdOptions = {}): ApiPromise<{ purged: number }> {
    const path = ['memories', id, 'versions'];
    return toPromise(this.#send({ ...byId('DELETE', id, options), path }, options));
  }

  /** The memories of a user, newest first. */
  list(query: ListQuery, options?: CallOptions): Pages<Memory, MemoryPage> {
    return pages(this.#send, { path: ['memories'], query, itemsOf: (page) => page.items }, options);
  }

  /** Best first. */
  search(query: SearchQuery, options?: CallOptions): ApiPromise<SearchResults> {
    return toPromise(this.#send(reading('GET', ['memories', 'search'], { query }), options));
  }

  /** Adds with an idempotency key, so that the request can be retried, where the gateway supports keys. */
  #add<Data>(path: readonly string[], body: unknown, options: AddOptions, query?: object): Promise<Answer<Data>> {
    const request = async (): Promise<Request> => {
      const repeatable = (await this.#knownCapabilities())?.features.idempotency === true;
      const { idempotencyKey = repeatable ? randomKey() : undefined } = options;
      const headers = { ...(idempotencyKey !== undefined && { 'idempotency-key': idempotencyKey }) };
      return { method: 'POST', path, query, body, headers, repeatable };
    };
    return this.#send(request, options);
  }

  async #addEach(memories: readonly NewMemory[], options: AddOptions): Promise<BatchResult[]> {
    const results: BatchResult[] = [];
    for (const [index, memory] of memories.entries()) {
      try {
        results.push({ memory: await this.add(memory, withNumber(options, index)) });
      } catch (error) {
        // As in a batch: the errors of one memory are results, all others end the call.
        if (!(error instanceof ApiError) || ![400, 403, 413].includes(error.status)) throw error;
        const { code, message, type } = error;
        results.push({ error: { code, message, type } });
      }
    }
    return results;
  }
}

class Users {
  readonly #send: Send;

  constructor(send: Send) {
    this.#send = send;
  }

  /** The users whose memories the key may read. */
  list(query: UsersQuery = {}, options?: CallOptions): Pages<User, UserPage> {
    return pages(this.#send, { path: ['users'], query, itemsOf: (page) => page.items }, options);
  }

  /** Counts by scope and tag. */
  stats(user_id: string, options?: CallOptions): ApiPromise<Stats> {
    return toPromise(this.#send(reading('GET', ['stats'], { query: { user_id } }), options));
  }

  /** Deletes all memories of a user permanently. Its receipt says what was removed, and whether anything is left. */
  erase(user_id: string, options?: CallOptions): ApiPromise<Erased> {
    return toPromise(
      this.#send({ method: 'DELETE', path: ['users', user_id, 'memories'], repeatable: false }, options),
    );
  }

  /**
   * All that is stored of a user, line by line, if `features.person_file` is true: the last line says whether it is complete. Throws
   * `ConnectionError` if it was cut off.
   */
  async *file(user_id: string, options?: CallOptions): AsyncGenerator<PersonLine, void, void> {
    const request = { ...reading('GET', ['users', user_id, 'file']), lines: true } as const;
    const { data } = await this.#send<AsyncIterable<PersonLine>>(request, options);
    let isWhole = false;
    for await (const line of data) {
      yield line;
      isWhole = line.type === 'end';
    }
    if (!isWhole) throw new ConnectionError('the file was cut off: its last line is missing');
  }

  /**
   * Undoes what was written to the memories of a user in a time, or says with `dry_run` what it would do, if `features.rollback` is
   * true. Each page that is read undoes what it names.
   */
  rollback(user_id: string, query: RollbackQuery, options?: CallOptions): Pages<RollbackItem, RollbackPage> {
    const path = ['users', user_id, 'rollback'];
    return pages(this.#send, { method: 'POST', path, query, itemsOf: (page) => page.items }, options);
  }
}

/** The API keys of the gateway. All methods throw `ScopeDeniedError` unless the caller's key has the grant `admin:*`. */
class Keys {
  readonly #send: Send;

  constructor(send: Send) {
    this.#send = send;
  }

  /** Newest first. */
  list(query: KeysQuery = {}, options?: CallOptions): Pages<Key, KeyPage> {
    return pages(this.#send, { path: ['keys'], query, itemsOf: (page) => page.items }, options);
  }

  /** The only answer with the key itself. */
  create(key: NewKey, options?: CallOptions): ApiPromise<CreatedKey> {
    return toPromise(this.#send({ method: 'POST', path: ['keys'], body: key, repeatable: false }, options));
  }

  /** Throws `NotFoundError`, and `ScopeDeniedError` for the key of the caller. */
  revoke(id: string, options?: CallOptions): ApiPromise<Key> {
    return toPromise(this.#send({ method: 'DELETE', path: ['keys', id], repeatable: false }, options));
  }
}

/** The webhooks of the gateway. All methods throw `ScopeDeniedError` unless the caller's key has the grant `admin:*`. */
class Webhooks {
  readonly #send: Send;

  constructor(send: Send) {
    this.#send = send;
  }

  /** Oldest first. */
  list(options?: CallOptions): ApiPromise<{ items: Webhook[] }> {
    return toPromise(this.#send(reading('GET', ['webhooks']), options));
  }

  /** Sends each change from now on to a URL. Only this answer and that of `rotate` have the secret. */
  create(webhook: NewWebhook, options?: CallOptions): ApiPromise<WebhookWithSecret> {
    return toPromise(this.#send({ method: 'POST', path: ['webhooks'], body: webhook, repeatable: false }, options));
  }

  /** Throws `NotFoundError`, as the following methods do. */
  delete(id: string, options?: CallOptions): ApiPromise<void> {
    return toPromise(this.#send({ method: 'DELETE', path: ['webhooks', id], repeatable: false }, options));
  }

  /** Sends one event, and answers how that ended. */
  test(id: string, options?: CallOptions): ApiPromise<Delivery> {
    return this.#change(id, 'test', options);
  }

  /** Delivers again after the deliveries have stopped. `from: 'now'` leaves out what was not delivered. */
  resume(id: string, query: { from?: 'cursor' | 'now' } = {}, options?: CallOptions): ApiPromise<Webhook> {
    return this.#change(id, 'resume', options, query);
  }

  /** Makes a new secret. The one before signs too for 24 hours. */
  rotate(id: string, options?: CallOptions): ApiPromise<WebhookWithSecret> {
    return this.#change(id, 'rotate', options);
  }

  #change<Result>(id: string, action: string, options?: CallOptions, query: object = {}): ApiPromise<Result> {
    const path = ['webhooks', id, action];
    return toPromise(this.#send({ method: 'POST', path, query, repeatable: false }, options));
  }
}

/**
 * The results of a search, best first, in those that are likely to matter and those that are far below the best: with less than half of its
 * score. On the questions of `npm run eval`, 98 % of what answers them is in `best`, which has 4 of 34 results.
 */
export function groupResults<Result extends { readonly score: number }>(results: readonly Result[]) {
  const least = (results[0]?.score ?? 0) / 2;
  return {
    best: results.filter(({ score }) => score >= least),
    lessLikely: results.filter(({ score }) => score < least),
  };
}

/** The value of `ifMatch` for this version of a memory, also if it comes from a list or a search. */
export const version = ({ updated_at }: Pick<Memory, 'updated_at'>): string => `"${updated_at}"`;

const reading = (
  method: 'GET' | 'POST',
  path: readonly string[],
  parts: Pick<Request, 'query' | 'body' | 'headers'> = {},
): Request => ({
  method,
  path,
  ...parts,
  repeatable: true,
});

const byId = (
  method: 'GET' | 'POST' | 'PATCH' | 'DELETE',
  id: string,
  { userId, ifMatch }: ChangeOptions,
): Request => ({
  method,
  path: ['memories', id],
  headers: {
    // Header values are bytes.
    ...(userId !== undefined && { 'x-user-id': latin1(userId) }),
    ...(ifMatch !== undefined && { 'if-match': ifMatch }),
  },
  repeatable: false,
});

/** The UTF-8 bytes of a text as characters, which is what `fetch` accepts in a header. */
const latin1 = (text: string) => String.fromCharCode(...new TextEncoder().encode(text));

/** 128 random bits. (`crypto.randomUUID` does not exist on pages without TLS.) */
const randomKey = () => [...crypto.getRandomValues(new Uint8Array(16))].map((byte) => byte.toString(16)).join('.');

/** A key of the caller covers several requests. */
const withNumber = (options: AddOptions, index: number): AddOptions =>
  options.idempotencyKey === undefined ? options : { ...options, idempotencyKey: `${options.idempotencyKey}-${index}` };

/** Splits memories into batches of at most `size` memories and, unless a single one is larger, `BATCH_BYTES`. */
function split(memories: readonly NewMemory[], size: number): NewMemory[][] {
  const batches: NewMemory[][] = [];
  let bytes = 0;
  for (const memory of memories) {
    const length = new TextEncoder().encode(JSON.stringify(memory)).length + 1;
    const last = batches.at(-1);
    if (last && last.length < size && bytes + length <= BATCH_BYTES) {
      last.push(memory);
      bytes += length;
    } else {
      batches.push([memory]);
      bytes = length;
    }
  }
  return batches;
}

interface Listing<Item, OnePage> {
  /** Default: `GET`. With `POST`, the query is the body. */
  readonly method?: 'GET' | 'POST';
  readonly path: readonly string[];
  readonly query: object;
  readonly headers?: Request['headers'];
  itemsOf(page: OnePage): readonly Item[];
}

function pages<Item, OnePage extends { next_cursor?: string | null }>(
  send: Send,
  { method = 'GET', path, query, headers = {}, itemsOf }: Listing<Item, OnePage>,
  options: CallOptions | undefined,
): Pages<Item, OnePage> {
  const page = (parameters: object) => {
    const parts = method === 'GET' ? { query: parameters } : { body: parameters };
    return send<OnePage>({ ...reading(method, path, parts), headers }, options);
  };
  return {
    page: () => toPromise(page(query)),
    async *[Symbol.asyncIterator]() {
      for (let cursor: object | undefined = {}; cursor; ) {
        const { data }: Answer<OnePage> = await page({ ...query, ...cursor });
        yield* itemsOf(data);
        cursor = data.next_cursor == null ? undefined : { cursor: data.next_cursor };
      }
    },
  };
}
