import type { HttpBindings } from '@hono/node-server';
import type { Context, MiddlewareHandler } from 'hono';
import { matchedRoutes } from 'hono/route';
import { METHOD_NAME_ALL } from 'hono/router';
import {
  Call,
  type Caller,
  type CallFields,
  type Consistency,
  invalidRequest,
  type LeftOut,
  type Log,
  OmpError,
} from '#contract';
import type { Principal } from '../core/grants.ts';
import type { ObservedRequest, Telemetry } from '../core/telemetry.ts';
import { requireBounds } from '../verbs/fields.ts';
import type { Session } from '../verbs/gate.ts';

export interface Env {
  /** Absent when a request is passed to the app in process, without a server. */
  Bindings: Partial<HttpBindings>;
  Variables: {
    call: RequestCall;
    log: Log;
    /** Named in errors about what the provider does not support. */
    provider: string;
    /** Runs verbs for the caller. Set by `authenticate`; without it no route reaches a memory. */
    session: Session;
    /** The caller with its users. Set with `session`. */
    principal: Principal;
    /** URL of the metadata that say which identity provider issues tokens; undefined: none does. */
    resourceMetadata?: string;
  };
}

/** Unread bytes of a response for which a slow client gets another `deadlineMs`. */
const BYTES_PER_DEADLINE = 1024 * 1024;

/**
 * Headers of every response, errors included. Memories belong to one user, so no cache may store them, especially when
 * the credential is in a header that caches do not know. Browsers never sniff JSON, so only pages have `nosniff`: it would
 * cost 2 % of the processor time of a get.
 */
export const COMMON_HEADERS = { 'cache-control': 'no-store' } as const;

const HEADERS = Object.entries(COMMON_HEADERS);

/** Frequent requests of load balancers and monitoring. They are not traced, and logged at debug level. */
const PROBES: ReadonlySet<string> = new Set(['/healthz', '/livez', '/readyz', '/metrics']);

export const newRequestId = (): string => crypto.randomUUID();

/** An `X-Request-Id` of this form is used as the request's id (Decision 15). */
export const REQUEST_ID = /^[A-Za-z0-9._-]{1,64}$/;

export interface CallOptions {
  readonly log: Log;
  readonly provider: string;
  /** Deadline of a request, in milliseconds. The client has as long again for each MiB of the response. */
  readonly deadlineMs: number;
  /** Whether clients pass consistency tokens from replica to replica. */
  readonly consistencyTokens: boolean;
  readonly telemetry: Telemetry;
}

/**
 * Gives every request its `Call`: an id, taken from the client if it is well formed, and a signal that fires when the
 * client disconnects or the deadline passes. After the handler has answered, the deadline applies to the client, so a
 * client that never reads cannot hold a response forever. Headers are set before the handler runs: set after it, they
 * make the server rebuild the response, which costs half the throughput.
 */
export function callMiddleware({
  log,
  provider,
  deadlineMs,
  consistencyTokens,
  telemetry,
}: CallOptions): MiddlewareHandler<Env> {
  return async (c, next) => {
    const header = c.req.header('x-request-id');
    const requestId = header !== undefined && REQUEST_ID.test(header) ? header : newRequestId();
    const observation = telemetry.request(c.req.method, (name) => c.req.header(name), PROBES.has(c.req.path));
    const startedAt = performance.now();
    const call = new RequestCall(requestId, c, {
      consistency: consistencyTokens ? consistencyOf(c) : undefined,
      trace: observation.trace,
      deadline: startedAt + deadlineMs,
    });
    c.set('call', call);
    c.set('log', log);
    c.set('provider', provider);
    c.header('x-request-id', requestId);
    for (const [name, value] of HEADERS) c.header(name, value);

    const { incoming, outgoing } = c.env ?? {};
    let answered = false;
    /** How many more times the timer may fire before the client must have read the response; undefined: not fired yet. */
    let renewals: number | undefined;
    const deadline = setTimeout(() => {
      // A stream has no deadline as long as its client reads.
      const reads = call.isStream && (call.partTaken || outgoing?.writableLength === 0);
      call.partTaken = false;
      if (call.isIdle || reads) renewals = undefined;
      else if (!answered) call.abort(incoming?.complete === false ? bodyTooSlow() : tooSlow());
      else if (outgoing) {
        renewals ??= Math.max(1, Math.ceil(outgoing.writableLength / BYTES_PER_DEADLINE));
        if (renewals-- <= 0) outgoing.destroy();
      }
      deadline.refresh();
    }, deadlineMs);
    outgoing?.once('close', () => {
      clearTimeout(deadline);
      if (!outgoing.writableFinished) call.abort(clientDisconnected());
      call.end();
      const status = outgoing.writableFinished ? outgoing.statusCode : 499;
      endRequest(c, status, performance.now() - startedAt, observation);
    });
    try {
      await next();
    } finally {
      answered = true;
      if (!outgoing) {
        clearTimeout(deadline);
        call.end();
      }
    }
  };
}

/** The call of a request over HTTP. */
class RequestCall extends Call {
  /** Known after authentication; until then, the gateway acts for itself. */
  declare caller: Caller;
  readonly #context: Context;
  /** The names in `X-Ignored-Fields`. */
  #ignoredNames: Set<string> | undefined = undefined;
  /** Work to do after the answer; null: it was done. */
  #afterAnswer: (() => void)[] | undefined | null = undefined;
  /** For how long the request has waited for events, in milliseconds. */
  idleMs = 0;
  isIdle = false;
  /** Whether the answer is a stream: of events, which ends with the client, or a file. */
  isStream = false;
  /** Whether the client has taken a part of the stream since the deadline last passed. */
  partTaken = false;
  #verify: (() => Promise<unknown>) | undefined = undefined;

  constructor(requestId: string, context: Context, fields: Omit<CallFields, 'requestId' | 'caller'>) {
    super(requestId, undefined, undefined, fields);
    this.#context = context;
  }

  /** From now on the request is that of this caller. `verify` rejects unless its credential is valid then. */
  authenticated(caller: Caller, verify: () => Promise<unknown>): void {
    this.caller = caller;
    this.#verify = verify;
  }

  /** Rejects unless the credential of the caller is valid now. */
  async reauthenticate(): Promise<void> {
    await this.#verify?.();
  }

  override ignored(name: string): void {
    const names = this.#ignoredNames ?? new Set();
    // Work may continue after its request was answered.
    if (names.size === MAX_IGNORED || this.#context.finalized || !IGNORED_NAME.test(name)) return;
    this.#ignoredNames = names.add(name);
    this.#context.header('x-ignored-fields', [...names].join(', '));
  }

  override leaveOut(name: keyof LeftOut, store: string, failure?: OmpError): void {
    super.leaveOut(name, store);
    // With a time to retry, the failure behind it is in the log already.
    if (failure && failure.retryAfter === undefined) {
      this.#context
        .get('log')
        .warn({ request_id: this.requestId, provider: store, err: failure }, 'a store was left out');
    }
    if (!this.#context.finalized) this.#context.header(name, this.leftOut?.[name]?.join(', '));
  }

  override afterAnswer(work: () => void): void {
    if (this.#afterAnswer === null) work();
    else if (this.#afterAnswer) this.#afterAnswer.push(work);
    else this.#afterAnswer = [work];
  }

  override async idle<Result>(event: Promise<Result>): Promise<Result> {
    const since = performance.now();
    this.isIdle = true;
    const result = await event.finally(() => {
      this.isIdle = false;
      this.idleMs += performance.now() - since;
    });
    // What happened after a key was revoked is not for its holder.
    await this.reauthenticate();
    return result;
  }

  end(): void {
    const last = this.#afterAnswer;
    this.#afterAnswer = null;
    for (const work of last ?? []) work();
  }
}

/** The dependency that the request waited for adds its name. */
const tooSlow = () =>
  new OmpError('provider_error', 'the request took longer than this gateway allows', { down: 'suspected' });
const bodyTooSlow = () => invalidRequest('the request body did not arrive in time');
/** This error only ends the work; no client gets it. */
const clientDisconnected = () => invalidRequest('the client closed the connection');

/**
 * Writes the access log and ends the trace and metrics of the request. The log has the route template instead of the path,
 * because ids and query texts do not belong in logs.
 */
function endRequest(c: Context<Env>, status: number, ms: number, observation: ObservedRequest): void {
  const { method } = c.req;
  const route = routeOf(c);
  const { caller, trace, requestId, idleMs } = c.get('call');
  const workMs = ms - idleMs;
  observation.end({ method, route, status, seconds: workMs / 1_000, requestId });
  const line = {
    request_id: requestId,
    ...(trace && { trace_id: trace.id }),
    app: loggedName(caller),
    provider: c.get('provider'),
    method,
    route,
    status,
    ms: Math.round(ms * 100) / 100,
  };
  const log = c.get('log');
  if (status < 400 && PROBES.has(route)) log.debug?.(line, 'request');
  else log.info(line, 'request');
}

/**
 * The name of a key, or the start of a token's caller id, which is a hash: the subject of a token is often a user id. Null:
 * anonymous.
 */
const loggedName = ({ id, app }: Caller): string | null => (id.startsWith('token:') ? id.slice(0, 22) : app);

/** The route that the method and path match, even if a middleware rejected the request; `unmatched`: none. */
function routeOf(c: Context<Env>): string {
  const route = matchedRoutes(c).find(({ method }) => method !== METHOD_NAME_ALL);
  return route?.path ?? 'unmatched';
}

/** Maximum names in `X-Ignored-Fields`. */
const MAX_IGNORED = 16;
/** What a name may be, because the client chose it. */
const IGNORED_NAME = /^[\w.-]{1,64}$/;

/** The client sends it back with its next request, to any replica (Decision 23). */
const CONSISTENCY_TOKEN = 'X-Consistency-Token';

/** The header of a response that may lack a write that the token of the request names. */
const CONSISTENCY = 'X-Consistency';

/** Maximum characters of a token. The gateway never issues longer ones. */
const MAX_TOKEN_LENGTH = 1_024;

export function consistencyOf(c: Context): Consistency {
  const token = c.req.header(CONSISTENCY_TOKEN);
  // Work may continue after its request was answered with an error; then the response cannot change any more.
  const setHeader = (name: string, value: string) => {
    if (!c.finalized) c.header(name, value);
  };
  return {
    token: token !== undefined && token.length <= MAX_TOKEN_LENGTH ? token : undefined,
    answer: (newToken) => setHeader(CONSISTENCY_TOKEN, newToken),
    behind: () => setHeader(CONSISTENCY, 'behind'),
  };
}

/** Node decodes header values as Latin-1; clients send user ids in UTF-8. */
export function readHeader(c: Context<Env>, name: string): string | undefined {
  const value = c.req.header(name);
  return value !== undefined && name === 'X-User-Id' ? Buffer.from(value, 'latin1').toString() : value;
}

/** How long the rest of an oversized upload is read and discarded, so that its sender gets the response, not a reset. */
const DISCARD_MS = 2_000;

/** Limit for the bytes of all request bodies that this process receives at once: several gateways in it share its memory. */
const MAX_RECEIVING_BYTES = 256 * 1024 * 1024;
let receiving = 0;

const utf8 = new TextDecoder('utf-8', { fatal: true });

/**
 * The request's JSON body. The size limit applies to the bytes that arrive, whatever Content-Length says, and before
 * anything is parsed (SPEC, Limits); that for its values before anything reads them. The content type must be JSON: a web
 * page of another origin cannot send that without a preflight request, so a site that a developer visits cannot write to a
 * gateway on the developer's machine.
 */
export async function readJson(c: Context<Env>, maxBytes: number, maxValues?: number): Promise<unknown> {
  const bytes = await readBytes(c, maxBytes);
  if (!/^application\/(?:[\w.+-]+\+)?json\s*(?:;|$)/i.test(c.req.header('content-type') ?? '')) {
    throw invalidRequest('Content-Type must be application/json');
  }
  if ((c.req.header('content-encoding') ?? 'identity').toLowerCase() !== 'identity') {
    throw invalidRequest('Content-Encoding: bodies are read as they are; send this one without compression');
  }
  let text: string;
  try {
    text = utf8.decode(bytes);
  } catch {
    throw invalidRequest('body is not valid UTF-8');
  }
  let json: unknown;
  try {
    json = JSON.parse(text);
  } catch {
    throw invalidRequest('body is not valid JSON');
  }
  requireBounds(json, maxValues, text);
  return json;
}

/**
 * Applies the size limit to requests whose body no route reads (SPEC, Limits: all requests with a body). Without a body,
 * as nearly always, it costs two look-ups.
 */
export const limitUnreadBody =
  (maxBytes: number): MiddlewareHandler<Env> =>
  (c, next) => {
    const { method } = c.req;
    if (method === 'POST' || method === 'PATCH' || method === 'PUT') return next();
    if (c.req.header('content-length') === undefined && c.req.header('transfer-encoding') === undefined) return next();
    return readBytes(c, maxBytes).then(next);
  };

/**
 * Rejects a path that is no UTF-8. The router leaves such bytes encoded, so they would name another user or memory than the client meant.
 */
export const requireText: MiddlewareHandler<Env> = (c, next) => {
  const { path } = c.req;
  if (path.includes('%')) {
    try {
      decodeURIComponent(path);
    } catch {
      throw invalidRequest('path: malformed percent-encoding');
    }
  }
  return next();
};

/** The body, at most `maxBytes`. */
async function readBytes(c: Context<Env>, maxBytes: number): Promise<Uint8Array> {
  const { incoming } = c.env ?? {};
  if (!incoming) {
    const buffer = new Uint8Array(await c.req.arrayBuffer());
    if (buffer.byteLength > maxBytes) throw tooLarge(maxBytes);
    return buffer;
  }
  // Rejected before the client sends the body.
  if (Number(c.req.header('content-length')) > maxBytes) {
    discard(incoming);
    throw tooLarge(maxBytes);
  }
  const chunks: Buffer[] = [];
  let size = 0;
  let reading = true;
  const body = new Promise<Uint8Array>((resolve, reject) => {
    incoming.on('data', (chunk: Buffer) => {
      if (!reading) return;
      size += chunk.length;
      receiving += chunk.length;
      if (size <= maxBytes && receiving <= MAX_RECEIVING_BYTES) return chunks.push(chunk);
      return reject(size > maxBytes ? tooLarge(maxBytes) : tooManyBytes());
    });
    incoming.once('end', () => resolve(chunks.length === 1 ? (chunks[0] as Buffer) : Buffer.concat(chunks)));
    incoming.once('error', () => reject(invalidRequest('the request ended before its body was complete')));
    incoming.once('close', () => {
      if (!incoming.complete) reject(invalidRequest('the request ended before its body was complete'));
    });
  });
  return c
    .get('call')
    .unlessAborted(body)
    .finally(() => {
      reading = false;
      receiving -= size;
      if (!incoming.complete) discard(incoming);
    });
}

function discard(incoming: NonNullable<Env['Bindings']['incoming']>): void {
  incoming.resume();
  const timer = setTimeout(() => incoming.destroy(), DISCARD_MS);
  incoming.once('close', () => clearTimeout(timer));
}

const tooManyBytes = () =>
  new OmpError('rate_limited', 'too many bytes of request bodies are being received; retry in 1 s', { retryAfter: 1 });
const tooLarge = (maxBytes: number) =>
  new OmpError(
    'payload_too_large',
    `the request body exceeds ${maxBytes} bytes; split large content across several memories`,
  );
