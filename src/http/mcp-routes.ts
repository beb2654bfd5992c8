import { type Context, Hono } from 'hono';
import { beginningOf, invalidRequest, OmpError } from '#contract';
import { DEFAULT_TOOLS, MAX_ERROR_LENGTH, MAX_MESSAGE_VALUES, type ToolName } from '../mcp/names.ts';
import { inProcess } from '../mcp/tools.ts';
import { fits, isStorable, LIMITS } from '../verbs/fields.ts';
import type { Gate } from '../verbs/gate.ts';
import { reportError } from './error-envelope.ts';
import { type Env, readHeader, readJson } from './request.ts';

export interface McpRoutesOptions {
  readonly gate: Gate;
  readonly max_request_bytes: number;
  /** Default: `DEFAULT_TOOLS`. */
  readonly tools: readonly ToolName[] | undefined;
}

/**
 * MCP at `/mcp` and `/mcp/{user_id}`. A request carries one message, so that a tool call is one request for every limit,
 * deadline, trace and metric. The SDK is loaded with the first request.
 */
export function mcpRoutes({ gate, max_request_bytes, tools = DEFAULT_TOOLS }: McpRoutesOptions): Hono<Env> {
  const { verbs, features } = gate.description;
  let handler: ReturnType<typeof load> | undefined;
  const load = async (c: Context<Env>) => {
    const { createHandler } = await import('../mcp/server.ts');
    const log = c.get('log');
    return createHandler({ tools, verbs, features }, ({ message }) =>
      log.debug?.({ reason: beginningOf(message) }, 'MCP message rejected'),
    );
  };

  const answer = async (c: Context<Env>) => {
    const [call, session] = [c.get('call'), c.get('session')];
    const user_id = userOf(c);
    handler ??= load(c);
    const { method, url } = c.req;
    const message = method === 'POST' ? await messageOf(c, max_request_bytes) : undefined;
    const caller = {
      memories() {
        if (user_id === undefined) throw unknownUser();
        return inProcess({ session, user_id, callOf: () => call });
      },
      toError: (error: unknown) => reportError(error, c),
    };
    const request = new Request(url, { method, headers: c.req.header() });
    const response = await call.unlessAborted((await handler)(request, message, caller));
    // Read to the end, because the deadline of the request ends with the answer.
    const body = await call.unlessAborted(response.text());
    // The SDK's handler of HTTP quotes what it rejects.
    if (!response.ok && body.length > MAX_ERROR_LENGTH) throw invalidRequest(body);
    return c.body(body, response.status as 200, Object.fromEntries(response.headers));
  };
  return new Hono<Env>().on(['GET', 'POST', 'DELETE'], ['/', '/:user_id'], answer);
}

/**
 * The user that the caller acts for: the one in the path, else in `X-User-Id`, else the only one that it may access; undefined: none is
 * known. Throws `invalid_request` if both are given and differ, and `scope_denied` if the caller may not access the user.
 */
function userOf(c: Context<Env>): string | undefined {
  const { users } = c.get('principal');
  const [path, header] = [c.req.param('user_id'), readHeader(c, 'X-User-Id')];
  if (path !== undefined && header !== undefined && path !== header) {
    throw invalidRequest('X-User-Id: must be the user in the path, or be omitted');
  }
  const user = path ?? header;
  if (user === undefined) return users?.length === 1 ? users[0] : undefined;
  if (!/\S/.test(user) || !isStorable(user) || !fits(user, LIMITS.userId)) {
    throw invalidRequest(`user_id: must be 1 to ${LIMITS.userId} characters, not blank`);
  }
  if (users !== null && !users.includes(user)) throw new OmpError('scope_denied', 'the key may not access this user');
  return user;
}

const unknownUser = (): OmpError =>
  invalidRequest(
    'no user is known: add it to the URL of this server (/mcp/{user_id}) or to the header X-User-Id, or use a key that is bound to one user (omp-gateway keys create NAME --user USER)',
  );

/** The body, which is one message. */
async function messageOf(c: Context<Env>, maxBytes: number): Promise<unknown> {
  const message = await readJson(c, maxBytes, MAX_MESSAGE_VALUES);
  // All calls of a batch would count as one request.
  if (Array.isArray(message)) throw invalidRequest('send one message in a request: batches are not supported');
  return message;
}

/**
 * Says which identity provider issues tokens for this gateway (RFC 9728), and points to it in every 401 of `/mcp`. The resource
 * is the audience of the tokens if that is a URL, else the address that the client used.
 */
export function resourceMetadata({ issuer, audience }: { issuer: string; audience: string }): Hono<Env> {
  const originOf = (c: Context<Env>) => {
    const { protocol, host } = new URL(c.req.url);
    const forwardedProtocol = c.req.header('x-forwarded-proto');
    return `${forwardedProtocol?.startsWith('https') ? 'https:' : protocol}//${host}`;
  };
  return new Hono<Env>()
    .use('/mcp/*', async (c, next) => {
      c.set('resourceMetadata', `${originOf(c)}${WELL_KNOWN}${new URL(c.req.url).pathname}`);
      return next();
    })
    .get(`${WELL_KNOWN}/*`, (c) => {
      const resource = /^https?:/.test(audience)
        ? audience
        : originOf(c) + new URL(c.req.url).pathname.slice(WELL_KNOWN.length);
      return c.json({ resource, authorization_servers: [issuer], bearer_methods_supported: ['header'] });
    });
}

const WELL_KNOWN = '/.well-known/oauth-protected-resource';
