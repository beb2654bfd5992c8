import { type Context, Hono } from 'hono';
import { OmpError } from '#contract';
import type { Target } from '../core/access.ts';
import { itemError } from './errors.ts';
import { namesEtag } from './etags.ts';
import { readJson } from './input.ts';
import type { Operations, WireMemory } from './operations.ts';
import type { Env } from './request.ts';

/** `/memories`: each route runs the operation on the caller's verbs and answers. */
export function memoryRoutes(operations: Operations, maxRequestBytes: number): Hono<Env> {
  const answer = (c: Context<Env>, memory: WireMemory, status: 200 | 201 = 200) => {
    const etag = operations.etagOf(memory);
    if (etag === undefined) return c.json(memory, status);
    c.header('etag', etag);
    const known = c.req.method === 'GET' ? c.req.header('if-none-match') : undefined;
    return known !== undefined && namesEtag(known, etag) ? c.body(null, 304) : c.json(memory, status);
  };
  return new Hono<Env>()
    .post('/', async (c) => {
      const body = await readJson(c, maxRequestBytes);
      const key = c.req.header('idempotency-key');
      return answer(c, await operations.add(c.get('verbs'), body, key, c.get('call')), 201);
    })
    .post('/batch', async (c) => {
      const body = await readJson(c, maxRequestBytes);
      const key = c.req.header('idempotency-key');
      const results = await operations.batch(c.get('verbs'), body, key, c.get('call'));
      return c.json({
        results: results.map((one) => (one instanceof OmpError ? { error: itemError(one, c) } : { memory: one })),
      });
    })
    .get('/', async (c) => c.json(await operations.list(c.get('verbs'), c.req.url, c.get('call'))))
    .get('/search', async (c) => c.json(await operations.search(c.get('verbs'), c.req.url, c.get('call'))))
    .get('/:id', async (c) => answer(c, await operations.get(c.get('verbs'), target(c), c.get('call'))))
    .patch('/:id', async (c) => {
      const body = await readJson(c, maxRequestBytes);
      return answer(c, await operations.update(c.get('verbs'), changeTarget(c), body, c.get('call')));
    })
    .delete('/:id', async (c) => {
      await operations.delete(c.get('verbs'), changeTarget(c), c.get('call'));
      return c.body(null, 204);
    });
}

/** `POST /context` (Decision 10). */
export const contextRoutes = (operations: Operations, maxRequestBytes: number): Hono<Env> =>
  new Hono<Env>().post('/', async (c) =>
    c.json(await operations.context(c.get('verbs'), await readJson(c, maxRequestBytes), c.get('call'))),
  );

/** `GET /audit` (Decision 11). */
export const auditRoutes = (operations: Operations): Hono<Env> =>
  new Hono<Env>().get('/', async (c) => c.json(await operations.audit(c.get('verbs'), c.req.url, c.get('call'))));

/** `GET /users` (Decision 37) and `DELETE /users/{id}/memories` (Decision 38). */
export const userRoutes = (operations: Operations): Hono<Env> =>
  new Hono<Env>()
    .get('/', async (c) => c.json(await operations.users(c.get('verbs'), c.req.url, c.get('call'))))
    .delete('/:id/memories', async (c) =>
      c.json({ deleted: await operations.erase(c.get('verbs'), c.req.param('id'), c.get('call')) }),
    );

/** `GET /stats` (Decision 37). */
export const statsRoutes = (operations: Operations): Hono<Env> =>
  new Hono<Env>().get('/', async (c) => c.json(await operations.stats(c.get('verbs'), c.req.url, c.get('call'))));

/** `GET /map` (Decision 42). */
export const mapRoutes = (operations: Operations): Hono<Env> =>
  new Hono<Env>().get('/', async (c) => c.json(await operations.map(c.get('verbs'), c.req.url, c.get('call'))));

/** `GET /metrics` (Decision 33). */
export const metricsRoutes = (operations: Operations): Hono<Env> =>
  new Hono<Env>().get('/', async (c) => {
    const { type, text } = await operations.metrics(c.get('verbs'));
    return c.body(text, 200, { 'content-type': type });
  });

/** `/keys` (Decision 41). The log has who made or revoked which key: the store and the audit log do not. */
export function keyRoutes(operations: Operations, maxRequestBytes: number): Hono<Env> {
  const logged = (c: Context<Env>, { id }: { id: string }, message: string) => {
    const { requestId, caller } = c.get('call');
    c.get('log').info({ request_id: requestId, app: caller.app, key_id: id }, message);
  };
  return new Hono<Env>()
    .get('/', async (c) => c.json(await operations.listKeys(c.get('verbs'), c.req.url, c.get('call'))))
    .post('/', async (c) => {
      const body = await readJson(c, maxRequestBytes);
      const created = await operations.createKey(c.get('verbs'), body, c.get('call'));
      logged(c, created, 'an API key was created');
      return c.json(created, 201);
    })
    .delete('/:id', async (c) => {
      const revoked = await operations.revokeKey(c.get('verbs'), c.req.param('id'), c.get('call'));
      logged(c, revoked, 'an API key was revoked');
      return c.json(revoked);
    });
}

/** The memory that the path names. If the client sends `X-User-Id`, it must belong to that user (Decision 19). */
function target(c: Context<Env>): Target {
  const id = c.req.param('id') ?? '';
  const user = userIdHeader(c);
  return user === undefined ? { id } : { id, user_id: user };
}

const changeTarget = (c: Context<Env>) => ({ ...target(c), if_match: c.req.header('if-match') });

/** `X-User-Id`. Node decodes header values as Latin-1; clients send UTF-8. */
export function userIdHeader(c: Context<Env>): string | undefined {
  const header = c.req.header('x-user-id');
  return header === undefined ? undefined : Buffer.from(header, 'latin1').toString();
}
