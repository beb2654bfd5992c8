import { once } from 'node:events';
import { createServer, type IncomingHttpHeaders, type IncomingMessage } from 'node:http';
import type { AddressInfo } from 'node:net';
import { json } from 'node:stream/consumers';

type AttributeValue = { readonly stringValue?: string; readonly intValue?: number | string };
interface KeyValue {
  readonly key: string;
  readonly value: AttributeValue;
}

/** As much of an `ExportTraceServiceRequest` (opentelemetry-proto, in JSON) as tests look at. */
interface ExportRequest {
  readonly resourceSpans: readonly {
    readonly resource: { readonly attributes: readonly KeyValue[] };
    readonly scopeSpans: readonly { readonly scope: { readonly name: string }; readonly spans: readonly WireSpan[] }[];
  }[];
}

interface WireSpan {
  readonly traceId: string;
  readonly spanId: string;
  readonly parentSpanId?: string;
  readonly traceState?: string;
  readonly name: string;
  readonly kind: number;
  readonly startTimeUnixNano: string;
  readonly endTimeUnixNano: string;
  readonly attributes: readonly KeyValue[];
  readonly events: readonly unknown[];
  readonly status: { readonly code?: number; readonly message?: string };
}

export interface CollectedSpan extends Omit<WireSpan, 'attributes' | 'kind'> {
  readonly kind: 'internal' | 'server' | 'client' | undefined;
  readonly attributes: Readonly<Record<string, unknown>>;
  readonly resource: Readonly<Record<string, unknown>>;
  readonly scope: string;
}

/** The enumeration `SpanKind` of the protocol. */
const KINDS = [undefined, 'internal', 'server', 'client'] as const;

/** `Status.code` of the protocol. */
export const FAILED = 2;

export interface Collector {
  readonly url: string;
  readonly spans: readonly CollectedSpan[];
  /** What every request so far carried. */
  readonly headers: readonly IncomingHttpHeaders[];
  /** Everything as it came, to look for what must not be there. */
  readonly bodies: readonly string[];
  /** What is answered; `undefined`: never anything. */
  status: number | undefined;
  /** Resolves once this many requests have come. */
  asked(times: number): Promise<void>;
  close(): Promise<void>;
}

/** Takes traces as OTLP over HTTP in JSON at `/v1/traces`, and nothing else. */
export async function openCollector(port = 0): Promise<Collector> {
  const [spans, headers, bodies]: [CollectedSpan[], IncomingHttpHeaders[], string[]] = [[], [], []];
  const server = createServer(async (request, response) => {
    headers.push(request.headers);
    const right = request.method === 'POST' && request.url === '/v1/traces';
    const body = await read(request);
    bodies.push(JSON.stringify(body));
    server.emit('asked');
    if (collector.status === undefined) return;
    if (right && collector.status === 200) spans.push(...flat(body));
    response.writeHead(right ? collector.status : 404, { 'content-type': 'application/json' }).end('{}');
  });
  server.listen(port, '127.0.0.1');
  await once(server, 'listening');
  const collector: Collector = {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    spans,
    headers,
    bodies,
    status: 200,
    async asked(times) {
      while (headers.length < times || bodies.length < times) await once(server, 'asked');
    },
    async close() {
      const closed = once(server, 'close');
      server.close();
      server.closeAllConnections();
      await closed;
    },
  };
  return collector;
}

const read = async (request: IncomingMessage) => (await json(request)) as ExportRequest;

const flat = ({ resourceSpans }: ExportRequest): CollectedSpan[] =>
  resourceSpans.flatMap(({ resource, scopeSpans }) =>
    scopeSpans.flatMap(({ scope, spans }) =>
      spans.map(({ kind, attributes, ...span }) => ({
        ...span,
        kind: KINDS[kind],
        attributes: record(attributes),
        resource: record(resource.attributes),
        scope: scope.name,
      })),
    ),
  );

const record = (attributes: readonly KeyValue[]) =>
  Object.fromEntries(
    attributes.map(({ key, value }) => [key, value.stringValue ?? (value.intValue && Number(value.intValue)) ?? value]),
  );
