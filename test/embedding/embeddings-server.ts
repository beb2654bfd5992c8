import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { json } from 'node:stream/consumers';

/** The body of `POST /embeddings` as OpenAI's API reference describes it. */
interface EmbeddingsRequest {
  readonly model: string;
  readonly input: readonly string[];
  readonly encoding_format?: 'float' | 'base64';
  readonly dimensions?: number;
}

interface Received extends EmbeddingsRequest {
  readonly authorization: string | undefined;
  readonly path: string | undefined;
  /** Of the trace it is part of. */
  readonly traceparent: string | undefined;
  readonly tracestate: string | undefined;
  /** Settles when the client hangs up or has its answer. */
  readonly closed: Promise<void>;
}

export type Answer = (request: Received, response: ServerResponse) => void;

/** A text's vector points where its length says; `dimensions` numbers, not of unit length. */
export function vectorOf(text: string, dimensions: number): number[] {
  return Array.from({ length: dimensions }, (_, i) => (i === text.length % dimensions ? 3 : i === 0 ? 1 : 0));
}

const base64 = (vector: readonly number[]) => Buffer.from(Float32Array.from(vector).buffer).toString('base64');

/** What the published API answers; a service that knows only floats ignores `encoding_format`. */
export function embeddings(natural: number, options: { floats?: boolean; fixed?: boolean } = {}): Answer {
  return ({ model, input, encoding_format, dimensions }, response) => {
    const length = options.fixed ? natural : (dimensions ?? natural);
    const data = input.map((text, index) => {
      const vector = vectorOf(text, length);
      const embedding = encoding_format === 'base64' && !options.floats ? base64(vector) : vector;
      return { object: 'embedding', index, embedding };
    });
    sendJson(response, 200, { object: 'list', model, data, usage: { prompt_tokens: 1, total_tokens: 1 } });
  };
}

export const failing =
  (status: number, headers: Record<string, string> = {}, code: string | null = null): Answer =>
  (_, response) => {
    const message = 'inner detail of http://10.0.0.7 sk-secret';
    sendJson(response, status, { error: { message, type: 'error', param: null, code } }, headers);
  };

export function sendJson(response: ServerResponse, status: number, body: unknown, headers = {}): void {
  response.writeHead(status, { 'content-type': 'application/json', ...headers }).end(JSON.stringify(body));
}

/** A real HTTP server on loopback; `answers` may be changed while it runs. */
export async function embeddingsServer() {
  const received: Received[] = [];
  const server = createServer((request, response) => void accept(request, response));
  const service = {
    received,
    answer: embeddings(8) as Answer,
    base_url: '',
    async close() {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
  async function accept(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const body = (await json(request)) as EmbeddingsRequest;
    const closed = new Promise<void>((resolve) => response.once('close', resolve));
    const { authorization, traceparent, tracestate } = request.headers as Record<string, string | undefined>;
    const seen = { ...body, authorization, traceparent, tracestate, path: request.url, closed };
    received.push(seen);
    service.answer(seen, response);
  }
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  service.base_url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/v1`;
  return service;
}
