import { type Context, Hono } from 'hono';
import {
  invalidRequest,
  type ListQuery,
  type Memory,
  type MemoryPatch,
  type NewMemory,
  OmpError,
  type ProviderCapabilities,
  type StoredEntry,
} from '#contract';
import { recordBytes, recordTooLarge } from '#toolbox';
import type { Target, Verbs } from '../core/access.ts';
import { decodeCursor, encodeCursor, malformed } from '../core/cursor.ts';
import { parse, parseQuery, readExtensions, readIdempotencyKey, readJson } from './input.ts';
import type { Env } from './request.ts';
import {
  AuditParameters,
  ContextBody,
  CreateBody,
  DEFAULT_TOKEN_BUDGET,
  fits,
  isStorable,
  LIMITS,
  ListParameters,
  MAX_COUNTED,
  PatchBody,
  SearchParameters,
  StatsParameters,
  UsersParameters,
} from './schemas.ts';

/** `/memories`: each route parses the request, runs the caller's verb and answers. */
export function memoryRoutes(capabilities: ProviderCapabilities, maxRequestBytes: number): Hono<Env> {
  const checkLength = (content: string) => {
    const max = capabilities.max_content_length;
    if (max !== null && !fits(content, max)) throw invalidRequest(`content: must be at most ${max} characters`);
  };

  return new Hono<Env>()
    .post('/', async (c) => {
      const add = supported(c, 'add');
      const body = await readJson(c, maxRequestBytes);
      const input = parse(CreateBody, body);
      checkLength(input.content);
      const memory: NewMemory = {
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
      const maxBytes = 2 * maxRequestBytes;
      if (recordBytes(memory) > maxBytes) throw recordTooLarge(maxBytes);
      const key = readIdempotencyKey(c.req.header('idempotency-key'), memory);
      return c.json(toWire(await add(memory, key, c.get('call'))), 201);
    })
    .get('/', async (c) => c.json(await listPage(capabilities, c)))
    .get('/search', async (c) => {
      const search = supported(c, 'search');
      const { q, user_id, scope, limit, min_score = 0 } = parseQuery(SearchParameters, c.req.url);
      const { items, more } = await search(
        { user_id, text: q, tags: [], limit, ...(scope !== undefined && { scope }) },
        c.get('call'),
      );
      const results = items.filter(({ score }) => score >= min_score);
      return c.json({
        results: results.map(({ memory, score }) => ({ memory: toWire(memory), score })),
        // Omitted results score no higher than the last one here.
        ...(more && results.length === items.length && { 'x-truncated': true }),
      });
    })
    .get('/:id', async (c) => c.json(toWire(await c.get('verbs').get(target(c), c.get('call')))))
    .patch('/:id', async (c) => {
      const update = supported(c, 'update');
      const body = await readJson(c, maxRequestBytes);
      const input = parse(PatchBody, body);
      if (input.content !== undefined) checkLength(input.content);
      const extensions = readExtensions(body as object, 'keep');
      const patch: MemoryPatch = {
        ...withoutUndefined(input),
        ...(input.tags && { tags: distinct(input.tags) }),
        ...(input.supersedes && { supersedes: distinct(input.supersedes) }),
        ...(Object.keys(extensions).length > 0 && { extensions }),
      };
      return c.json(toWire(await update(target(c), patch, c.get('call'))));
    })
    .delete('/:id', async (c) => {
      const remove = supported(c, 'delete');
      await remove(target(c), c.get('call'));
      return c.body(null, 204);
    });
}

/** One page of a user's memories, newest first. */
async function listPage({ temporal }: ProviderCapabilities, c: Context<Env>) {
  const list = supported(c, 'list');
  const { cursor, limit, tag, user_id, scope, since, until } = parseQuery(ListParameters, c.req.url);
  if ((since ?? until) !== undefined && !temporal) {
    const message = 'the provider stores no creation times (features.temporal is false)';
    throw new OmpError('unsupported_capability', `${since === undefined ? 'until' : 'since'}: ${message}`);
  }
  const filters = {
    user_id,
    tags: tag === undefined ? [] : [tag],
    ...(scope !== undefined && { scope }),
    ...(since !== undefined && { since }),
    ...(until !== undefined && { until }),
  } satisfies Partial<ListQuery>;
  const after = cursor === undefined ? {} : { after: decodeCursor(cursor, filters) };
  const { items, more } = await list({ ...filters, ...after, limit }, c.get('call'));
  const last = items.at(-1);
  const next_cursor = more && last ? encodeCursor(last, filters) : null;
  return { items: items.map(toWire), next_cursor };
}

/** The memory that the path names. If the client sends `X-User-Id`, it must belong to that user (Decision 19). */
function target(c: Context<Env>): Target {
  const id = c.req.param('id') ?? '';
  const header = c.req.header('x-user-id');
  // Node decodes header values as Latin-1; clients send UTF-8.
  const user = header === undefined ? undefined : Buffer.from(header, 'latin1').toString();
  // No memory can have such an id or owner, and some backends reject the query.
  if (!isStorable(id) || id.length > LIMITS.id || (user !== undefined && !fits(user, LIMITS.userId))) {
    throw new OmpError('not_found', 'no memory has this id');
  }
  return user === undefined ? { id } : { id, user_id: user };
}

const distinct = (values: readonly string[]): string[] => [...new Set(values)];

type NonNullFields<Fields> = { [Key in keyof Fields]?: NonNullable<Fields[Key]> };
const withoutNulls = <Fields extends object>(fields: Fields) =>
  Object.fromEntries(Object.entries(fields).filter(([, value]) => value != null)) as NonNullFields<Fields>;
const withoutUndefined = <Fields extends object>(fields: Fields) =>
  Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== undefined)) as Fields;

/**
 * A memory as the client sees it: its `x-` keys are beside the protocol's fields (Decision 6). The fields are spelled out
 * because lists convert hundreds: copying by rest and spread takes several times as long.
 */
function toWire(memory: Memory): Omit<Memory, 'extensions'> {
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

/** `POST /context` (Decision 10). */
export const contextRoutes = (maxRequestBytes: number): Hono<Env> =>
  new Hono<Env>().post('/', async (c) => {
    const context = supported(c, 'context');
    const { query, user_id, scope, token_budget, min_score } = parse(ContextBody, await readJson(c, maxRequestBytes));
    return c.json(
      await context(
        { user_id, text: query, tags: [], ...(scope != null && { scope }) },
        { budget: token_budget ?? DEFAULT_TOKEN_BUDGET, min_score: min_score ?? undefined },
        c.get('call'),
      ),
    );
  });

/** `GET /audit` (Decision 11). */
export const auditRoutes = (): Hono<Env> =>
  new Hono<Env>().get('/', async (c) => {
    const audit = supported(c, 'audit');
    const { cursor, limit, user_id, app, since, until } = parseQuery(AuditParameters, c.req.url);
    const filters = {
      user_id,
      ...(app !== undefined && { app }),
      ...(since !== undefined && { since }),
      ...(until !== undefined && { until }),
    };
    const after = cursor === undefined ? {} : { after: positionOf(decodeCursor(cursor, filters)) };
    // One more than requested shows whether there is a next page.
    const found = await audit({ ...filters, ...after, limit: limit + 1 }, c.get('call'));
    const entries = found.slice(0, limit);
    const last = entries.at(-1);
    const next_cursor =
      found.length > limit && last ? encodeCursor({ created_at: last.timestamp, id: String(last.seq) }, filters) : null;
    return c.json({ entries: entries.map(entryToWire), next_cursor });
  });

function positionOf({ created_at, id }: ReturnType<typeof decodeCursor>) {
  const seq = Number(id);
  if (!Number.isSafeInteger(seq)) throw malformed();
  return { timestamp: created_at, seq };
}

/** `user_id` is the requested one, and `seq` is in the cursor only. */
const entryToWire = ({ user_id: _, seq: __, ...entry }: StoredEntry) => entry;

/** `GET /users` (Decision 37). */
export const userRoutes = (): Hono<Env> =>
  new Hono<Env>().get('/', async (c) => {
    const users = supported(c, 'users');
    const { cursor, limit } = parseQuery(UsersParameters, c.req.url);
    const after = cursor === undefined ? {} : { after: decodeCursor(cursor, OF_USERS).id };
    const { items, more } = await users({ ...after, limit }, c.get('call'));
    const last = items.at(-1);
    const next_cursor =
      more && last ? encodeCursor({ created_at: last.last_write, id: last.user_id }, OF_USERS) : null;
    return c.json({ items, next_cursor });
  });

/** Tells the cursors of users from those of lists. */
const OF_USERS = { of: 'users' };

/** `GET /stats` (Decision 37). */
export const statsRoutes = (): Hono<Env> =>
  new Hono<Env>().get('/', async (c) => {
    const { user_id } = parseQuery(StatsParameters, c.req.url);
    // One more than the answer holds shows whether there are more.
    const { scopes, tags, ...rest } = await supported(c, 'stats')({ user_id, limit: MAX_COUNTED + 1 }, c.get('call'));
    return c.json({
      user_id,
      ...rest,
      scopes: scopes.slice(0, MAX_COUNTED),
      tags: tags.slice(0, MAX_COUNTED),
      more_scopes: scopes.length > MAX_COUNTED,
      more_tags: tags.length > MAX_COUNTED,
    });
  });

type Verb = Exclude<keyof Verbs, 'read_only'>;
const CHANGES: readonly Verb[] = ['add', 'update', 'delete'];

/** The caller's verb. Throws `unsupported_capability` if the provider lacks it. */
function supported<Name extends Verb>(c: Context<Env>, name: Name): NonNullable<Verbs[Name]> {
  const { [name]: verb, read_only } = c.get('verbs');
  if (verb) return verb;
  const reason = read_only !== undefined && CHANGES.includes(name) ? `: ${read_only}` : '';
  throw new OmpError('unsupported_capability', `the provider does not support ${name}${reason}`, {
    provider: c.get('provider'),
  });
}
