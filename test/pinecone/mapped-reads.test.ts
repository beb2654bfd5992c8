import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import { toTime } from '#provider';
import { connect, type Service } from '../../providers/pinecone/client/client.ts';
import { createRateLimit } from '../../providers/pinecone/mapped/rate-limit.ts';
import { Options } from '../../providers/pinecone/pinecone-options.ts';
import { callOf } from '../embedding/observed-embedder.ts';
import { post } from '../pinecone-server/plain.ts';
import { type Pinecone, startPinecone } from '../pinecone-server/start.ts';
import { expectError } from '../support/expect-error.ts';
import { hashingEmbedder } from '../support/hashing-embedder.ts';
import { call, listOf, searchFor } from '../support/requests.ts';
import { freshUser, type Subject } from '../support/subject.ts';
import { fill, openMappedStore, openMappedSubject, silentText } from './mapped-subject.ts';

describe('lists', () => {
  const namespace = 'mem0';
  const OPTIONS = { preset: 'mem0', tags_field: 'labels', namespace };

  let server: Pinecone;
  let subject: Subject;
  let narrow: Subject;
  beforeAll(async () => {
    server = await startPinecone();
    subject = await openMappedSubject(server, OPTIONS);
    narrow = await openMappedSubject(server, { ...OPTIONS, max_listed: 5 });
  });
  afterAll(async () => {
    await subject.close();
    await narrow.close();
    await server.close();
  });

  const recordOf = (user: string, id: string, more: object = {}) => ({
    id: `${user}/${id}`,
    text: `memory ${id}`,
    metadata: { data: id, user_id: user, ...more },
  });
  const add = (user: string, ids: readonly string[], more: object = {}) =>
    fill(
      server,
      namespace,
      ids.map((id) => recordOf(user, id, more)),
    );
  const remove = (ids: readonly string[]) => post(server, '/vectors/delete', { ids, namespace });
  const numbers = (from: number, to: number) => Array.from({ length: to - from }, (_, index) => String(from + index));
  const contentsOf = async (query: { user_id: string; [name: string]: string | number }) =>
    (await subject.client.list(query)).items.map(({ content }) => content);
  const requests = async () =>
    (await server.calls()).filter(({ operation }) => operation === 'fetch_by_metadata').length;

  describe('the list of a mapped index', () => {
    it('[Decision 1] is by time, whatever form it has, then by id, both descending', async () => {
      const user = freshUser();
      const times: Record<string, unknown> = {
        a: '2025-03-01T08:30:15.123456-08:00',
        b: '2025-03-01T16:30:15.122Z',
        c: 1_740_846_615.123,
        d: '2025-03-02',
        e: 1_740_846_615_124,
        f: 'no time',
        g: '1970-01-01T00:00:00.001Z',
      };
      for (const [id, created_at] of Object.entries(times)) await add(user, [id], { created_at });
      await add(user, ['h']);
      expect(await contentsOf({ user_id: user })).toEqual(['d', 'e', 'c', 'a', 'b', 'g', 'h', 'f']);

      const since = '2025-03-01T16:30:15.123Z';
      expect(await contentsOf({ user_id: user, since })).toEqual(['d', 'e', 'c', 'a']);
      expect(await contentsOf({ user_id: user, until: since })).toEqual(['c', 'a', 'b', 'g', 'h', 'f']);
      expect(await contentsOf({ user_id: user, since, until: since })).toEqual(['c', 'a']);
      expect(await contentsOf({ user_id: user, since: '2026-01-01' })).toEqual([]);
    });

    it('[SPEC GET /memories tag] a string is one tag, and a list as many as it has', async () => {
      const user = freshUser();
      await add(user, ['one'], { labels: 'home' });
      await add(user, ['two'], { labels: ['work', 'home'] });
      await add(user, ['none'], { labels: 7 });
      expect((await contentsOf({ user_id: user, tag: 'home' })).sort()).toEqual(['one', 'two']);
      expect(await contentsOf({ user_id: user, tag: 'work' })).toEqual(['two']);
      const { items } = await subject.client.list({ user_id: user });
      const tags = items.map(({ content, tags }) => [content, tags]);
      expect(Object.fromEntries(tags)).toEqual({ one: ['home'], two: ['work', 'home'], none: [] });
    });

    it('[SPEC GET /memories] all are read, as many at a time as 4 MB hold of the largest', async () => {
      const user = freshUser();
      const records = numbers(100, 300).map((id) => recordOf(user, id, { padding: 'x'.repeat(40_000) }));
      await fill(server, namespace, records, 40);
      await server.resetCalls();
      const { items } = await subject.client.list({ user_id: user, limit: 500 });
      expect(items).toHaveLength(200);
      expect(await requests()).toBe(3);
    });

    it('[SPEC Errors provider_error] what fails is an error, not a short list', async () => {
      const user = freshUser();
      await add(user, numbers(0, 200));
      for (const kind of ['404', '400', '500'] as const) {
        await server.fail({ operation: 'fetch_by_metadata', kind, times: 0 });
        expectError(await subject.client.ask('/memories', { user_id: user }), 'provider_error');
        await server.clearFaults();
      }
      expect(await contentsOf({ user_id: user, limit: 500 })).toHaveLength(200);
    });
  });

  describe('more memories than may be sorted', () => {
    it('[SPEC Errors unsupported_capability] are an error that says how many, never a part of them', async () => {
      const user = freshUser();
      await add(user, numbers(0, 5));
      expect((await narrow.client.list({ user_id: user })).items).toHaveLength(5);
      await add(user, ['5'], { labels: ['rare'] });
      for (const query of [{}, { limit: 1 }, { since: '2020-01-01' }]) {
        const error = expectError(
          await narrow.client.ask('/memories', { user_id: user, ...query }),
          'unsupported_capability',
        );
        expect(error).toMatchObject({ provider: 'pinecone', message: expect.stringMatching(/\b5\b.*tag/) });
      }
      const { items } = await narrow.client.list({ user_id: user, tag: 'rare' });
      expect(items.map(({ content }) => content)).toEqual(['5']);
      expect(await narrow.client.search({ user_id: user, q: '5', limit: 100 })).toHaveLength(6);
      expect((await narrow.client.list({ user_id: freshUser() })).items).toEqual([]);
    });

    it('do not include what is no memory of the user', async () => {
      const user = freshUser();
      await add(user, numbers(0, 3));
      await add(user, ['textless', 'silent'], { data: '' });
      expect((await narrow.client.list({ user_id: user })).items).toHaveLength(3);
    });
  });

  it('a list that changes while it is read has everything that was there throughout, once', async () => {
    const user = freshUser();
    await add(user, numbers(100, 400));
    const options = Options.parse({ api_key: 'key', index_host: server.url, ...OPTIONS });
    const service = connect(options);
    let pages = 0;
    const moving: Service = {
      ...service,
      async fetchByMetadata(...asked) {
        const page = await service.fetchByMetadata(...asked);
        if (page && page.records.length > 1) {
          pages += 1;
          await add(user, [`${pages}-new`, `9${pages}-new`]);
          await remove([`${user}/${100 + pages}`, page.records[0]?.id ?? '']);
          // As if a record had moved from one page to the next.
          return { ...page, records: [...page.records, page.records[1] as (typeof page.records)[number]] };
        }
        return page;
      },
    };
    const provider = await openMappedStore(moving, options);
    const found = (await provider.list(listOf(user, { limit: 1_000 }), call)).map(({ content }) => content);
    await provider.close();
    // One at the start, four of the list.
    expect(pages).toBe(5);
    expect(new Set(found).size).toBe(found.length);
    const left = Object.keys(await server.records(namespace));
    const throughout = numbers(100, 400).filter((id) => left.includes(`${user}/${id}`));
    expect(throughout.length).toBeGreaterThan(290);
    expect(found).toEqual(expect.arrayContaining(throughout));
  });

  describe('the pace', () => {
    it('[SPEC Errors rate_limited] keeps lists below the five requests a second that Pinecone takes', async () => {
      const limited = await startPinecone({ rateLimits: true });
      const user = freshUser();
      await fill(
        limited,
        namespace,
        numbers(0, 250).map((id) => recordOf(user, id)),
      );
      const gateway = await openMappedSubject(limited, OPTIONS);
      await limited.resetCalls();
      const lists = await Promise.all([1, 2, 3].map(() => gateway.client.list({ user_id: user, limit: 500 })));
      expect(lists.map(({ items }) => items.length)).toEqual([250, 250, 250]);
      expect((await limited.calls()).map(({ status }) => status)).toEqual(Array(9).fill(200));
      await gateway.close();
      await limited.close();
    });

    it('[SPEC Errors rate_limited] tells a crowd when to come back, and does not make it wait', async () => {
      const waitForRate = createRateLimit({ count: 2, window_ms: 60_000, longest_wait_ms: 1_000 });
      await waitForRate(call);
      await waitForRate(call);
      for (let turn = 0; turn < 3; turn++) {
        await expect(waitForRate(call)).rejects.toMatchObject({
          code: 'rate_limited',
          provider: 'pinecone',
          retryAfter: 60,
        });
      }
    });

    it('ends with the call', async () => {
      const waitForRate = createRateLimit({ count: 1, window_ms: 60_000, longest_wait_ms: 120_000 });
      await waitForRate(call);
      const ending = new AbortController();
      const waiting = waitForRate(callOf(ending.signal));
      const reason = new Error('the client went away');
      ending.abort(reason);
      await expect(waiting).rejects.toBe(reason);
    });
  });
});

describe('searches', () => {
  const METRICS = ['cosine', 'dotproduct', 'euclidean'] as const;
  const namespace = 'docs';
  const OPTIONS = { preset: 'mem0', namespace };

  const servers = new Map<string, Pinecone>();
  const subjects = new Map<string, Subject>();
  beforeAll(async () => {
    await Promise.all(
      METRICS.map(async (metric) => {
        const server = await startPinecone({ metric });
        servers.set(metric, server);
        subjects.set(metric, await openMappedSubject(server, OPTIONS));
      }),
    );
  });
  afterAll(async () => {
    for (const subject of subjects.values()) await subject.close();
    await Promise.all([...servers.values()].map((server) => server.close()));
  });
  const on = (metric: (typeof METRICS)[number]) => ({
    server: servers.get(metric) as Pinecone,
    client: (subjects.get(metric) as Subject).client,
  });

  const recordOf = (user: string, text: string, more: object = {}) => ({
    id: `${user}/${text.replaceAll(' ', '-')}`,
    text,
    metadata: { data: text, user_id: user, ...more },
  });
  const TEXTS = [
    'green tea in the morning',
    'green tea',
    'black coffee',
    'a red van',
    'the morning train',
    'gardening',
  ];
  const embedder = hashingEmbedder();
  /** Truth: the cosines of all texts. */
  async function ranked(query: string): Promise<{ text: string; score: number }[]> {
    const vectors = await embedder.embed([query, ...TEXTS], 'document', call);
    const [asked = new Float32Array(), ...rest] = vectors;
    const dot = (a: Float32Array, b: Float32Array) => a.reduce((sum, value, at) => sum + value * (b[at] ?? 0), 0);
    const cosine = (other: Float32Array) => dot(asked, other) / Math.sqrt(dot(asked, asked) * dot(other, other));
    return TEXTS.map((text, at) => ({ text, score: Math.max(0, cosine(rest[at] as Float32Array)) }));
  }

  describe('search in a mapped index', () => {
    it.each(METRICS)('[SPEC SearchResult score] is the cosine where the metric is %s', async (metric) => {
      const { server, client } = on(metric);
      const user = freshUser();
      await fill(
        server,
        namespace,
        TEXTS.map((text) => recordOf(user, text)),
      );
      const truth = new Map((await ranked('green tea in the evening')).map(({ text, score }) => [text, score]));
      const hits = await client.search({ q: 'green tea in the evening', user_id: user });
      expect(hits.map(({ memory }) => memory.content).sort()).toEqual(TEXTS.toSorted());
      for (const { memory, score } of hits) expect(score).toBeCloseTo(truth.get(memory.content) as number, 2);
      const scores = hits.map(({ score }) => score);
      expect(scores).toEqual(scores.toSorted((a, b) => b - a));
      expect(scores[0]).toBeGreaterThan(0.5);
      expect(scores.at(-1)).toBe(0);
    });

    it('[SPEC GET /memories/search order] ties, and all that is unlike, are in the order of the list', async () => {
      const { server, client } = on('cosine');
      const user = freshUser();
      const at = (id: string, created_at: string) => ({
        id: `${user}/${id}`,
        text: 'green tea',
        metadata: { data: id, user_id: user, created_at },
      });
      await fill(server, namespace, [at('a', '2025-01-02'), at('b', '2025-01-03'), at('c', '2025-01-02')]);
      for (const q of ['green tea', 'zzzz qqqq']) {
        const hits = await client.search({ q, user_id: user });
        expect(hits.map(({ memory }) => memory.content)).toEqual(['b', 'c', 'a']);
      }
    });

    it('[Decision 12] a query without any signal is like nothing, whatever the metric says', async () => {
      const silent = await silentText();
      for (const metric of METRICS) {
        const { server, client } = on(metric);
        const user = freshUser();
        await fill(server, namespace, [recordOf(user, 'green tea'), recordOf(user, 'black coffee')]);
        const hits = await client.search({ q: silent, user_id: user });
        expect(hits.map(({ memory, score }) => [memory.content, score])).toEqual([
          ['green tea', 0],
          ['black coffee', 0],
        ]);
      }
    });

    it('[SPEC GET /memories/search limit] records that are no memories take no place', async () => {
      const { server, client } = on('cosine');
      const user = freshUser();
      const textless = Array.from({ length: 150 }, (_, at) => ({
        id: `${user}/textless-${at}`,
        text: 'green tea',
        metadata: { user_id: user },
      }));
      await fill(server, namespace, [...textless, ...TEXTS.map((text) => recordOf(user, `${text}!`))]);
      await server.resetCalls();
      const hits = await client.search({ q: 'green tea', user_id: user, limit: 3 });
      expect(hits.map(({ memory }) => memory.content)).toEqual([
        'green tea!',
        'green tea in the morning!',
        expect.any(String),
      ]);
      // 3, 12, 48, and 192 without metadata, fetched by the hundred.
      const operations = (await server.calls()).map(({ operation }) => operation);
      expect(operations).toEqual(['query', 'query', 'query', 'query', 'fetch', 'fetch']);
      expect(await client.search({ q: 'green tea', user_id: user, limit: 100 })).toHaveLength(TEXTS.length);
    });

    it('[SPEC GET /memories/search limit] the usual search is one request; answers stay below 4 MB', async () => {
      const { server, client } = on('cosine');
      const user = freshUser();
      const bytes = Buffer.byteLength(JSON.stringify(recordOf(user, 'text 100', { padding: '' }).metadata));
      const records = Array.from({ length: 100 }, (_, at) =>
        recordOf(user, `text ${100 + at}`, { padding: 'x'.repeat(40_960 - bytes) }),
      );
      await fill(server, namespace, records, 40);
      for (const limit of [1, 94, 95, 96, 100]) {
        await server.resetCalls();
        expect(await client.search({ q: 'text', user_id: user, limit })).toHaveLength(limit);
        const operations = (await server.calls()).map(({ operation }) => operation);
        expect(operations).toEqual(limit <= 95 ? ['query'] : ['query', 'fetch']);
      }
    });

    it('[SPEC GET /memories/search limit] ids that Pinecone cannot be asked for are shown all the same', async () => {
      const { server, client } = on('cosine');
      const user = freshUser();
      const records = Array.from({ length: 100 }, (_, at) => recordOf(user, `text ${at}`));
      await fill(
        server,
        namespace,
        records.map((record, at) => (at % 2 ? record : { ...record, id: `${user} ${at}` })),
      );
      for (const limit of [95, 96, 100]) {
        const hits = await client.search({ q: 'text', user_id: user, limit });
        expect(new Set(hits.map(({ memory }) => memory.id)).size).toBe(limit);
      }
      expect((await client.list({ user_id: user, limit: 500 })).items).toHaveLength(100);
      expectError(await client.ask(client.byId(`${user} 0`)), 'not_found');
    });

    it('[SPEC Errors invalid_request] says so where Pinecone shows too little to fill the page', async () => {
      const { server } = on('cosine');
      const user = freshUser();
      const options = Options.parse({ api_key: 'key', index_host: server.url, ...OPTIONS });
      const service = connect(options);
      const asked: number[] = [];
      const textless: Service = {
        ...service,
        async query(_, { topK }) {
          asked.push(topK);
          const match = (at: number) => ({ id: `gone-${at}`, score: 1, metadata: undefined });
          return { matches: Array.from({ length: topK }, (_, at) => match(at)), indexedLsn: undefined };
        },
        fetch: async () => new Map(),
      };
      const provider = await openMappedStore(textless, options);
      asked.length = 0;
      const search = provider.search(searchFor(user, 'green tea'), call);
      await expect(search).rejects.toMatchObject({ code: 'invalid_request' });
      expect(asked).toEqual([10, 40, 160, 640, 2_560, 10_000]);
      await provider.close();
    });
  });
});

describe('times', () => {
  // Not UTC, so that what is read in the time zone of the machine shows.
  beforeAll(() => {
    vi.stubEnv('TZ', 'America/New_York');
    expect(new Date('2025-03-01T00:00').getTimezoneOffset()).toBe(300);
  });
  afterAll(() => void vi.unstubAllEnvs());

  describe('the times of a mapped index', () => {
    it.each([
      ['2025-03-01T16:30:15.123Z', '2025-03-01T16:30:15.123Z'],
      ['2025-03-01T16:30:15Z', '2025-03-01T16:30:15.000Z'],
      ['2025-03-01T16:30Z', '2025-03-01T16:30:00.000Z'],
      ['2025-03-01t16:30:15.9z', '2025-03-01T16:30:15.900Z'],
      ['2025-03-01T08:30:15.123456-08:00', '2025-03-01T16:30:15.123Z'],
      ['2025-03-01T22:00:15.123999+0530', '2025-03-01T16:30:15.123Z'],
      ['2025-03-01T17:30:15+01', '2025-03-01T16:30:15.000Z'],
      ['2025-03-01 16:30:15.123456+00:00', '2025-03-01T16:30:15.123Z'],
      ['2025-03-01 16:30:15 +00:00', '2025-03-01T16:30:15.000Z'],
      ['2025-03-01T16:30:15,5Z', '2025-03-01T16:30:15.500Z'],
      [' 2025-03-01T16:30:15Z ', '2025-03-01T16:30:15.000Z'],
      // Without an offset: UTC, wherever this machine is.
      ['2025-03-01T16:30:15.123456', '2025-03-01T16:30:15.123Z'],
      ['2025-03-01 16:30', '2025-03-01T16:30:00.000Z'],
      ['2025-03-01', '2025-03-01T00:00:00.000Z'],
      ['0001-01-01', '0001-01-01T00:00:00.000Z'],
      // Seconds, with or without a fraction, and milliseconds.
      [1_740_846_615, '2025-03-01T16:30:15.000Z'],
      [1_740_846_615.123, '2025-03-01T16:30:15.123Z'],
      [1_740_846_615_123, '2025-03-01T16:30:15.123Z'],
      [99_999_999_999, '5138-11-16T09:46:39.000Z'],
      [100_000_000_000, '1973-03-03T09:46:40.000Z'],
      [0, '1970-01-01T00:00:00.000Z'],
      [-86_400, '1969-12-31T00:00:00.000Z'],
    ])('%s is %s', (value, iso) => {
      expect(toTime(value)).toBe(iso);
    });

    it.each([
      undefined,
      '',
      'yesterday',
      '2025',
      '2025-03',
      '2025-13-01',
      '2025-03-01T25:00Z',
      '2025-03-01T16:30:15+99:00',
      '16:30:15Z',
      '1740846615',
      'March 1, 2025',
      '0000-12-31',
      '9999-12-31T23:59:59-01:00',
      Number.NaN,
      Number.POSITIVE_INFINITY,
      1e18,
      true,
      ['2025-03-01'],
    ])('%s names no moment', (value) => {
      expect(toTime(value)).toBeUndefined();
    });
  });
});
