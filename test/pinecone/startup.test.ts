import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import type { Embedder, Finding, MaintenanceContext } from '#contract';
import type { Service } from '../../providers/pinecone/client/client.ts';
import { checkedMetric } from '../../providers/pinecone/startup.ts';
import { providerModule } from '../../src/registry.ts';
import { post } from '../pinecone-server/plain.ts';
import { type Fault, type Pinecone, startPinecone } from '../pinecone-server/start.ts';
import { hashingEmbedder } from '../support/hashing-embedder.ts';
import { holdTimers } from '../support/hold-timers.ts';
import { call, contextOf, listOf, memoryOf } from '../support/requests.ts';
import { openStoreOf } from '../support/stores.ts';
import { freshUser } from '../support/subject.ts';
import { type GatewayOptions, openGateway } from './gateways.ts';

describe('the description of the index', () => {
  const KEY = 'pcsk_very-secret';
  let server: Pinecone;
  beforeAll(async () => {
    server = await startPinecone();
  });
  afterAll(() => server?.close());
  afterEach(() => server.clearFaults());

  /** What the operator reads when the gateway does not start. */
  async function refusal(opening: Promise<{ close(): Promise<void> }>): Promise<string> {
    const error = await opening.then(
      async (opened) => {
        await opened.close();
        throw new Error('it opened');
      },
      (reason: unknown) => reason as Error,
    );
    expect(error.name).toBe('Error');
    expect(error.message).not.toContain(KEY);
    expect(error.message).not.toContain('127.0.0.1');
    return error.message;
  }

  let made = 0;
  const freshNamespace = () => `namespace-${++made}`;

  describe('the gateway’s index', () => {
    const markerOf = async (namespace: string) => (await server.records(namespace))['omp-index']?.metadata;

    it('is described once, by a record that no user finds', async () => {
      const namespace = freshNamespace();
      const first = await openGateway(server, { options: { namespace, layout: 'per-user' } });
      expect(await markerOf(namespace)).toEqual({
        layout_version: 1,
        layout: 'per-user',
        embedding_model: 'test-trigram-hashing',
        dimensions: 64,
        id_secret: expect.stringMatching(/^[0-9a-f]{64}$/),
      });
      await server.resetCalls();
      const second = await openGateway(server, { options: { namespace, layout: 'per-user' } });
      expect((await server.calls()).map(({ operation }) => operation)).toEqual(['stats', 'fetch']);
      await first.close();
      await second.close();
    });

    it('replicas that start at the same time on an empty index agree', async () => {
      const namespace = freshNamespace();
      await server.lag({ held: true });
      const spellings = [{}, { index_host: `${server.url}/` }, { index_host: `${server.url}//` }];
      const gateways = await Promise.all(
        spellings.map((spelling) => openGateway(server, { options: { namespace, ...spelling } })),
      );
      await server.lag({});
      await server.settle();
      const user = freshUser();
      const [first, second, third] = gateways as [(typeof gateways)[0], (typeof gateways)[0], (typeof gateways)[0]];
      const memory = await first.add({ input: memoryOf(user, 'the cat sleeps') }, call);
      expect(await second.list(listOf(user), call)).toEqual([memory]);
      expect(await third.list(listOf(user), call)).toEqual([memory]);
      for (const gateway of gateways) await gateway.close();
    });

    it('is found again with another API key', async () => {
      const namespace = freshNamespace();
      const before = await openGateway(server, { options: { namespace } });
      const user = freshUser();
      const memory = await before.add({ input: memoryOf(user, 'the cat sleeps') }, call);
      const after = await openGateway(server, {
        options: { namespace, api_key: 'rotated' },
      });
      expect(await after.list(listOf(user), call)).toEqual([memory]);
      await before.close();
      await after.close();
    });

    it('other keys and namespaces make other ids', async () => {
      const secretOf = async (api_key: string) => {
        const namespace = freshNamespace();
        const gateway = await openGateway(server, { options: { namespace, api_key } });
        await gateway.close();
        return (await markerOf(namespace))?.id_secret;
      };
      const secrets = [await secretOf('a'), await secretOf('a'), await secretOf('b')];
      expect(new Set(secrets).size).toBe(3);
    });

    describe('is refused', () => {
      const namespace = 'refusing';
      beforeAll(async () => {
        const gateway = await openGateway(server, { options: { namespace } });
        await gateway.close();
      });
      /** As somebody may have changed it. */
      const described = async (as: string, metadata: object) => {
        const marker = await markerOf(namespace);
        const values = [1, ...Array(63).fill(0)];
        const vectors = [{ id: 'omp-index', values, metadata: { ...marker, ...metadata } }];
        expect(await post(server, '/vectors/upsert', { namespace: as, vectors })).toMatchObject({ status: 200 });
        return openGateway(server, { options: { namespace: as } });
      };

      it.each<[what: string, given: GatewayOptions, parts: readonly string[]]>([
        [
          'another model made its vectors',
          { embedder: { ...hashingEmbedder(), model: 'another' } },
          ['"test-trigram-hashing"', '"another"', 'OMP_EMBEDDING_MODEL', 'OMP_PINECONE_NAMESPACE'],
        ],
        [
          'it is for vectors of another length',
          { embedder: hashingEmbedder(32) },
          ['64', '32', 'OMP_EMBEDDING_DIMENSIONS', 'PINECONE_INDEX_HOST'],
        ],
        [
          'it is laid out otherwise',
          { options: { layout: 'sharded' } },
          ['"single"', '"sharded"', 'OMP_PINECONE_LAYOUT'],
        ],
      ])('when %s, naming both and the settings', async (_, { options, ...more }, parts) => {
        const message = await refusal(openGateway(server, { options: { namespace, ...options }, ...more }));
        for (const part of parts) expect(message).toContain(part);
      });

      it.each([
        ['a newer version of the layout', { layout_version: 2 }, 'version 2'],
        ['no secret', { id_secret: '' }, 'id_secret'],
        ['half a secret', { id_secret: 'abcd' }, 'id_secret'],
      ])('when its description has %s', async (_, metadata, part) => {
        expect(await refusal(described(freshNamespace(), metadata))).toContain(part);
      });
    });
  });

  describe('an index that cannot be used', () => {
    const stats = (told: { dimension?: number; metric?: string }) =>
      ({ stats: async () => ({ dimension: undefined, metric: undefined, ...told }) }) as unknown as Service;
    const checked = (told: { dimension?: number; metric?: string }) =>
      checkedMetric(stats(told), { metric: 'euclidean' }, 64, call);

    it('is one of sparse vectors', async () => {
      await expect(checked({ metric: 'dotproduct' })).rejects.toThrow(/sparse/);
    });

    it('is one that measures in a way the gateway does not know', async () => {
      await expect(checked({ dimension: 64, metric: 'hamming' })).rejects.toThrow(/"hamming".*cosine/);
    });

    it('else it measures as it tells, and as configured where it tells nothing', async () => {
      expect(await checked({ dimension: 64, metric: 'dotproduct' })).toBe('dotproduct');
      expect(await checked({ dimension: 64 })).toBe('euclidean');
    });
  });

  describe('[Decision 16] what keeps the gateway from starting is said so that something can be done about it', () => {
    const open = (options: object, { embedder = hashingEmbedder() }: { embedder?: Embedder | undefined } = {}) =>
      openStoreOf('pinecone', { api_key: KEY, ...options }, contextOf({ embedder }));

    /** A deadline that passes when a test says so. */
    const HELD_MS = 3_599_999;
    const FAULTS: readonly (readonly [Fault['kind'], RegExp])[] = [
      ['401', /API key; check PINECONE_API_KEY/],
      ['403-text', /PINECONE_API_KEY/],
      ['404', /no Pinecone index at this address; check PINECONE_INDEX_HOST/],
      ['500', /Pinecone failed \(.*status 500.*try again/],
      ['429', /Pinecone failed \(.*status 429.*try again/],
      ['hang', /cannot be reached.*PINECONE_INDEX_HOST/],
      ['reset', /cannot be reached.*PINECONE_INDEX_HOST/],
      ['garbage', /not a Pinecone index; check PINECONE_INDEX_HOST/],
      ['empty', /not a Pinecone index; check PINECONE_INDEX_HOST/],
    ];
    it.each(FAULTS)('%s', async (kind, expected) => {
      const deadlines = holdTimers(HELD_MS);
      for (const operation of ['stats', 'fetch'] as const) {
        await server.fail({ operation, kind, times: 0 });
        const opening = open({ index_host: server.url, ...(kind === 'hang' && { timeout_ms: HELD_MS }) });
        const message = await refusal(deadlines.passUntil(opening));
        await server.clearFaults();
        expect(message).toMatch(expected);
      }
    });

    it('a server without TLS under an address without a scheme', async () => {
      const host = server.url.replace('http://', '');
      expect(await refusal(open({ index_host: host }))).toMatch(/needs http:\/\/ in PINECONE_INDEX_HOST/);
    });

    it('no embedder: keyword search alone is not to be had here', async () => {
      const opening = openStoreOf('pinecone', { api_key: KEY, index_host: server.url }, contextOf());
      expect(await refusal(opening)).toMatch(/OMP_SEARCH_MODE/);
    });
  });
});

describe('diagnosis', () => {
  const KEY = 'pcsk_very-secret';
  let server: Pinecone;
  let old: Pinecone;
  beforeAll(async () => {
    [server, old] = await Promise.all([startPinecone(), startPinecone({ apiVersion: '2025-01', lsn: false })]);
  });
  afterAll(() => Promise.all([server, old].map((each) => each?.close())));

  const look = async (options: object, more: Partial<MaintenanceContext> = {}): Promise<string[]> => {
    const context = contextOf({ embedder: hashingEmbedder(), ranking: { mode: 'vector', keyword_weight: 0 }, ...more });
    const { diagnose } = await providerModule('pinecone');
    const found = (await diagnose?.({ api_key: KEY, index_host: server.url, ...options }, context)) as Finding[];
    expect(JSON.stringify(found)).not.toMatch(/very-secret|127\.0\.0\.1/);
    return found.map(({ area, level, message }) => `${level} ${area}: ${message}`);
  };

  it('an index without a description is left without one', async () => {
    const namespace = 'untouched';
    await server.resetCalls();
    expect(await look({ namespace })).toEqual([
      'ok connection: the index on Pinecone answers, and measures by cosine; whether the key may write was not tried',
      'ok embedding: the vectors in the namespace "untouched" are none yet: the gateway records the model at its first start',
    ]);
    expect((await server.calls()).map(({ operation }) => operation)).toEqual(['stats', 'fetch']);
    expect(await server.records(namespace)).toEqual({});
  });

  it('the gateway’s index is compared with the embedder', async () => {
    const namespace = 'ours';
    await (await openGateway(server, { options: { namespace } })).close();
    expect(await look({ namespace })).toContain(
      'ok embedding: the vectors in the namespace "ours" are made by "test-trigram-hashing"',
    );
    expect(await look({ namespace }, { embedder: { ...hashingEmbedder(), model: 'another' } })).toEqual([
      expect.stringMatching(/^problem connection: .*"test-trigram-hashing".*"another"/),
    ]);
    expect(await look({ namespace }, { embedder: hashingEmbedder(32) })).toEqual([
      expect.stringMatching(/^problem connection: .*64 dimensions.*32/),
    ]);
    expect(await look({ namespace }, { embedder: undefined })).toEqual([
      'ok connection: the index on Pinecone answers; its vectors were not compared with the embedder, which does not answer',
    ]);
  });

  it('a mapped index gets the checks of the start', async () => {
    expect(await look({ preset: 'langchain', namespace: 'n' })).toEqual([
      'ok connection: the index on Pinecone answers, and measures by cosine',
      'ok mapping: its records can be found by "user_id"',
      'ok embedding: vectors of 64 dimensions; the index does not say whether "test-trigram-hashing" made them',
    ]);
    expect(await look({ preset: 'langchain', namespace: 'n', index_host: old.url })).toContain(
      'warning mapping: it has an API older than 2025-10 and cannot list the memories of a user',
    );
    expect(await look({ preset: 'mem0', namespace: 'n', writable: true })).toEqual([
      expect.stringMatching(/^problem connection: .*OMP_PINECONE_WRITABLE/),
    ]);
  });

  it('an index that does not answer is a problem with the advice of the start', async () => {
    const stopped = await startPinecone();
    await stopped.close();
    expect(await look({ index_host: stopped.url })).toEqual([
      expect.stringMatching(/^problem connection: Pinecone cannot be reached \(ECONNREFUSED\).*PINECONE_INDEX_HOST/),
    ]);
  });
});
