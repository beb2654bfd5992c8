import type { Context, MiddlewareHandler } from 'hono';
import { invalidRequest, OmpError } from '#contract';
import type { Env } from './call.ts';

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
