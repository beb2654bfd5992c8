import { createHash } from 'node:crypto';
import type { Context, MiddlewareHandler } from 'hono';
import type { z } from 'zod';
import {
  type Extensions,
  type IdempotencyKey,
  invalidRequest,
  MAX_DEPTH,
  MAX_EXTENSIONS,
  type NewMemory,
  OmpError,
} from '#contract';
import { requireBounds } from '#toolbox';
import type { Env, InputCall } from './request.ts';
import { isStorable } from './schemas.ts';

/** How long the rest of an oversized upload is read and discarded, so that its sender gets the response, not a reset. */
const DISCARD_MS = 2_000;

/** Limit for the bytes of all request bodies that are being received. */
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
  requireBounds(json, maxValues);
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

/** Names the keys of an object that the schema does not have; at the top of a body, `x-` keys are no mistake. */
export function tellIgnored(call: InputCall, { shape }: z.ZodObject, given: object, prefix = ''): void {
  for (const name in given) {
    if (!Object.hasOwn(shape, name) && (prefix !== '' || !isExtensionKey(name))) call.ignored?.(prefix + name);
  }
}

/** Parses a body, whose unknown fields are ignored; `call` undefined: they are not reported. */
export function parseBody<Schema extends z.ZodObject>(
  schema: Schema,
  body: unknown,
  call: InputCall | undefined,
): z.output<Schema> {
  const input = parse(schema, body);
  if (call) tellIgnored(call, schema, body as object);
  return input;
}

/**
 * Parses the query string by the schema. Unknown names are ignored. A known name given twice is an error: using only one
 * of its values would silently drop a filter. The values of `repeatable` are a list.
 */
export function parseQuery<Schema extends z.ZodObject>(
  schema: Schema,
  url: string,
  call: InputCall,
  repeatable?: keyof Schema['shape'],
): z.output<Schema> {
  const values: Record<string, string | string[]> = {};
  for (const [name, value] of pairs(url)) {
    if (!Object.hasOwn(schema.shape, name)) {
      call.ignored?.(name);
      continue;
    }
    const before = Object.hasOwn(values, name) ? values[name] : undefined;
    if (name === repeatable) values[name] = [...(before ?? []), value];
    else if (before !== undefined) throw invalidRequest(`${name}: given more than once`);
    else values[name] = value;
  }
  return parse(schema, values);
}

function* pairs(url: string): Generator<[name: string, value: string]> {
  const start = url.indexOf('?');
  if (start < 0) return;
  for (const pair of url.slice(start + 1).split('&')) {
    const equals = pair.indexOf('=');
    yield equals < 0 ? [decode(pair), ''] : [decode(pair.slice(0, equals)), decode(pair.slice(equals + 1))];
  }
}

function decode(text: string): string {
  if (!/[%+]/.test(text)) return text;
  try {
    return decodeURIComponent(text.replaceAll('+', ' '));
  } catch {
    throw invalidRequest('query string: malformed percent-encoding');
  }
}

/** Issues that a message names. */
const MAX_ISSUES = 10;

/**
 * Parses the input by the schema. Throws `invalid_request` that names the first ten invalid fields and counts the others;
 * values are never echoed.
 */
export function parse<Schema extends z.ZodType>(schema: Schema, input: unknown): z.output<Schema> {
  const result = schema.safeParse(input);
  if (result.success) return result.data;
  const { issues } = result.error;
  const more = issues.length > MAX_ISSUES ? [`and ${issues.length - MAX_ISSUES} more`] : [];
  throw invalidRequest([...issues.slice(0, MAX_ISSUES).map(describeIssue), ...more].join('; '));
}

function describeIssue(issue: z.core.$ZodIssue): string {
  const subject = issue.path.length === 0 ? 'body' : issue.path.join('.');
  return `${subject}: ${issue.code === 'invalid_type' ? describeType(issue) : issue.message}`;
}

const describeType = ({ message, expected }: z.core.$ZodIssueInvalidType): string =>
  message.endsWith('received undefined') ? 'is required' : `must be of type ${expected}`;

/**
 * The `x-` keys of a body, checked so that every backend can store them as JSON. The keys of every object are sorted, so
 * that equal values have equal JSON. `keep` keeps null for a patch, where it removes a key.
 */
export function readExtensions(body: object, onNull: 'omit' | 'keep'): Extensions {
  const extensions: Record<`x-${string}`, unknown> = {};
  const given = Object.entries(body).filter(([key]) => isExtensionKey(key));
  if (given.length > MAX_EXTENSIONS) throw invalidRequest(`a memory holds at most ${MAX_EXTENSIONS} x- keys`);
  for (const [key, value] of sorted(given)) {
    if (!isExtensionKey(key) || (value === null && onNull === 'omit')) continue;
    if (!isStorable(key)) throw invalidRequest('a key that begins with x- must not contain NUL or lone surrogates');
    extensions[key] = checked(key, value, 1);
  }
  return extensions;
}

const isExtensionKey = (key: string): key is `x-${string}` => key.startsWith('x-');

const sorted = (entries: [key: string, value: unknown][]) => entries.sort(([a], [b]) => (a < b ? -1 : 1));

/** Copies the value; a key named `__proto__` stays data. */
function checked(key: string, value: unknown, depth: number): unknown {
  const requireStorable = (text: string) => {
    if (!isStorable(text)) throw invalidRequest(`${key}: must not contain NUL or lone surrogates`);
  };
  if (typeof value === 'string') requireStorable(value);
  if (typeof value === 'number' && !Number.isFinite(value))
    throw invalidRequest(`${key}: holds a number too large to store`);
  if (typeof value !== 'object' || value === null) return value;
  if (depth > MAX_DEPTH) throw invalidRequest(`${key}: nested deeper than ${MAX_DEPTH} levels`);
  if (Array.isArray(value)) return value.map((inner) => checked(key, inner, depth + 1));
  const entries = sorted(Object.entries(value)).map(([name, inner]) => {
    requireStorable(name);
    return [name, checked(key, inner, depth + 1)] as const;
  });
  return Object.fromEntries(entries);
}

/** Printable ASCII characters. */
export const IDEMPOTENCY_KEY = /^[\x20-\x7e]{1,255}$/;

/**
 * Reads `Idempotency-Key`, unquoted or as a quoted string; both forms name the same key (Decision 20). The fields of `memory`
 * must always have the same order, because the fingerprint is a hash of its JSON.
 */
export function readIdempotencyKey(
  header: string | undefined,
  memory: NewMemory | readonly unknown[],
): Omit<IdempotencyKey, 'caller'> | undefined {
  if (header === undefined) return undefined;
  const quoted = /^"((?:[^"\\]|\\["\\])*)"$/.exec(header)?.[1];
  const key = quoted?.replace(/\\(["\\])/g, '$1') ?? header;
  if (!IDEMPOTENCY_KEY.test(key)) throw invalidRequest('Idempotency-Key: must be 1 to 255 printable ASCII characters');
  return { key, fingerprint: createHash('sha256').update(JSON.stringify(memory)).digest('hex') };
}
