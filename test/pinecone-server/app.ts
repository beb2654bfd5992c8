import { once } from 'node:events';
import type { Server } from 'node:http';
import type { AddressInfo, Socket } from 'node:net';
import { createAdaptorServer, type HttpBindings } from '@hono/node-server';
import { RESPONSE_ALREADY_SENT } from '@hono/node-server/utils/response';
import { type Context, Hono } from 'hono';
import { createRecords, type Records } from './calls.ts';
import { createFaults, type Faults, suffer } from './faults.ts';
import { type Judge, openJudges } from './judge.ts';
import { type Asked, ENDPOINTS, type Endpoint, type Index, OPERATION_NAMES } from './operations.ts';
import type { Lag, Settings } from './options.ts';
import { bodyOf, check, jsonReply, Refusal, type Reply, textReply } from './replies.ts';
import { createStore } from './store.ts';

type Env = { Bindings: HttpBindings };

/** Tests read and change these; the service has no such interface. */
export interface Control {
  readonly index: Index;
  readonly faults: Faults;
  readonly records: Records;
}

/** Serves an index on 127.0.0.1. Port 0, the default: a free one. Rejects if it cannot listen. */
export async function listen({
  settings,
  lag,
  port = 0,
}: {
  readonly settings: Settings;
  readonly lag: Lag;
  readonly port?: number;
}): Promise<Control & { readonly url: string; readonly server: Server }> {
  const { app, ...control } = await createApp(settings, lag);
  // Clients reuse connections: only faults may reset one.
  const serverOptions = { keepAliveTimeout: 600_000 };
  const server = createAdaptorServer({ fetch: app.fetch, serverOptions }) as Server;
  server.listen(port, '127.0.0.1');
  await once(server, 'listening');
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, server, ...control };
}

const FETCH_BY_METADATA_PER_SECOND = 5;

/**
 * Pinecone's data plane over one index in memory. Whatever arrives and whatever is answered is judged by its OpenAPI file;
 * what is wrong is kept as a violation, and such a request answered with 400.
 */
async function createApp(settings: Settings, lag: Lag): Promise<Control & { readonly app: Hono<Env> }> {
  const limit = createRateLimit(FETCH_BY_METADATA_PER_SECOND, 'fetch by metadata QPS');
  const countFetchByMetadata = settings.rateLimits ? limit : () => {};
  const index: Index = { settings, store: createStore(lag), countFetchByMetadata };
  const [faults, records] = [createFaults(), createRecords()];
  const judges = await openJudges();
  const app = new Hono<Env>();

  for (const operation of OPERATION_NAMES) {
    const endpoint: Endpoint = ENDPOINTS[operation];
    const judge = judges.get(endpoint) as Judge;
    const note = (mistakes: readonly string[]) =>
      void records.violations.push(...mistakes.map((mistake) => `${operation}: ${mistake}`));
    app.on(endpoint.method, endpoint.path, async (c) => {
      const asked = await read(c);
      const { method, url } = c.env.incoming as { method: string; url: string };
      const call = records.record({ operation, method, path: url, status: 0, body: asked.body, ...traceOf(c) });
      const mistakes = judge.request({ ...asked, headers: c.req.raw.headers });
      note(mistakes);
      const act = () => answer(c.req.header('api-key'), settings, () => run(endpoint, { asked, mistakes, index }));
      const fault = faults.take(operation);
      const { socket } = c.env.incoming;
      const reply = fault ? await suffer(fault, act, { gone: () => closeOf(socket), cleared: faults.cleared }) : act();
      if (!reply) {
        socket.resetAndDestroy();
        return RESPONSE_ALREADY_SENT;
      }
      if (reply.body) note(judge.answer(reply.status, reply.body));
      call.status = reply.status;
      return new Response(reply.text, { status: reply.status, headers: reply.headers });
    });
  }
  // A failure of this server's own is no answer of the service. A client that went while it sent is none.
  app.onError((error, c) => {
    if (c.env.incoming.complete) records.violations.push(`the server failed: ${error.stack}`);
    return c.text('the server failed', 500);
  });
  app.notFound((c) => {
    records.violations.push(`${c.req.method} ${c.req.path}: no operation of this server`);
    return c.json(bodyOf(new Refusal(404, 'Not found')), 404);
  });
  return { app, index, faults, records };
}

const WINDOW_MS = 1_000;

/** Counts requests by key over the last second. Throws the 429 that names the limit when there were `most` already. */
function createRateLimit(most: number, name: string): (key: string) => void {
  const seen = new Map<string, number[]>();
  return (key) => {
    const now = performance.now();
    const recent = (seen.get(key) ?? []).filter((time) => now - time < WINDOW_MS);
    if (recent.length >= most) {
      throw new Refusal(429, `Request failed. You've reached the ${name} limit for namespace ${key}`);
    }
    seen.set(key, [...recent, now]);
  };
}

const traceOf = (c: Context<Env>) => {
  const traceparent = c.req.header('traceparent');
  return traceparent === undefined ? {} : { traceparent };
};

const closeOf = (socket: Socket) => new Promise((resolve) => socket.once('close', resolve));

async function read(c: Context<Env>): Promise<Asked> {
  const text = await c.req.text();
  const query = new URL(c.req.url).searchParams;
  return { body: parsed(text), bytes: Buffer.byteLength(text), query };
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

/** The answer to whoever may ask; refused are the others, in plain text, as by the layer in front of the service. */
function answer(key: string | undefined, { apiKey, lsn }: Settings, ask: () => ReturnType<Endpoint['run']>): Reply {
  if (!key || (apiKey !== undefined && key !== apiKey)) return textReply(401, 'Invalid API Key');
  try {
    const { body, written, indexed } = ask();
    return jsonReply(200, body, {
      ...(lsn && written !== undefined && { 'x-pinecone-request-lsn': `${written}` }),
      ...(lsn && indexed !== undefined && { 'x-pinecone-max-indexed-lsn': `${indexed}` }),
    });
  } catch (error) {
    if (error instanceof Refusal) return jsonReply(error.status, bodyOf(error));
    throw error;
  }
}

interface Judged {
  readonly asked: Asked;
  readonly mistakes: readonly string[];
  readonly index: Index;
}

function run({ newer, run }: Endpoint, { asked, mistakes, index }: Judged) {
  if (newer && index.settings.apiVersion === '2025-01') throw new Refusal(404, 'Not found');
  check(mistakes.length === 0, `Invalid request: ${mistakes.join('; ')}`);
  return run(asked, index);
}
