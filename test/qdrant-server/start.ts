import { once } from 'node:events';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { type Collection, createCollection, Refusal } from './collection.ts';
import { REQUESTS, type Request } from './requests.ts';

/** Qdrant's version whose behaviour this is. */
const VERSION = '1.18.3';
/** Of a request's body, as the server is configured when nothing is said. */
const MAX_BYTES = 32 * 1024 * 1024;

export interface Fault {
  /** The end of the path that it meets; default: any. */
  readonly path?: string;
  /**
   * A number answers that status; `hang` never answers; `reset` closes the socket before acting and `reset-after` after it; `garbage`
   * answers 200 with text that is not JSON, `empty` with a JSON object without a result, `acknowledged` as to a write without `wait`, and `strict` as strict mode does.
   */
  readonly kind:
    | 408
    | 429
    | 500
    | 503
    | 'hang'
    | 'reset'
    | 'reset-after'
    | 'garbage'
    | 'empty'
    | 'acknowledged'
    | 'strict';
  readonly retryAfter?: string;
  /** How many requests it meets: default 1; 0: until cleared. */
  readonly times?: number;
}

interface Call {
  readonly method: string;
  /** With the query. */
  readonly path: string;
  readonly body: unknown;
}

export interface QdrantServer {
  readonly url: string;
  /** The first fault that fits a request meets it. */
  fail(fault: Fault): void;
  clearFaults(): void;
  /** In order of arrival, those that met a fault too. */
  readonly calls: Call[];
  close(): Promise<void>;
}

/** Serves Qdrant's REST interface, as far as the gateway uses it, on a free port of 127.0.0.1. Everything is in memory. */
export async function startQdrant({
  apiKey,
  port = 0,
}: {
  readonly apiKey?: string;
  readonly port?: number;
} = {}): Promise<QdrantServer> {
  const collections = new Map<string, Collection>();
  const calls: Call[] = [];
  let faults: { readonly fault: Fault; left: number }[] = [];
  const takeFault = (path: string): Fault | undefined => {
    const found = faults.find(({ fault }) => path.endsWith(fault.path ?? ''));
    if (!found) return undefined;
    found.left -= 1;
    faults = faults.filter(({ left }) => left !== 0);
    return found.fault;
  };
  const server = createServer({ keepAliveTimeout: 600_000 }, (request, response) => {
    void serve(request, response).catch(() => request.socket.destroy());
  });
  const serve = async (request: IncomingMessage, response: ServerResponse): Promise<void> => {
    const bytes = Number(request.headers['content-length'] ?? 0);
    if (bytes > MAX_BYTES) {
      const error = `JSON payload (${bytes} bytes) is larger than allowed (limit: ${MAX_BYTES} bytes).`;
      response.writeHead(400, { 'content-type': 'application/json', connection: 'close' });
      return void response.end(JSON.stringify({ status: { error }, time: 0 }), () => request.destroy());
    }
    const chunks: Buffer[] = [];
    for await (const chunk of request) chunks.push(chunk as Buffer);
    const text = Buffer.concat(chunks).toString();
    const { method = '', url = '/' } = request;
    const path = url.replace(/\?.*/, '');
    calls.push({ method, path: url, body: parsed(text) });
    const act = () => answerTo({ method, path, text, key: request.headers['api-key'] });
    const fault = takeFault(path);
    if (fault?.kind === 'hang') return;
    if (fault?.kind === 'reset-after') act();
    if (fault?.kind === 'reset' || fault?.kind === 'reset-after') return void request.socket.resetAndDestroy();
    const { status, body } = fault ? faultAnswer(fault) : act();
    const isText = typeof body === 'string';
    response.writeHead(status, {
      'content-type': isText ? 'text/plain' : 'application/json',
      ...(fault?.retryAfter !== undefined && { 'retry-after': fault.retryAfter }),
    });
    response.end(isText ? body : JSON.stringify(body));
  };
  const answerTo = ({ method, path, text, key }: { method: string; path: string; text: string; key: unknown }) => {
    if (apiKey !== undefined && key !== apiKey && !['/', '/readyz', '/livez', '/healthz'].includes(path)) {
      return {
        status: 401,
        body: key ? 'Invalid API key or JWT' : 'Must provide an API key or an Authorization bearer token',
      };
    }
    if (path === '/') return { status: 200, body: { title: 'qdrant - vector search engine', version: VERSION } };
    try {
      return { status: 200, body: { result: run(method, path, text), status: 'ok', time: 0.000_1 } };
    } catch (error) {
      if (error instanceof Refusal)
        return { status: error.status, body: { status: { error: error.message }, time: 0 } };
      throw error;
    }
  };
  const run = (method: string, path: string, text: string): unknown => {
    const [, , name = '', ...rest] = path.split('/').map(decodeURIComponent);
    const verb = `${method} ${rest.join('/')}`;
    if (verb === 'GET exists') return { exists: collections.has(name) };
    if (verb === 'PUT ') {
      if (collections.has(name)) throw new Refusal(409, `Wrong input: Collection \`${name}\` already exists!`);
      collections.set(name, createCollection(read('create', text)));
      return true;
    }
    const operation = OPERATIONS[verb];
    if (!operation) throw new Refusal(404, `this server has no ${method} ${path}`);
    const asked = operation.reads && read(operation.reads, text);
    if (verb === 'DELETE ') return collections.delete(name);
    const collection = collections.get(name);
    if (!collection) throw new Refusal(404, `Not found: Collection \`${name}\` doesn't exist!`);
    return operation.run(collection, asked as never);
  };

  server.listen(port, '127.0.0.1');
  await once(server, 'listening');
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    fail: (fault) => void faults.push({ fault, left: fault.times === 0 ? -1 : (fault.times ?? 1) }),
    clearFaults: () => {
      faults = [];
    },
    calls,
    async close() {
      server.closeAllConnections();
      server.close();
      await once(server, 'close');
    },
  };
}

type Name = keyof typeof REQUESTS;
interface Operation {
  readonly reads?: Name;
  run(collection: Collection, asked: never): unknown;
}
const operation = <Reads extends Name>(
  reads: Reads,
  run: (collection: Collection, asked: Request<Reads>) => unknown,
): Operation => ({ reads, run: run as Operation['run'] });

const OPERATIONS: Readonly<Record<string, Operation>> = {
  'GET ': { run: (collection) => collection.describe() },
  'DELETE ': { run: () => true },
  'PUT index': operation('index', (collection, asked) => collection.index(asked)),
  'PUT points': operation('upsert', (collection, asked) => collection.upsert(asked)),
  'POST points/batch': operation('batch', (collection, asked) => collection.batch(asked)),
  'POST points': operation('retrieve', (collection, asked) => collection.retrieve(asked)),
  'POST points/delete': operation('remove', (collection, asked) => collection.remove(asked)),
  'POST points/scroll': operation('scroll', (collection, asked) => collection.scroll(asked)),
  'POST points/query': operation('query', (collection, asked) => collection.query(asked)),
  'POST points/count': operation('count', (collection, asked) => collection.count(asked)),
};

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

/** The body by its schema. A limit out of range is 422, anything else that does not fit 400. */
function read<Wanted extends Name>(name: Wanted, text: string): Request<Wanted> {
  const result = REQUESTS[name].safeParse(parsed(text));
  if (result.success) return result.data as Request<Wanted>;
  const [issue] = result.error.issues;
  const isRange = issue?.code.startsWith('too_') && ['limit', 'size'].includes(String(issue.path.at(-1)));
  const where = `[${issue?.path.join('.')}: ${issue?.message}]`;
  throw new Refusal(isRange ? 422 : 400, `${isRange ? 'Validation' : 'Format'} error in JSON body: ${where}`);
}

const faultAnswer = ({ kind }: Fault): { status: number; body: object | string } => {
  if (kind === 'garbage') return { status: 200, body: '<html>not JSON</html>' };
  if (kind === 'empty') return { status: 200, body: {} };
  if (kind === 'strict') {
    const error = 'Bad request: Limit exceeded 50 > 5 for "limit". Help: Reduce the "limit" parameter to or below 5.';
    return { status: 400, body: { status: { error }, time: 0 } };
  }
  if (kind === 'acknowledged') return { status: 200, body: { result: { status: kind }, status: 'ok', time: 0 } };
  return { status: Number(kind), body: { status: { error: `Service internal error: ${kind}` }, time: 0 } };
};
