import { request } from 'node:http';
import { describe, expect, onTestFinished, test } from 'vitest';
import { type Backlog, Call, GATEWAY, OmpError, type Provider, type ProviderStats } from '#contract';
import type { Store } from '../../src/core/store.ts';
import type { BreakerState, Operation } from '../../src/core/telemetry.ts';
import { metricsOf } from '../../src/features/index.ts';
import { createRetention, RETENTION } from '../../src/features/retention/retention.ts';
import { openTelemetry } from '../../src/telemetry/telemetry.ts';
import { eventually } from '../support/eventually.ts';
import { expectError } from '../support/expect-error.ts';
import { hashingEmbedder } from '../support/hashing-embedder.ts';
import { knownCallers, type Rights } from '../support/known-callers.ts';
import { type ServerOptions, serverForTest, startServer } from '../support/server.ts';
import { freshUser, openSubject, recordingLog } from '../support/subject.ts';
import { readingOf, type Sample, samplesOf, sumOf, withLabels } from './exposition.ts';

const REQUESTS = 'omp_http_request_duration_seconds_count';
const BACKEND = 'omp_backend_request_duration_seconds_count';

async function openMeasured() {
  const telemetry = await openTelemetry({ metrics: true, tracing: undefined }, recordingLog());
  onTestFinished(telemetry.close);
  const samples = async (): Promise<Sample[]> => samplesOf((await telemetry.scrape?.())?.text ?? '');
  return { telemetry, samples };
}

async function startMeasured(options: ServerOptions = {}) {
  const { telemetry, samples } = await openMeasured();
  const server = await startServer({ telemetry, ...options });
  onTestFinished(server.close);
  return { ...server, samples };
}

test('without metrics nothing is measured', async () => {
  const { scrape } = await openTelemetry({ metrics: false, tracing: undefined }, recordingLog());
  expect(scrape).toBeUndefined();
});

describe('requests', () => {
  test('are counted by method, route template and status', async () => {
    const { client, samples } = await startMeasured();
    const user_id = freshUser();
    const { id } = await client.add({ user_id, content: 'x' });
    await client.get(id);
    await client.get(id);
    await client.search({ user_id, q: 'x' });
    await client.ask(client.byId('mem_nobody'));
    await client.tell('POST', '/memories', {});
    await client.ask('/docs/start.js');
    const counted = async () =>
      withLabels(await samples(), REQUESTS).map(({ labels, value }) => ({ ...labels, value }));
    const expected = [
      { method: 'POST', route: '/memories', status: '201', value: 1 },
      { method: 'GET', route: '/memories/:id', status: '200', value: 2 },
      { method: 'GET', route: '/memories/search', status: '200', value: 1 },
      { method: 'GET', route: '/memories/:id', status: '404', value: 1 },
      { method: 'POST', route: '/memories', status: '400', value: 1 },
      { method: 'GET', route: '/docs/start.js', status: '200', value: 1 },
    ];
    await eventually(async () => expect(new Set(await counted())).toEqual(new Set(expected)));
  });

  test('that are rejected by a middleware count for their route', async () => {
    const refuse = async () => {
      throw new OmpError('unauthorized', 'a key is needed');
    };
    const { client, samples } = await startMeasured({ authenticator: { authenticate: refuse } as never });
    await client.ask('/memories/search', { user_id: 'x', q: 'x' });
    await client.ask('/memories/some-id');
    await eventually(async () => {
      const routes = withLabels(await samples(), REQUESTS, { status: '401' }).map(({ labels }) => labels.route);
      expect(new Set(routes)).toEqual(new Set(['/memories/search', '/memories/:id']));
    });
  });

  test('with unknown methods and paths add no time series', async () => {
    const { client, samples } = await startMeasured();
    for (const method of ['GET', 'PROPFIND', 'LOCK', 'PURGE', 'DELETE']) {
      for (let i = 0; i < 5; i++) await client.raw(`/nowhere-${method}-${i}`, { method });
    }
    await eventually(async () => {
      const counted = withLabels(await samples(), REQUESTS);
      expect(counted.map(({ labels: { method, route } }) => `${method} ${route}`).sort()).toEqual([
        'DELETE unmatched',
        'GET unmatched',
        'other unmatched',
      ]);
      expect(sumOf(counted, REQUESTS)).toBe(25);
    });
  });

  test('are in flight until they are answered, and 499 if the client disconnects', async () => {
    let began = () => {};
    const begun = new Promise<void>((resolve) => {
      began = resolve;
    });
    const hang: Provider['get'] = (_ref, { signal }) =>
      new Promise((_, reject) => {
        signal.addEventListener('abort', () => reject(signal.reason));
        began();
      });
    const { url, samples } = await startMeasured({ alter: (provider) => ({ ...provider, get: hang }) });
    const leaving = request(`${url}/memories/some-id`).on('error', () => {});
    leaving.end();
    await begun;
    expect(readingOf(await samples(), 'omp_http_requests_in_flight')).toBe(1);
    leaving.destroy();
    await eventually(async () => {
      const now = await samples();
      expect(readingOf(now, 'omp_http_requests_in_flight')).toBe(0);
      expect(readingOf(now, REQUESTS, { route: '/memories/:id', status: '499' })).toBe(1);
    });
  });
});

describe('calls to a dependency', () => {
  const search: Operation = { kind: 'backend', dependency: 'postgres', name: 'search', reads: true };
  const callWith = (signal: AbortSignal): Call => new Call('r', GATEWAY, signal);
  const failing = (error: unknown) => async () => {
    throw error;
  };

  test('are counted by outcome', async () => {
    const { telemetry, samples } = await openMeasured();
    const calm = callWith(new AbortController().signal);
    const left = callWith(AbortSignal.abort(new OmpError('invalid_request', 'the client closed the connection')));
    const late = callWith(AbortSignal.abort(new OmpError('provider_error', 'too slow')));
    expect(await telemetry.call(search, calm, async () => 'found')).toBe('found');
    const limited = new OmpError('rate_limited', 'later');
    await expect(telemetry.call(search, calm, failing(limited))).rejects.toBe(limited);
    await expect(telemetry.call(search, calm, failing(new OmpError('invalid_request', 'no')))).rejects.toThrow('no');
    await expect(telemetry.call(search, calm, failing(new TypeError('bug')))).rejects.toThrow('bug');
    await expect(telemetry.call(search, left, failing(new Error('canceled')))).rejects.toThrow('canceled');
    await expect(telemetry.call(search, late, failing(new Error('canceled')))).rejects.toThrow('canceled');
    const counted = withLabels(await samples(), BACKEND, { provider: 'postgres', operation: 'search' });
    expect(Object.fromEntries(counted.map(({ labels, value }) => [labels.outcome, value]))).toEqual({
      ok: 1,
      rate_limited: 1,
      invalid_request: 1,
      provider_error: 2,
      client_gone: 1,
    });
  });

  test('to the embedding service are counted separately', async () => {
    const { telemetry, samples } = await openMeasured();
    const embed: Operation = { kind: 'embedding', dependency: 'openai', name: 'embed', reads: true };
    await telemetry.call(embed, callWith(new AbortController().signal), async () => []);
    const now = await samples();
    expect(readingOf(now, 'omp_embedding_request_duration_seconds_count', { service: 'openai', outcome: 'ok' })).toBe(
      1,
    );
    expect(withLabels(now, BACKEND)).toEqual([]);
  });
});

describe('gauges', () => {
  const gaugesOf = async (changes: Partial<Provider>, states: Record<string, BreakerState> = {}) => {
    const subject = await openSubject({ provider: 'memory', options: { scopes: 'native' } });
    onTestFinished(subject.close);
    const { telemetry, samples } = await openMeasured();
    const usage = { take: () => [], totals: () => ({ texts: 21, tokens: 34, texts_without_tokens: 3, requests: 8 }) };
    const embedder = {
      ...hashingEmbedder(),
      stats: () => ({ queue_length: 7, cache_hits: 5, cache_misses: 3 }),
      usage,
    };
    const breakers = () => new Map(Object.entries(states));
    const retention = { ...createRetention([]), stats: () => ({ deleted: 14, failed: 15, completed: 16_000 }) };
    const services = new Map([[RETENTION, retention]]);
    const store = { ...subject.provider, ...changes } as Store;
    const feed = { follow: () => Promise.reject(new Error('not asked')), followers: () => 17 };
    const features = metricsOf(services, { store, feed, log: recordingLog(), embedder, userLimits: undefined });
    telemetry.watch({ provider: store, embedder, breakers, features });
    return samples;
  };
  const STATS: ProviderStats = {
    connections: { open: 4, busy: 3, max: 8 },
    queue_length: 2,
  };
  const BACKLOG: Backlog = { queued: 11, indexing: 12, failed: 13 };

  test('show the current values', async () => {
    const states = { memory: 'closed', openai: 'half-open', other: 'open' } as const;
    const samples = await (await gaugesOf({ stats: () => STATS, backlog: async () => BACKLOG }, states))();
    const shown = (name: string, labels: Sample['labels'] = {}) => readingOf(samples, name, labels);
    expect(shown('omp_backend_connections', { provider: 'memory', state: 'open' })).toBe(4);
    expect(shown('omp_backend_connections', { state: 'busy' })).toBe(3);
    expect(shown('omp_backend_connections_max')).toBe(8);
    expect(shown('omp_backend_waiting_requests')).toBe(2);
    const ingestion = withLabels(samples, 'omp_ingestion_memories').map(({ labels, value }) => [labels.state, value]);
    expect(Object.fromEntries(ingestion)).toEqual(BACKLOG);
    expect(shown('omp_embedding_waiting_texts')).toBe(7);
    expect(shown('omp_query_cache_hits_total')).toBe(5);
    expect(shown('omp_query_cache_misses_total')).toBe(3);
    expect(shown('omp_embedding_texts_total')).toBe(21);
    expect(shown('omp_embedding_tokens_total')).toBe(34);
    expect(shown('omp_embedding_texts_without_tokens_total')).toBe(3);
    expect(shown('omp_embedding_requests_total')).toBe(8);
    expect(shown('omp_retention_deleted_total')).toBe(14);
    expect(shown('omp_retention_failed_total')).toBe(15);
    expect(shown('omp_retention_completed_timestamp_seconds')).toBe(16);
    expect(shown('omp_changes_followers')).toBe(17);
    expect(shown('omp_store_frozen_seconds')).toBe(0);
    expect(shown('omp_build_info', { provider: 'memory', node: process.version })).toBe(1);
    for (const [dependency, current] of Object.entries(states)) {
      for (const state of ['closed', 'half-open', 'open']) {
        expect(shown('omp_circuit_breaker_state', { dependency, state })).toBe(state === current ? 1 : 0);
      }
    }
  });

  test('ask the backend once, however often they are scraped', async () => {
    let asked = 0;
    const backlog = async () => {
      asked++;
      return BACKLOG;
    };
    const samples = await gaugesOf({ backlog });
    await Promise.all(Array.from({ length: 20 }, samples));
    await samples();
    expect(asked).toBe(1);
  });

  test.for([
    ['fails', () => Promise.reject(new Error('down'))],
    ['never answers', () => new Promise<Backlog>(() => {})],
  ] as const)('omit the backlog if the backend %s', async ([, backlog]) => {
    const samples = await (await gaugesOf({ stats: () => STATS, backlog }, { memory: 'open' }))();
    expect(withLabels(samples, 'omp_ingestion_memories')).toEqual([]);
    expect(readingOf(samples, 'omp_backend_waiting_requests')).toBe(2);
    expect(readingOf(samples, 'omp_circuit_breaker_state', { state: 'open' })).toBe(1);
    expect(readingOf(samples, 'omp_embedding_waiting_texts')).toBe(7);
    expect(withLabels(samples, 'process_resident_memory_bytes')).toHaveLength(1);
  });

  test('are absent before `watch`', async () => {
    const { samples } = await openMeasured();
    const names = new Set((await samples()).map(({ name }) => name));
    expect([...names].filter((name) => name.startsWith('omp_') && !/_(bucket|sum|count)$/.test(name))).toEqual([
      'omp_http_requests_in_flight',
    ]);
  });
});

test('[Decision 33] are served on the main port to whoever may read everything', async () => {
  const { telemetry } = await openMeasured();
  const callers = knownCallers();
  const server = await serverForTest({ authenticator: callers.authenticator, scrape: telemetry.scrape });
  const ask = (rights: Rights) => server.client.ask('/metrics', {}, callers.admit(rights));
  const { status, text, headers } = await ask({ grants: ['read:*'] });
  expect([status, headers.get('content-type')]).toEqual([200, expect.stringMatching(/^text\/plain; version=/)]);
  expect(text).toContain('# TYPE omp_http_requests_in_flight gauge');
  for (const rights of [
    { users: ['ana'] },
    { grants: ['read:a/*'] },
    { grants: ['write:*', 'delete:*'] },
    { grants: ['admin:*'] },
  ]) {
    expectError(await ask(rights), 'scope_denied');
  }
  const off = await serverForTest();
  expect(expectError(await off.client.ask('/metrics'), 'unsupported_capability').message).toContain('OMP_METRICS_PORT');
});
