import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { Service } from '../../providers/pinecone/client/client.ts';
import { connect } from '../../providers/pinecone/client/client.ts';
import { createRateLimit } from '../../providers/pinecone/mapped/mapped-list.ts';
import { openMapped } from '../../providers/pinecone/mapped/mapped-provider.ts';
import { Options } from '../../providers/pinecone/options.ts';
import { post } from '../pinecone-server/plain.ts';
import { type Pinecone, startPinecone } from '../pinecone-server/start.ts';
import { expectError } from '../support/expect-error.ts';
import { hashingEmbedder } from '../support/hashing-embedder.ts';
import { memoriesOf } from '../support/memories.ts';
import { call, callBy, listOf } from '../support/requests.ts';
import { freshUser, recordingLog, type Subject } from '../support/subject.ts';
import { fill, openExistingSubject } from './existing-subject.ts';

const namespace = 'mem0';
const OPTIONS = { preset: 'mem0', tags_field: 'labels', namespace };

let server: Pinecone;
let subject: Subject;
beforeAll(async () => {
  server = await startPinecone();
  subject = await openExistingSubject(server, OPTIONS);
});
afterAll(async () => {
  await subject.close();
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
const requests = async () => (await server.calls()).filter(({ operation }) => operation === 'fetch_by_metadata').length;

describe('the list of an index that others fill', () => {
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

  it('[Decision 2] pages neither repeat nor lose what is there throughout, while the owner adds and deletes', async () => {
    const user = freshUser();
    const ids = numbers(100, 130);
    await add(user, ids);
    const seen: string[] = [];
    let cursor: string | undefined;
    for (let page = 0; ; page++) {
      const { items, next_cursor } = await subject.client.list({ user_id: user, limit: 5, cursor });
      seen.push(...items.map(({ content }) => content));
      if (!next_cursor) break;
      cursor = next_cursor;
      await add(user, [`${page}-new`, `${999 - page}-new`]);
      // One that was shown, one that would come, and nothing else of the thirty.
      await remove([`${user}/${items[0]?.content}`, `${user}/${100 + page}`]);
    }
    const deleted = numbers(100, 106);
    expect(new Set(seen).size).toBe(seen.length);
    expect(seen.filter((content) => !content.endsWith('-new') && !deleted.includes(content))).toEqual(
      numbers(106, 130).reverse(),
    );
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
  let narrow: Subject;
  beforeAll(async () => {
    narrow = await openExistingSubject(server, { ...OPTIONS, max_listed: 5 });
  });
  afterAll(() => narrow.close());

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

describe('a list that changes while it is read', () => {
  it('has everything that was there throughout, once', async () => {
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
    const context = { embedder: hashingEmbedder(), log: recordingLog() };
    const provider = memoriesOf(await openMapped(moving, options, context), context.embedder);
    const found = (await provider.list(listOf(user, { limit: 1_000 }), call)).map(({ content }) => content);
    await provider.close();
    expect(pages).toBe(4);
    expect(new Set(found).size).toBe(found.length);
    const left = Object.keys(await server.records(namespace));
    const throughout = numbers(100, 400).filter((id) => left.includes(`${user}/${id}`));
    expect(throughout.length).toBeGreaterThan(290);
    expect(found).toEqual(expect.arrayContaining(throughout));
  });
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
    const gateway = await openExistingSubject(limited, OPTIONS);
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
    const waiting = waitForRate(callBy({}, { signal: ending.signal }));
    const reason = new Error('the client went away');
    ending.abort(reason);
    await expect(waiting).rejects.toBe(reason);
  });
});
