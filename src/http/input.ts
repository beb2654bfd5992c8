import { createHash } from 'node:crypto';
import type { Context, MiddlewareHandler } from 'hono';
import type { z } from 'zod';
import {
  type Extensions,
  invalidRequest,
  MAX_DEPTH,
  MAX_EXTENSIONS,
  type NewMemory,
  OmpError,
  type Once,
} from '#contract';
import type { Env } from './request.ts';
import { isStorable } from './schemas.ts';

/** How long an oversized upload is read and thrown away, so that its sender can read the answer instead of a reset. */
const DISCARD_MS = 2_000;

/** Of bodies that are arriving, in all. */
const MOST_ARRIVING_BYTES = 256 * 1024 * 1024;
let arriving = 0;

const utf8 = new TextDecoder('utf-8', { fatal: true });

/**
 * The request's JSON body. The size is judged on the bytes that arrive, whatever Content-Length claims, and before
 * anything is parsed (SPEC, Limits). The content type must be JSON: a web page of another origin cannot send that
 * without asking first, so a gateway on a developer's machine is not writable by any site the developer visits.
 */
export async function readJson(c: Context<Env>, maxBytes: number): Promise<unknown> {
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
  try {
    return JSON.parse(text);
  } catch {
    throw invalidRequest('body is not valid JSON');
  }
}

/**
 * Holds a request whose body nobody reads to the same limit (SPEC, Limits: all requests with a body). Without a body,
 * as nearly always, this costs two look-ups.
 */
export const limitUnreadBody =
  (maxBytes: number): MiddlewareHandler<Env> =>
  async (c, next) => {
    const { method } = c.req;
    if (method === 'POST' || method === 'PATCH') return next();
    if (c.req.header('content-length') !== undefined || c.req.header('transfer-encoding') !== undefined) {
      await readBytes(c, maxBytes);
    }
    return next();
  };

async function readBytes(c: Context<Env>, maxBytes: number): Promise<Uint8Array> {
  const { incoming } = c.env ?? {};
  if (!incoming) {
    const buffer = new Uint8Array(await c.req.arrayBuffer());
    if (buffer.byteLength > maxBytes) throw tooLarge(maxBytes);
    return buffer;
  }
  // Announced to be too large: told before the sender takes the trouble.
  if (Number(c.req.header('content-length')) > maxBytes) {
    discard(incoming);
    throw tooLarge(maxBytes);
  }
  const chunks: Buffer[] = [];
  let size = 0;
  let wanted = true;
  const body = new Promise<Uint8Array>((resolve, reject) => {
    incoming.on('data', (chunk: Buffer) => {
      if (!wanted) return;
      size += chunk.length;
      arriving += chunk.length;
      if (size <= maxBytes && arriving <= MOST_ARRIVING_BYTES) return chunks.push(chunk);
      incoming.removeAllListeners('data');
      discard(incoming);
      return reject(size > maxBytes ? tooLarge(maxBytes) : tooMuch());
    });
    incoming.once('end', () => resolve(chunks.length === 1 ? (chunks[0] as Buffer) : Buffer.concat(chunks)));
    incoming.once('error', () => reject(invalidRequest('the request ended before its body did')));
    incoming.once('close', () => {
      if (!incoming.complete) reject(invalidRequest('the request ended before its body did'));
    });
  });
  return c
    .get('call')
    .unlessAborted(body)
    .finally(() => {
      wanted = false;
      arriving -= size;
    });
}

function discard(incoming: NonNullable<Env['Bindings']['incoming']>): void {
  incoming.resume();
  const timer = setTimeout(() => incoming.destroy(), DISCARD_MS);
  incoming.once('close', () => clearTimeout(timer));
}

const tooMuch = () =>
  new OmpError('rate_limited', 'too many bytes of requests are arriving at once; retry in 1 s', { retryAfter: 1 });
const tooLarge = (maxBytes: number) =>
  new OmpError(
    'payload_too_large',
    `the request body exceeds ${maxBytes} bytes; split large content across several memories`,
  );

/**
 * What the schema makes of the query string. Names it does not know are ignored; a known one given twice is refused,
 * since picking one of the two would silently drop a filter.
 */
export function parseQuery<Schema extends z.ZodObject>(schema: Schema, url: string): z.output<Schema> {
  const values: Record<string, string> = {};
  for (const [name, value] of pairs(url)) {
    if (!Object.hasOwn(schema.shape, name)) continue;
    if (Object.hasOwn(values, name)) throw invalidRequest(`${name}: given more than once`);
    values[name] = value;
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

/** What the schema makes of the input, or `invalid_request` naming every field at fault. Values are never echoed. */
export function parse<Schema extends z.ZodType>(schema: Schema, input: unknown): z.output<Schema> {
  const result = schema.safeParse(input);
  if (result.success) return result.data;
  throw invalidRequest(result.error.issues.map(sentence).join('; '));
}

function sentence(issue: z.core.$ZodIssue): string {
  const subject = issue.path.length === 0 ? 'body' : issue.path.join('.');
  return `${subject}: ${issue.code === 'invalid_type' ? typeMistake(issue) : issue.message}`;
}

const typeMistake = ({ message, expected }: z.core.$ZodIssueInvalidType): string =>
  message.endsWith('received undefined') ? 'is required' : `must be of type ${expected}`;

/**
 * The caller's `x-` keys of a body, checked to be storable as JSON by every backend. The keys of every object come in
 * one order, so that equal bodies become equal texts, however they were written. Null, which removes a key, is kept for
 * a patch.
 */
export function readExtensions(body: object, onNull: 'omit' | 'keep'): Extensions {
  const extensions: Record<`x-${string}`, unknown> = {};
  const given = Object.entries(body).filter(([key]) => isExtensionKey(key));
  if (given.length > MAX_EXTENSIONS) throw invalidRequest(`a memory holds at most ${MAX_EXTENSIONS} x- keys`);
  for (const [key, value] of inOrder(given)) {
    if (!isExtensionKey(key) || (value === null && onNull === 'omit')) continue;
    if (!isStorable(key)) throw invalidRequest('a key that begins with x- must not contain NUL or lone surrogates');
    extensions[key] = checked(key, value, 1);
  }
  return extensions;
}

const isExtensionKey = (key: string): key is `x-${string}` => key.startsWith('x-');

const inOrder = (entries: [key: string, value: unknown][]) => entries.sort(([a], [b]) => (a < b ? -1 : 1));

/** A copy that holds even `__proto__` as data. */
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
  const entries = inOrder(Object.entries(value)).map(([name, inner]) => {
    requireStorable(name);
    return [name, checked(key, inner, depth + 1)] as const;
  });
  return Object.fromEntries(entries);
}

/** Printable ASCII. */
export const IDEMPOTENCY_KEY = /^[\x20-\x7e]{1,255}$/;

/**
 * What `Idempotency-Key` says, bare or as a quoted string (Decision 20): both are one and the same key. The
 * fields of the memory must come in one order, whatever that of the request was.
 */
export function readOnce(header: string | undefined, memory: NewMemory): Omit<Once, 'caller'> | undefined {
  if (header === undefined) return undefined;
  const quoted = /^"((?:[^"\\]|\\["\\])*)"$/.exec(header)?.[1];
  const key = quoted?.replace(/\\(["\\])/g, '$1') ?? header;
  if (!IDEMPOTENCY_KEY.test(key)) throw invalidRequest('Idempotency-Key: must be 1 to 255 printable ASCII characters');
  return { key, fingerprint: createHash('sha256').update(JSON.stringify(memory)).digest('hex') };
}
