import { pathToFileURL } from 'node:url';
import { beforeEach, describe, expect, onTestFinished, test } from 'vitest';
import { embeddings, embeddingsServer } from '../embedding/embeddings-server.ts';
import { startPinecone } from '../pinecone-server/start.ts';
import { clientOf } from '../support/client.ts';
import { FULL } from '../support/full.ts';
import { type CollectedSpan, type Collector, openCollector } from '../support/otlp-collector.ts';
import { freshUser } from '../support/subject.ts';
import { ID, SPAN } from '../telemetry/traceparents.ts';
import { dataFolder, type RunningGateway, serveHere, startGateway } from './gateway.ts';

const GIVEN = `00-${ID}-${SPAN}-01`;
const MEMORY = { OMP_PROVIDER: 'memory' };

let service: Awaited<ReturnType<typeof embeddingsServer>>;
let collector: Collector;
beforeEach(async () => {
  service = await embeddingsServer();
  onTestFinished(service.close);
  collector = await openCollector();
  onTestFinished(collector.close);
});

const embedding = () => ({ OMP_SEARCH_MODE: 'vector', OMP_EMBEDDER: 'openai', OPENAI_BASE_URL: service.base_url });
const tracing = () => ({ OTEL_EXPORTER_OTLP_ENDPOINT: collector.url });

/** A client whose requests are part of a trace. */
const traced = ({ url }: RunningGateway) =>
  clientOf((path, init) => fetch(url + path, { ...init, headers: { ...init?.headers, traceparent: GIVEN } }));

const named = (spans: readonly CollectedSpan[], name: string): CollectedSpan => {
  const found = spans.filter((span) => span.name === name);
  expect(found, `${name} among ${spans.map((span) => span.name)}`).toHaveLength(1);
  return found[0] as CollectedSpan;
};

/** The request to the embedding service with this text. */
const receivedFor = (text: string) => service.received.find(({ input }) => input.includes(text));

describe('with a collector', () => {
  test('a request and its calls are one trace, sent before the gateway ends', async () => {
    const gateway = await startGateway({
      env: {
        ...MEMORY,
        ...embedding(),
        ...tracing(),
        OTEL_EXPORTER_OTLP_HEADERS: 'x-collector-key=hush',
        OTEL_RESOURCE_ATTRIBUTES: 'k8s.pod.name=pod-1',
        OTEL_SERVICE_NAME: 'memories',
      },
    });
    const client = traced(gateway);
    const user_id = freshUser();
    const { id } = await client.add({ user_id, content: 'drinks green tea', scope: 'private/notes' });
    await client.get(id);
    await client.search({ user_id, q: 'which beverage?' });
    const { status, stdout, stderr } = await gateway.stop();
    expect({ status, stderr }).toEqual({ status: 0, stderr: '' });
    expect(stdout).toContain(`"trace_id":"${ID}"`);

    const { spans } = collector;
    for (const { traceId, resource } of spans) {
      expect(traceId).toBe(ID);
      expect(resource).toMatchObject({ 'service.name': 'memories', 'k8s.pod.name': 'pod-1' });
    }
    const add = named(spans, 'POST /memories');
    expect(add).toMatchObject({ kind: 'server', parentSpanId: SPAN });
    expect(add.attributes).toMatchObject({ 'http.route': '/memories', 'http.response.status_code': 201 });
    expect(named(spans, 'GET /memories/:id').attributes).toMatchObject({ 'http.route': '/memories/:id' });
    const search = named(spans, 'GET /memories/search');
    expect(named(spans, 'memory search')).toMatchObject({ kind: 'internal', parentSpanId: search.spanId });
    const embeds = spans.filter(({ name }) => name === 'openai embed');
    expect(embeds.map(({ parentSpanId }) => parentSpanId)).toEqual([add.spanId, search.spanId]);
    expect(receivedFor('which beverage?')?.traceparent).toBe(`00-${ID}-${embeds[1]?.spanId}-01`);

    for (const { 'x-collector-key': key } of collector.headers) expect(key).toBe('hush');
    expect(stdout).not.toContain('hush');
    const sent = collector.bodies.join();
    for (const secret of [user_id, id, 'green', 'beverage', 'private', 'hush']) expect(sent).not.toContain(secret);
  });

  test.runIf(FULL)('calls to the embedded Postgres have its attributes', async () => {
    const OMP_DATA_DIR = await dataFolder();
    const gateway = await startGateway({ env: { ...tracing(), OMP_DATA_DIR } });
    const { id } = await gateway.client.add({ user_id: freshUser(), content: 'tea' });
    await traced(gateway).get(id);
    await gateway.stop();
    const get = named(collector.spans, 'postgres get');
    expect(get).toMatchObject({ kind: 'client', traceId: ID });
    expect(get.attributes).toEqual({ 'db.system.name': 'postgresql', 'db.operation.name': 'get' });
    expect(named(collector.spans, 'postgres add').traceId).not.toBe(ID);
  });

  test('calls to Pinecone have the trace', async () => {
    const pinecone = await startPinecone({ dimension: 8 });
    onTestFinished(pinecone.close);
    const env = { OMP_PROVIDER: 'pinecone', PINECONE_API_KEY: 'test', PINECONE_INDEX_HOST: pinecone.url };
    const gateway = await startGateway({ env: { ...env, ...embedding(), ...tracing() } });
    await pinecone.resetCalls();
    await traced(gateway).add({ user_id: freshUser(), content: 'tea' });
    const calls = await pinecone.calls();
    await gateway.stop();
    const { spanId } = named(collector.spans, 'pinecone add');
    expect(calls.length).toBeGreaterThan(0);
    expect(calls.map(({ traceparent }) => traceparent)).toEqual(calls.map(() => `00-${ID}-${spanId}-01`));
  });
});

test.runIf(FULL)('with a collector that never answers, the gateway ends in order', async () => {
  collector.status = undefined;
  const gateway = await startGateway({ env: { ...MEMORY, ...tracing() } });
  await gateway.client.list({ user_id: freshUser() });
  const { status, stdout } = await gateway.stop();
  expect(status).toBe(0);
  expect(stdout).toContain('the last spans could not be sent');
  expect(collector.bodies).toHaveLength(1);
});

test('without a collector a client’s trace reaches the embedding service as it came', async () => {
  const { client } = await serveHere(embedding());
  // test/telemetry/tracing.test.ts has other traces.
  for (const [content, traceparent] of [
    ['with a trace', GIVEN],
    ['without', undefined],
  ] as const) {
    const headers: Record<string, string> = traceparent ? { traceparent } : {};
    const added = await client.tell('POST', '/memories', { user_id: freshUser(), content }, headers);
    expect([added.status, receivedFor(content)?.traceparent]).toEqual([201, traceparent]);
  }
});

test('spans go to an SDK that the operator loads, and include what that instruments', async () => {
  service.answer = embeddings(8);
  const own = pathToFileURL('test/process/own-otel.mjs');
  const gateway = await startGateway({
    env: { ...MEMORY, ...embedding(), ...tracing(), NODE_OPTIONS: `--import=${own}` },
  });
  const user_id = freshUser();
  await gateway.client.add({ user_id, content: 'something to find' });
  await traced(gateway).search({ user_id, q: 'tea' });
  const { status, stdout } = await gateway.stop();
  expect(status).toBe(0);
  const spans = stdout
    .split('\n')
    .filter((line) => line.startsWith('{"span"'))
    .map((line) => JSON.parse(line) as { span: string; traceId: string; spanId: string; parent?: string })
    .filter(({ traceId }) => traceId === ID);
  const path = ['GET /memories/search', 'openai embed', 'outgoing'];
  const found = path.map((name) => spans.find(({ span }) => span === name));
  expect(found.map((span) => span?.parent)).toEqual([SPAN, ...found.slice(0, -1).map((span) => span?.spanId)]);
  expect(receivedFor('tea')?.traceparent).toBe(`00-${ID}-${found[1]?.spanId}-01`);
  expect(collector.bodies).toEqual([]);
});
