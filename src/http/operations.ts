import { z } from 'zod';
import {
  type Call,
  invalidRequest,
  type ListQuery,
  type Memory,
  type MemoryPatch,
  type NewMemory,
  OmpError,
  type ProviderCapabilities,
  type StoredEntry,
  type StoredKey,
} from '#contract';
import { recordBytes, recordTooLarge } from '#toolbox';
import { newKey } from '../auth/credentials.ts';
import type { Target, Verbs } from '../core/access.ts';
import { currentAmong } from '../core/current.ts';
import { decodeCursor, encodeCursor, malformed } from '../core/cursor.ts';
import type { ExplainedHit } from '../core/explain.ts';
import type { Gate } from '../core/gate.ts';
import { etagOf, versionsIn } from './etags.ts';
import { parse, parseBody, parseQuery, readExtensions, readIdempotencyKey, tellIgnored } from './input.ts';
import type { InputCall } from './request.ts';
import {
  AuditParameters,
  BatchBody,
  ContextBody,
  CreateBody,
  DEFAULT_TOKEN_BUDGET,
  fits,
  isStorable,
  KeyBody,
  KeysParameters,
  LIMITS,
  ListParameters,
  MAX_COUNTED,
  MapParameters,
  PatchBody,
  SearchParameters,
  SourceFields,
  StatsParameters,
  UsersParameters,
  userId,
} from './schemas.ts';

/** A memory on the wire: its `x-` keys are beside the protocol's fields (Decision 6). */
export type WireMemory = Omit<Memory, 'extensions'>;

/** A memory to change. */
interface ChangeTarget extends Target {
  /** `If-Match`. */
  readonly if_match?: string | undefined;
}

/**
 * The verbs of a caller on input as clients send it, for routes and for the tools of agents: a JSON body, or a URL with a query
 * string. Each checks its input and throws `invalid_request` that names every invalid field, and `unsupported_capability` if
 * the provider lacks the verb. A record may be twice as long as `max_request_bytes`.
 */
export function createOperations(
  { provider, capabilities }: Pick<Gate, 'provider' | 'capabilities'>,
  max_request_bytes: number,
) {
  const { newMemory, patchOf } = createReaders(capabilities);
  const maxBytes = 2 * max_request_bytes;
  const supported = supportedBy(provider);

  /** The target of a change, with the versions that `If-Match` admits. */
  const conditional = ({ if_match, ...target }: ChangeTarget): Target => {
    if (if_match === undefined) return storable(target);
    if (capabilities.etags) return { ...storable(target), versions: versionsIn(if_match) };
    throw new OmpError('unsupported_capability', 'the provider does not support If-Match', { provider });
  };

  return {
    /** Of a record, and of all records of one batch. */
    maxBytes,
    /** The `ETag` of a memory; undefined: this provider has none. */
    etagOf: (memory: WireMemory) => (capabilities.etags ? etagOf(memory) : undefined),
    async add(verbs: Verbs, body: unknown, idempotencyKey: string | undefined, call: Call) {
      const add = supported(verbs, 'add');
      const memory = newMemory(body, call);
      if (recordBytes(memory) > maxBytes) throw recordTooLarge(maxBytes);
      return toWire(await add(memory, readIdempotencyKey(idempotencyKey, memory), call));
    },
    /** In the order of the request: each memory, or why it was not added. */
    async batch(
      verbs: Verbs,
      body: unknown,
      idempotencyKey: string | undefined,
      call: Call,
    ): Promise<(WireMemory | OmpError)[]> {
      const add = supported(verbs, 'batch');
      const { memories } = parseBody(BatchBody, body, call);
      const given = readAll(memories, (one) => newMemory(one, call), recordBytes, maxBytes);
      // An invalid memory has no other form than its own.
      const all = given.map((one, place) => (one instanceof OmpError ? memories[place] : one));
      const results = await add(given, readIdempotencyKey(idempotencyKey, all), call);
      return results.map((result) => (result instanceof OmpError ? result : toWire(result)));
    },
    async list(verbs: Verbs, url: string, call: Call) {
      const list = supported(verbs, 'list');
      const { cursor, limit, tag, user_id, scope, since, until, current } = parseQuery(ListParameters, url, call);
      if (!capabilities.temporal) rejectTimes({ since, until });
      const filters = {
        user_id,
        tags: tag === undefined ? [] : [tag],
        ...(scope !== undefined && { scope }),
        ...(since !== undefined && { since }),
        ...(until !== undefined && { until }),
      } satisfies Partial<ListQuery>;
      const after = cursor === undefined ? {} : { after: decodeCursor(cursor, filters) };
      const { items, more } = await list({ limit, ...filters, ...after }, call);
      const last = items.at(-1);
      const next_cursor = more && last ? encodeCursor(last, filters) : null;
      const shown = current ? items.filter(currentAmong(items, new Date())) : items;
      return { items: shown.map(toWire), next_cursor };
    },
    async search(verbs: Verbs, url: string, call: Call) {
      const search = supported(verbs, 'search');
      const parameters = parseQuery(SearchParameters, url, call, 'user_id');
      const { q: text, scope, min_score = 0, explain, ...rest } = parameters;
      const optional = { ...(scope !== undefined && { scope }), ...(explain && { explain }) };
      const { items, more } = await search({ text, tags: [], ...rest, ...optional }, call);
      const results = items.filter(({ score }) => score >= min_score);
      return {
        results: results.map(hitToWire),
        // Omitted results score no higher than the last one here.
        ...(more && results.length === items.length && { 'x-truncated': true as const }),
      };
    },
    get: async (verbs: Verbs, target: Target, call: Call) => toWire(await verbs.get(storable(target), call)),
    async update(verbs: Verbs, target: ChangeTarget, body: unknown, call: Call) {
      const update = supported(verbs, 'update');
      return toWire(await update(conditional(target), patchOf(body, call), call));
    },
    delete: async (verbs: Verbs, target: ChangeTarget, call: Call) =>
      supported(verbs, 'delete')(conditional(target), call),
    async context(verbs: Verbs, body: unknown, call: Call) {
      const context = supported(verbs, 'context');
      const { query, user_id, scope, token_budget, min_score } = parseBody(ContextBody, body, call);
      return context(
        { user_id, text: query, tags: [], ...(scope != null && { scope }) },
        { budget: token_budget ?? DEFAULT_TOKEN_BUDGET, min_score: min_score ?? undefined },
        call,
      );
    },
    async audit(verbs: Verbs, url: string, call: Call) {
      const audit = supported(verbs, 'audit');
      const { cursor, limit, user_id, app, since, until } = parseQuery(AuditParameters, url, call);
      const filters = {
        user_id,
        ...(app !== undefined && { app }),
        ...(since !== undefined && { since }),
        ...(until !== undefined && { until }),
      };
      const after = cursor === undefined ? {} : { after: positionOf(decodeCursor(cursor, filters)) };
      // One more than requested shows whether there is a next page.
      const found = await audit({ limit: limit + 1, ...filters, ...after }, call);
      const entries = found.slice(0, limit);
      const last = entries.at(-1);
      const next_cursor =
        found.length > limit && last
          ? encodeCursor({ created_at: last.timestamp, id: String(last.seq) }, filters)
          : null;
      return { entries: entries.map(entryToWire), next_cursor };
    },
    metrics,
    ...userOperations(supported),
    ...keyOperations(supported),
  };
}

/** In the format of Prometheus, with its media type (Decision 33). */
function metrics({ metrics: scrape }: Verbs) {
  if (scrape) return scrape();
  throw new OmpError('unsupported_capability', 'this gateway collects no metrics; set OMP_METRICS_PORT');
}

/** Decision 41. */
const keyOperations = (supported: Supported) => ({
  async listKeys(verbs: Verbs, url: string, call: Call) {
    const listKeys = supported(verbs, 'listKeys');
    const { cursor, limit } = parseQuery(KeysParameters, url, call);
    const filters = { of: 'keys' };
    const after = cursor === undefined ? undefined : decodeCursor(cursor, filters).id;
    // One more than requested shows whether there is a next page.
    const found = await listKeys({ after, limit: limit + 1 }, call);
    const items = found.slice(0, limit).map(keyToWire);
    const last = found.length > limit ? items.at(-1) : undefined;
    return { items, next_cursor: last ? encodeCursor(last, filters) : null };
  },
  /** The answer is the only one with the key itself. */
  async createKey(verbs: Verbs, body: unknown, call: Call) {
    const createKey = supported(verbs, 'createKey');
    const { name, grants, users = null, expires_at = null } = parse(KeyBody, body);
    const { id, hash, key } = newKey();
    return { ...keyToWire(await createKey({ id, hash, name, grants, users, expires_at }, call)), key };
  },
  async revokeKey(verbs: Verbs, id: string, call: Call) {
    const revokeKey = supported(verbs, 'revokeKey');
    if (!isStorable(id) || id.length > LIMITS.id) throw new OmpError('not_found', 'no stored key has this id');
    return keyToWire(await revokeKey(id, call));
  },
});

const keyToWire = ({ hash: _, ...key }: StoredKey) => key;

/** Over all memories of a user (Decisions 37, 38 and 42). */
const userOperations = (supported: Supported) => ({
  async users(verbs: Verbs, url: string, call: Call) {
    const users = supported(verbs, 'users');
    const { cursor, ...query } = parseQuery(UsersParameters, url, call);
    const filters = { of: 'users', prefix: query.prefix };
    const after = cursor === undefined ? {} : { after: decodeCursor(cursor, filters).id };
    const { items, next } = await users({ ...withoutUndefined(query), ...after }, call);
    const next_cursor = next === undefined ? null : encodeCursor({ created_at: NO_TIME, id: next }, filters);
    return { items, next_cursor };
  },
  async stats(verbs: Verbs, url: string, call: Call) {
    const stats = supported(verbs, 'stats');
    const { user_id } = parseQuery(StatsParameters, url, call);
    return { user_id, ...(await stats({ user_id, limit: MAX_COUNTED }, call)) };
  },
  async map(verbs: Verbs, url: string, call: Call) {
    const map = supported(verbs, 'map');
    const { tag, ...query } = parseQuery(MapParameters, url, call);
    return map({ ...withoutUndefined(query), tags: tag === undefined ? [] : [tag] }, call);
  },
  async erase(verbs: Verbs, user: string, call: Call) {
    const erase = supported(verbs, 'erase');
    return erase(parse(z.object({ user_id: userId }), { user_id: user }).user_id, call);
  },
});

/** Reads the fields of a memory from a body. Throws `invalid_request` that names every invalid field. */
export function createReaders(capabilities: ProviderCapabilities) {
  const checkLength = (content: string) => {
    const max = capabilities.max_content_length;
    if (max !== null && !fits(content, max)) throw invalidRequest(`content: must be at most ${max} characters`);
  };
  /** The fields always have this order, as the fingerprint of an `Idempotency-Key` needs. */
  const newMemory = (body: unknown, call?: InputCall): NewMemory => {
    const input = parseBody(CreateBody, body, call);
    if (call && input.source) tellIgnored(call, SourceFields, (body as { source: object }).source, 'source.');
    checkLength(input.content);
    return {
      content: input.content,
      user_id: input.user_id,
      scope: input.scope ?? null,
      tags: distinct(input.tags ?? []),
      source: input.source ? withoutNulls(input.source) : null,
      confidence: input.confidence ?? null,
      valid_from: input.valid_from ?? null,
      valid_to: input.valid_to ?? null,
      supersedes: distinct(input.supersedes ?? []),
      extensions: readExtensions(body as object, 'omit'),
    };
  };
  const patchOf = (body: unknown, call: InputCall): MemoryPatch => {
    const input = parseBody(PatchBody, body, call);
    if (input.content !== undefined) checkLength(input.content);
    const extensions = readExtensions(body as object, 'keep');
    return {
      ...withoutUndefined(input),
      ...(input.tags && { tags: distinct(input.tags) }),
      ...(input.supersedes && { supersedes: distinct(input.supersedes) }),
      ...(Object.keys(extensions).length > 0 && { extensions }),
    };
  };
  return { newMemory, patchOf };
}

export type Operations = ReturnType<typeof createOperations>;

type Verb = Exclude<keyof Verbs, 'read_only'>;
type Supported = ReturnType<typeof supportedBy>;
/** The caller's verb. Throws `unsupported_capability` if the provider lacks it. */
export const supportedBy =
  (provider: string) =>
  <Name extends Verb>(verbs: Verbs, name: Name): NonNullable<Verbs[Name]> => {
    const { [name]: verb, read_only } = verbs;
    if (verb) return verb;
    throw new OmpError('unsupported_capability', lacks(name, read_only), { provider });
  };
const OF_KEYS: readonly Verb[] = ['listKeys', 'createKey', 'revokeKey'];
const KEYS_ELSEWHERE =
  'keys are part of the configuration here; make one with: omp-gateway keys create NAME --grant GRANT --print';
const NO_MAP = 'it needs stored vectors (OMP_SEARCH_MODE hybrid or vector) and a backend that lists';
/** The message for a verb that the provider lacks, with what helps. */
function lacks(name: Verb, read_only: string | undefined): string {
  const reason = OF_KEYS.includes(name)
    ? KEYS_ELSEWHERE
    : name === 'map'
      ? NO_MAP
      : CHANGES.includes(name) && read_only;
  return `the provider does not support ${name}${reason ? `: ${reason}` : ''}`;
}
const CHANGES: readonly Verb[] = ['add', 'batch', 'update', 'delete', 'erase'];

/** Users are in the order of their ids. */
export const NO_TIME = '1970-01-01T00:00:00.000Z';

/**
 * Each memory of a body, or its error if it is invalid. Throws `payload_too_large` as soon as they take more than `maxBytes`
 * together.
 */
export function readAll<Result>(
  bodies: readonly unknown[],
  read: (body: unknown) => Result,
  bytesOf: (result: Result) => number,
  maxBytes: number,
): (Result | OmpError)[] {
  let bytes = 0;
  return bodies.map((body) => {
    try {
      const result = read(body);
      bytes += bytesOf(result);
      if (bytes <= maxBytes) return result;
    } catch (error) {
      if (error instanceof OmpError) return error;
      throw error;
    }
    throw bodies.length === 1 ? recordTooLarge(maxBytes) : batchTooLarge(maxBytes);
  });
}

function rejectTimes(times: Readonly<Record<'since' | 'until', string | undefined>>): void {
  for (const [name, time] of Object.entries(times)) {
    const message = `${name}: the provider stores no creation times (features.temporal is false)`;
    if (time !== undefined) throw new OmpError('unsupported_capability', message);
  }
}

export const batchTooLarge = (maxBytes: number) =>
  new OmpError('payload_too_large', `the memories take more than ${maxBytes} bytes; send them in several batches`);

/** Throws `not_found` for an id or a user that no memory can have; some backends reject the query. */
function storable(target: Target): Target {
  const { id, user_id } = target;
  if (!isStorable(id) || id.length > LIMITS.id || (user_id !== undefined && !fits(user_id, LIMITS.userId))) {
    throw new OmpError('not_found', 'no memory has this id');
  }
  return target;
}

const distinct = (values: readonly string[]): string[] => [...new Set(values)];

type NonNullFields<Fields> = { [Key in keyof Fields]?: NonNullable<Fields[Key]> };
const withoutNulls = <Fields extends object>(fields: Fields) =>
  Object.fromEntries(Object.entries(fields).filter(([, value]) => value != null)) as NonNullFields<Fields>;
const withoutUndefined = <Fields extends object>(fields: Fields) =>
  Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== undefined)) as Fields;

/** The fields are spelled out because lists convert hundreds: copying by rest and spread takes several times as long. */
export function toWire(memory: Memory): WireMemory {
  return {
    id: memory.id,
    content: memory.content,
    user_id: memory.user_id,
    created_at: memory.created_at,
    updated_at: memory.updated_at,
    scope: memory.scope,
    tags: memory.tags,
    source: memory.source,
    confidence: memory.confidence,
    valid_from: memory.valid_from,
    valid_to: memory.valid_to,
    supersedes: memory.supersedes,
    embedding_model: memory.embedding_model,
    status: memory.status,
    ...memory.extensions,
  };
}

/** The mark stands beside the score: in the memory, a key of the client could pose as it. */
const hitToWire = ({ memory, score, superseded_by, explanation }: ExplainedHit) => ({
  memory: toWire(memory),
  score,
  ...(superseded_by && { 'x-superseded-by': superseded_by }),
  ...(explanation && { explanation }),
});

function positionOf({ created_at, id }: ReturnType<typeof decodeCursor>) {
  const seq = Number(id);
  if (!Number.isSafeInteger(seq)) throw malformed();
  return { timestamp: created_at, seq };
}

/** `user_id` is the requested one, and `seq` is in the cursor only. */
const entryToWire = ({ user_id: _, seq: __, ...entry }: StoredEntry) => entry;
