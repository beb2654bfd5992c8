import { ROOT_CONTEXT, trace } from '@opentelemetry/api';
import { W3CTraceContextPropagator } from '@opentelemetry/core';
import fc from 'fast-check';
import { Hono } from 'hono';
import { expect, onTestFinished, test, vi } from 'vitest';
import { Call, GATEWAY, type Log, OmpError, type Trace } from '#contract';
import {
  NO_TELEMETRY,
  type Operation,
  propagateOnly,
  readTraceContext,
  type Telemetry,
  UNOBSERVED,
} from '../../src/core/telemetry.ts';
import { callMiddleware, type Env } from '../../src/http/request.ts';
import { openTracing } from '../../src/telemetry/telemetry.ts';
import { eventually } from '../support/eventually.ts';
import { FAILED, openCollector } from '../support/otlp-collector.ts';
import { headerOf, ID, SPAN, traceparents } from './traceparents.ts';

const TRACEPARENT = /^00-(?!0{32})[\da-f]{32}-(?!0{16})[\da-f]{16}-0[01]$/;
const GIVEN = { traceparent: `00-${ID}-${SPAN}-01` };
const SEARCH: Operation = { kind: 'backend', dependency: 'postgres', name: 'search', reads: true };
const HOW = { method: 'GET', route: '/memories/:id', status: 200, seconds: 0.001, requestId: 'r1' };

interface Line {
  readonly level: string;
  readonly fields: object;
  readonly message: string;
}

/** Tracing to its own collector; `ended` sends all spans. */
async function open({ ratio = 1, url }: { ratio?: number; url?: string } = {}) {
  const collector = await openCollector();
  onTestFinished(collector.close);
  const lines: Line[] = [];
  const say = (level: string) => (fields: object, message: string) => void lines.push({ level, fields, message });
  const log: Log = { info: say('info'), warn: say('warn'), error: say('error') };
  const options = { url: url ?? collector.url, service_name: 'test', ratio };
  const { telemetry, close } = await openTracing(options, log);
  onTestFinished(close);
  const ended = async () => {
    await close();
    return collector.spans;
  };
  return { collector, telemetry, lines, close, ended };
}

const follow = (telemetry: Telemetry, headers: Record<string, string | undefined> = {}, isProbe = false) =>
  telemetry.request('GET', headerOf(headers), isProbe);

const callWith = (trace: Trace | undefined, signal?: AbortSignal): Call => new Call('r1', GATEWAY, signal, { trace });

test('[Decision 33] a request is a span, with a child span per call to a dependency', async () => {
  const { telemetry, ended } = await open();
  const { trace, end } = follow(telemetry, { ...GIVEN, tracestate: 'vendor=1' });
  const sent = await telemetry.call(SEARCH, callWith(trace), async (call) => call.trace?.headers());
  end(HOW);
  const [inner, outer] = await ended();
  expect(outer).toMatchObject({
    traceId: ID,
    parentSpanId: SPAN,
    name: 'GET /memories/:id',
    kind: 'server',
    status: { code: 0 },
    resource: { 'service.name': 'test', 'telemetry.sdk.name': 'opentelemetry' },
    scope: 'omp-gateway',
  });
  expect(outer?.attributes).toEqual({
    'http.request.method': 'GET',
    'url.scheme': 'http',
    'http.route': '/memories/:id',
    'http.response.status_code': 200,
    'omp.request_id': 'r1',
  });
  expect(inner).toMatchObject({ traceId: ID, parentSpanId: outer?.spanId, name: 'postgres search', kind: 'client' });
  expect(inner?.attributes).toEqual({ 'db.system.name': 'postgresql', 'db.operation.name': 'search' });
  expect(sent).toEqual({ traceparent: `00-${ID}-${inner?.spanId}-01`, tracestate: 'vendor=1' });
});

test('nested calls have nested spans', async () => {
  const { telemetry, ended } = await open();
  const { trace, end } = follow(telemetry);
  const embed: Operation = { kind: 'embedding', dependency: 'openai', name: 'embed', reads: true };
  const call = callWith(trace);
  await telemetry.call(SEARCH, call, (own) => telemetry.call(embed, own, async () => {}));
  await telemetry.call({ ...embed, dependency: 'local' }, call, async () => {});
  end(HOW);
  const [embedded, searched, beside, outer] = await ended();
  expect(embedded).toMatchObject({ name: 'openai embed', kind: 'client', parentSpanId: searched?.spanId });
  expect(embedded?.attributes).toEqual({});
  expect(searched?.parentSpanId).toBe(outer?.spanId);
  expect(beside).toMatchObject({ name: 'local embed', kind: 'internal', parentSpanId: outer?.spanId });
  expect(outer?.parentSpanId).toBeUndefined();
});

test('unknown methods are _OTHER', async () => {
  const { telemetry, ended } = await open();
  telemetry.request('PROPFIND', () => undefined, false).end({ ...HOW, route: '/*' });
  const [span] = await ended();
  expect(span?.name).toBe('HTTP /*');
  expect(span?.attributes['http.request.method']).toBe('_OTHER');
});

test.for([
  [404, 0, undefined],
  [499, 0, '499'],
  [502, FAILED, '502'],
] as const)('a response with status %i', async ([status, code, type]) => {
  const { telemetry, ended } = await open();
  follow(telemetry).end({ ...HOW, status });
  const [span] = await ended();
  expect(span?.status).toEqual({ code });
  expect(span?.attributes).toMatchObject({ 'http.response.status_code': status });
  expect(span?.attributes['error.type']).toBe(type);
});

test('[Decision 33] an error has only its code', async () => {
  const { telemetry, ended, collector } = await open();
  const { trace, end } = follow(telemetry);
  const failing = [new OmpError('rate_limited', 'secret'), new Error('secret'), new Error('secret')];
  const gone = callWith(trace, AbortSignal.abort());
  for (const [i, error] of failing.entries()) {
    const call = i === 2 ? gone : callWith(trace);
    await expect(telemetry.call(SEARCH, call, () => Promise.reject(error))).rejects.toBe(error);
  }
  end(HOW);
  const spans = (await ended()).slice(0, 3);
  expect(spans.map(({ attributes }) => attributes['error.type'])).toEqual([
    'rate_limited',
    'provider_error',
    'aborted',
  ]);
  for (const { status, events } of spans) expect({ status, events }).toEqual({ status: { code: FAILED }, events: [] });
  expect(collector.bodies.join()).not.toContain('secret');
});

test('the call of a child span has all fields, and creates no signal', async () => {
  const { telemetry } = await open();
  const { trace } = follow(telemetry);
  const made = vi.spyOn(globalThis, 'AbortController');
  onTestFinished(() => made.mockRestore());
  const outer = callWith(trace);
  await telemetry.call(SEARCH, outer, async (call) => {
    expect(made).not.toHaveBeenCalled();
    expect(call).toMatchObject({ requestId: 'r1', caller: GATEWAY, trace: { id: trace?.id } });
    expect(call.signal).toBe(outer.signal);
  });
  expect(outer.trace).toBe(trace);
});

test('[Decision 33] every traceparent of a client results in a valid trace', async () => {
  const { telemetry } = await open();
  fc.assert(
    fc.property(traceparents, fc.string({ maxLength: 2_000 }), (traceparent, tracestate) => {
      const { trace } = follow(telemetry, { traceparent, tracestate });
      const headers = trace?.headers() ?? {};
      expect(headers.traceparent).toMatch(TRACEPARENT);
      expect(headers.traceparent?.slice(3, 35)).toBe(trace?.id);
      const known = follow(propagateOnly, { traceparent }).trace;
      if (known) expect(trace?.id).toBe(known.id);
      else expect(traceparent).not.toContain(trace?.id);
      expect(headers.tracestate?.length ?? 0).toBeLessThanOrEqual(512);
    }),
    { numRuns: 500 },
  );
});

test.for([
  ['what the client does not record', { ratio: 1, flags: '00', sent: '00', recorded: 0 }],
  ['what the client records, whatever the ratio', { ratio: 0, flags: '01', sent: '01', recorded: 2 }],
  ['with ratio 0 what no client asks for', { ratio: 0, flags: undefined, sent: '00', recorded: 0 }],
] as const)('sampling: %s', async ([, { ratio, flags, sent, recorded }]) => {
  const { telemetry, ended } = await open({ ratio });
  const { trace, end } = follow(telemetry, flags ? { traceparent: `00-${ID}-${SPAN}-${flags}` } : {});
  const passed = await telemetry.call(SEARCH, callWith(trace), async (call) => call.trace?.headers());
  end(HOW);
  expect(passed?.traceparent).toMatch(TRACEPARENT);
  expect(passed?.traceparent?.slice(-2)).toBe(sent);
  if (flags) expect(trace?.id).toBe(ID);
  expect(await ended()).toHaveLength(recorded);
});

test('probes are not traced', async () => {
  const { telemetry, ended } = await open();
  const { trace, end } = follow(telemetry, GIVEN, true);
  expect(trace).toBeUndefined();
  end({ ...HOW, route: '/livez' });
  expect(await ended()).toEqual([]);
});

test('health checks and metrics scrapes are probes', async () => {
  const probes: boolean[] = [];
  const log: Log = { info() {}, warn() {}, error() {} };
  const telemetry: Telemetry = {
    ...NO_TELEMETRY,
    request: (_method, _header, isProbe) => {
      probes.push(isProbe);
      return UNOBSERVED;
    },
  };
  const options = { log, provider: 'memory', deadlineMs: 1_000, consistencyTokens: false, telemetry };
  const app = new Hono<Env>().use(callMiddleware(options));
  for (const path of ['/healthz', '/livez', '/readyz', '/metrics', '/memories', '/']) await app.request(path);
  expect(probes).toEqual([true, true, true, true, false, false]);
});

test('calls of the gateway itself are not traced', async () => {
  const { telemetry, ended } = await open();
  await telemetry.call(SEARCH, callWith(undefined), async (call) => expect(call.trace).toBeUndefined());
  expect(await ended()).toEqual([]);
});

test('[Decision 33] without tracing, a client’s trace context is propagated', async () => {
  const { telemetry } = await openTracing(undefined, { info: () => {}, warn: () => {}, error: () => {} });
  expect(telemetry).toBe(propagateOnly);
  const state = { tracestate: 'vendor=1' };
  expect(follow(propagateOnly, { ...GIVEN, ...state }).trace).toMatchObject({ id: ID });
  const { trace } = follow(propagateOnly, { ...GIVEN, ...state });
  const passed = await propagateOnly.call(SEARCH, callWith(trace), async (call) => call.trace?.headers());
  expect(passed).toEqual({ ...GIVEN, ...state });
  expect(follow(propagateOnly).trace).toBeUndefined();
  expect(follow(propagateOnly, { ...state, traceparent: `${GIVEN.traceparent}0` }).trace).toBeUndefined();
});

test('an outage of the collector is logged once at its start and once at its end', async () => {
  vi.stubEnv('OTEL_BSP_SCHEDULE_DELAY', '1');
  onTestFinished(() => void vi.unstubAllEnvs());
  const { telemetry, collector, lines, ended } = await open();
  collector.status = 400;
  for (const times of [1, 2, 3]) {
    follow(telemetry).end(HOW);
    await collector.asked(times);
  }
  collector.status = 200;
  while (collector.spans.length === 0) {
    follow(telemetry).end(HOW);
    await collector.asked(collector.bodies.length + 1);
  }
  await ended();
  expect(lines).toEqual([
    { level: 'warn', fields: { reason: 400 }, message: expect.stringContaining('OTEL_EXPORTER_OTLP_ENDPOINT') },
    { level: 'info', fields: {}, message: 'the collector accepts spans again' },
  ]);
});

test('a collector that is down is logged with the reason', async () => {
  vi.stubEnv('OTEL_BSP_SCHEDULE_DELAY', '1');
  vi.stubEnv('OTEL_EXPORTER_OTLP_TIMEOUT', '1000');
  onTestFinished(() => void vi.unstubAllEnvs());
  const { telemetry, lines } = await open({ url: 'http://127.0.0.1:1' });
  follow(telemetry).end(HOW);
  await eventually(() => expect(lines).toMatchObject([{ level: 'warn', fields: { reason: 'ECONNREFUSED' } }]));
});

test('dropped spans are logged once', async () => {
  vi.stubEnv('OTEL_BSP_MAX_QUEUE_SIZE', '4');
  vi.stubEnv('OTEL_BSP_MAX_EXPORT_BATCH_SIZE', '2');
  onTestFinished(() => void vi.unstubAllEnvs());
  const { telemetry, collector, lines, ended } = await open();
  for (const round of [1, 2, 3]) {
    for (let i = 0; i < 20; i++) follow(telemetry).end(HOW);
    await collector.asked(round * 2);
    await eventually(() => expect(collector.spans.length).toBeGreaterThanOrEqual(round * 4));
  }
  await ended();
  expect(lines.map(({ message }) => message)).toEqual([expect.stringContaining('Dropped')]);
});

test('the address of the collector may end with a slash', async () => {
  const collector = await openCollector();
  onTestFinished(collector.close);
  const { telemetry, close } = await open({ url: `${collector.url}//` });
  follow(telemetry).end(HOW);
  await close();
  expect(collector.spans).toHaveLength(1);
});

const read = (traceparent: string, tracestate?: string) => readTraceContext(headerOf({ traceparent, tracestate }));

test.for([
  ['recorded', `00-${ID}-${SPAN}-01`, `00-${ID}-${SPAN}-01`],
  ['not recorded', `00-${ID}-${SPAN}-00`, `00-${ID}-${SPAN}-00`],
  ['with unknown flags', `00-${ID}-${SPAN}-ff`, `00-${ID}-${SPAN}-ff`],
  ['of a later version', `cc-${ID}-${SPAN}-01`, `00-${ID}-${SPAN}-01`],
  ['of a later version with more fields', `cc-${ID}-${SPAN}-00-what-else`, `00-${ID}-${SPAN}-00`],
  ['of a later version with unknown flags', `01-${ID}-${SPAN}-fe`, `00-${ID}-${SPAN}-00`],
])('a trace %s is propagated', ([, given, passed]) => {
  expect(read(given ?? '')).toEqual({ id: ID, headers: { traceparent: passed } });
});

test.for([
  ['nothing', ''],
  ['an invalid version', `ff-${ID}-${SPAN}-01`],
  ['upper case', `00-${ID.toUpperCase()}-${SPAN}-01`],
  ['no trace', `00-${'0'.repeat(32)}-${SPAN}-01`],
  ['no span', `00-${ID}-${'0'.repeat(16)}-01`],
  ['more fields than version 00', `00-${ID}-${SPAN}-01-more`],
  ['a trailing dash', `00-${ID}-${SPAN}-01-`],
  ['more without a dash', `cc-${ID}-${SPAN}-01.more`],
  ['a short trace', `00-${ID.slice(1)}-${SPAN}-01`],
  ['a long span', `00-${ID}-${SPAN}0-01`],
  ['no flags', `00-${ID}-${SPAN}`],
  ['two at once, as a server joins them', `00-${ID}-${SPAN}-01, 00-${ID}-${SPAN}-01`],
])('%s is no trace context', ([, given]) => {
  expect(read(given ?? '')).toBeUndefined();
});

test('tracestate is propagated up to the required length', () => {
  const state = `a=${'x'.repeat(510)}`;
  expect(read(`00-${ID}-${SPAN}-01`, state)?.headers.tracestate).toBe(state);
  for (const dropped of [`${state}x`, '']) {
    expect(read(`00-${ID}-${SPAN}-01`, dropped)?.headers).not.toHaveProperty('tracestate');
  }
  expect(read('broken', state)).toBeUndefined();
});

test('OpenTelemetry reads the same headers equally', () => {
  const known = { get: (carrier: string) => carrier, keys: () => [] };
  const propagator = new W3CTraceContextPropagator();
  fc.assert(
    fc.property(traceparents, (given) => {
      const theirs = trace.getSpanContext(propagator.extract(ROOT_CONTEXT, given, known));
      const ours = read(given);
      expect(ours?.id).toBe(theirs?.traceId);
      if (!theirs) return;
      const passed = trace.getSpanContext(propagator.extract(ROOT_CONTEXT, ours?.headers.traceparent ?? '', known));
      expect(passed).toMatchObject({ traceId: theirs.traceId, spanId: theirs.spanId });
      expect((passed?.traceFlags ?? 0) & 1).toBe(theirs.traceFlags & 1);
    }),
    { numRuns: 2_000 },
  );
});
