import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { Memory } from '#contract';
import { toUnitHalf } from '#ranking';
import { MAX_CONTENT_LENGTH, METADATA_BUDGET, type Metadata } from '../../providers/pinecone/client/client.ts';
import { userFilter } from '../../providers/pinecone/filter.ts';
import { changes, toFields, toMetadata } from '../../providers/pinecone/gateway-index/gateway-record.ts';
import {
  createIds,
  createNamespaces,
  EARLIEST_MS,
  listOrder,
  parseId,
  timeOf,
  timePart,
  userPrefix,
} from '../../providers/pinecone/gateway-index/ids.ts';
import { measureOf } from '../../providers/pinecone/score.ts';
import { toMemory, toPoint } from '../../src/collections/points.ts';
import { LIMITS } from '../../src/verbs/fields.ts';
import { compileFilter } from '../pinecone-server/filter.ts';
import { score as asIndexed } from '../pinecone-server/score.ts';
import { memoryOf } from '../support/requests.ts';
import { anyMemory, changed } from './any-memory.ts';

describe('ids', () => {
  const SECRET = new Uint8Array(32).fill(1);
  const ids = createIds(SECRET);
  const LATEST_MS = 2 ** 48 - 1;
  const time = fc.integer({ min: EARLIEST_MS, max: LATEST_MS });
  const user = fc.string({ minLength: 1, unit: 'binary' });

  describe('ids in the gateway’s index', () => {
    it('[SPEC Memory id] are mem_ and 52 characters that need no escaping anywhere', () => {
      fc.assert(
        fc.property(user, time, (user_id, ms) => {
          const id = ids.make(user_id, ms);
          expect(id).toMatch(/^mem_[0-9a-v]{52}$/);
          expect(id.startsWith(userPrefix(ids.userPart(user_id)))).toBe(true);
          expect(parseId(id)).toEqual({ userPart: ids.userPart(user_id), created_ms: ms });
          expect(timeOf(id)).toBe(timePart(ms));
        }),
      );
    });

    it('begin alike for one user alone, and differently under another secret', () => {
      const users = Array.from({ length: 1_000 }, (_, i) => `user-${i}`);
      const parts = users.map((one) => ids.userPart(one));
      expect(new Set(parts).size).toBe(users.length);
      expect(parts).toEqual(users.map((one) => createIds(SECRET).userPart(one)));
      const others = createIds(new Uint8Array(32).fill(2));
      expect(users.filter((one) => others.userPart(one) === ids.userPart(one))).toEqual([]);
    });

    it('keep to the layout that indexes were filled with', () => {
      // HMAC-SHA-256 of "user:ana" under 32 bytes of 1, its first 15 bytes in base32hex, as another program computed them.
      expect(ids.userPart('ana')).toBe('6ssd2ep9ngdl128n09njknf8');
      expect(timePart(Date.UTC(2026, 0, 1))).toBe((LATEST_MS - 1_767_225_600_000).toString(16));
      expect(timePart(Date.UTC(2026, 0, 1))).toHaveLength(12);
    });

    it('never repeat, though made for one user in one millisecond', () => {
      const made = Array.from({ length: 10_000 }, () => ids.make('ana', EARLIEST_MS));
      expect(new Set(made).size).toBe(made.length);
    });

    it('are not made for a time before there were any, which lists do not look at', () => {
      expect(() => ids.make('ana', EARLIEST_MS - 1)).toThrow(RangeError);
      expect(() => ids.make('ana', LATEST_MS + 1)).toThrow(RangeError);
    });

    it('are distinguished from every other text', () => {
      const id = ids.make('ana', EARLIEST_MS);
      const others = ['', 'mem_', id.slice(1), id.slice(0, -1), `${id}0`, `${id}\n`, `\n${id}`, id.toUpperCase()];
      const changed = [
        id.replace('mem_', 'mem-'),
        `${id.slice(0, 4)}w${id.slice(5)}`,
        `${id.slice(0, 28)}g${id.slice(29)}`,
      ];
      for (const other of [...others, ...changed, `${id.slice(0, -1)}w`]) expect(parseId(other)).toBeUndefined();
    });
  });

  it('times in ids descend in byte order as time goes on', () => {
    fc.assert(fc.property(time, time, (a, b) => void expect(timePart(a) < timePart(b)).toBe(a > b)));
  });

  it('[Decision 1] the order of ids in a list is by time of making, then by id, both descending', () => {
    const few = fc.integer({ min: EARLIEST_MS, max: EARLIEST_MS + 3 });
    fc.assert(
      fc.property(fc.array(few, { maxLength: 30 }), (times) => {
        const made = times.map((ms) => ({ ms, id: ids.make('ana', ms) }));
        const expected = made.toSorted((a, b) => b.ms - a.ms || (a.id < b.id ? 1 : -1)).map(({ id }) => id);
        expect(made.map(({ id }) => id).sort(listOrder)).toEqual(expected);
        for (const { id } of made) expect(listOrder(id, id)).toBe(0);
      }),
    );
  });
});

describe('namespaces', () => {
  const ids = createIds(new Uint8Array(32));
  const parts = Array.from({ length: 2_000 }, (_, i) => ids.userPart(`user-${i}`));

  it.each([
    ['single', ['memories']],
    ['sharded', [...'0123456789abcdefghijklmnopqrstuv'].map((first) => `memories-${first}`)],
    ['per-user', parts.map((part) => `memories-${part}`)],
  ] as const)('of the layout "%s"; the record of the index is in the configured one', (layout, expected) => {
    const { base, of } = createNamespaces(layout, 'memories');
    expect(base).toBe('memories');
    expect(new Set(parts.map(of))).toEqual(new Set(expected));
    if (layout === 'sharded') expect(of('g0')).toBe('memories-g');
    if (layout === 'per-user') expect(parts.map(of)).toEqual(expected);
  });
});

describe('records', () => {
  const onTheWire = (metadata: Metadata): Metadata => JSON.parse(JSON.stringify(metadata)) as Metadata;
  const VECTORS = { true: Float32Array.of(1, 0), false: new Float32Array(2) };
  const written = (given: Memory, embedded = true): Metadata =>
    toMetadata('mem_1', toPoint(given, VECTORS[`${embedded}`], 'text').fields);
  const read = (metadata: Metadata) => {
    const fields = toFields('mem_1', onTheWire(metadata));
    return fields && toMemory({ fields }, 'model');
  };
  const time = '2026-01-02T03:04:05.678Z';
  const memory = (more: Partial<Memory> = {}): Memory => ({
    ...memoryOf('u', 'text'),
    id: 'mem_1',
    created_at: time,
    updated_at: time,
    embedding_model: 'model',
    status: 'done',
    ...more,
  });

  describe('metadata', () => {
    it('give back the memory they were made from, whatever it holds', () => {
      fc.assert(
        fc.property(anyMemory, fc.boolean(), (given, embedded) => {
          expect(read(written(given, embedded))).toStrictEqual(given);
        }),
        { numRuns: 500 },
      );
    });

    it('use the names of the protocol', () => {
      const metadata = written(
        memory({
          tags: ['a'],
          source: { app: 'app' },
          confidence: 0,
          valid_from: time,
          valid_to: time,
          supersedes: ['mem_0'],
          extensions: { 'x-a': { b: [null, 1] } },
        }),
        false,
      );
      expect(metadata).toEqual({
        content: 'text',
        user_id: 'u',
        created_at: time,
        updated_at: time,
        tags: ['a'],
        source: '{"app":"app"}',
        confidence: 0,
        valid_from: time,
        valid_to: time,
        supersedes: ['mem_0'],
        'x-a': '{"b":[null,1]}',
        embedded: false,
      });
    });

    it('leave out what is empty', () => {
      expect(written(memory())).toEqual({ content: 'text', user_id: 'u', created_at: time, updated_at: time });
    });
  });

  it('changes can be made again and again, and each field can be emptied and filled', () => {
    fc.assert(
      fc.property(
        anyMemory.chain((first) => fc.tuple(fc.constant(first), fc.array(changed(first), { maxLength: 5 }))),
        ([first, versions]) => {
          let stored = written(first);
          for (const version of [...versions, first]) {
            stored = { ...stored, ...changes(written(read(stored) as Memory), written(version)) };
            expect(read(stored)).toStrictEqual(version);
          }
        },
      ),
      { numRuns: 200 },
    );
  });

  describe('what is no memory', () => {
    const whole = written(memory());

    it.each(['content', 'user_id', 'created_at'])('is a record without %s', (key) => {
      const { [key]: _, ...rest } = whole;
      expect(read(rest)).toBeUndefined();
      for (const odd of ['', 7, true, ['text']]) expect(read({ ...rest, [key]: odd })).toBeUndefined();
    });

    it('may leave values in optional fields that mean nothing here', () => {
      const odd = { tags: 'a', source: '{', confidence: 'high', valid_to: 7, supersedes: true, 'x-a': '{', 'x-b': 7 };
      expect(read({ ...whole, ...odd, updated_at: 1 })).toStrictEqual(memory());
    });
  });

  describe('the budget', () => {
    const bytes = (metadata: Metadata) => Buffer.byteLength(JSON.stringify(metadata));
    const fitting = (most: number, unit: string): Metadata => {
      const rest = written(memory({ content: '' }));
      return { ...rest, content: unit.repeat(Math.floor((most - bytes(rest)) / Buffer.byteLength(unit))) };
    };

    it('[SPEC Capabilities features.max_content_length] fits the longest content in any script, and the longest user', () => {
      const longest = memory({
        content: '😀'.repeat(MAX_CONTENT_LENGTH),
        user_id: '😀'.repeat(LIMITS.userId),
        confidence: 1 / 3,
        valid_from: time,
        valid_to: time,
      });
      expect(bytes(written(longest, false))).toBeLessThanOrEqual(METADATA_BUDGET);
    });

    it('leaves the service room for every field that is emptied later', () => {
      const before = memory({
        tags: ['a'],
        source: {},
        confidence: 1,
        valid_from: time,
        valid_to: time,
        supersedes: ['b'],
      });
      const { content: _, ...emptied } = changes(written(before), written(memory()));
      expect(Object.keys(emptied)).toHaveLength(6);
      expect(bytes({ ...fitting(38_000, 'a'), ...emptied })).toBeLessThan(40_960);
    });
  });
});

describe('scores', () => {
  const METRICS = ['cosine', 'dotproduct', 'euclidean'] as const;
  const vector = fc
    .array(fc.integer({ min: -9, max: 9 }), { minLength: 6, maxLength: 6 })
    .map(toUnitHalf)
    .filter((made) => made.some((component) => component !== 0));

  describe.each(METRICS)('scores of an index by %s', (metric) => {
    it('are the same whether the index or this process computed them', () => {
      fc.assert(
        fc.property(vector, vector, (query, stored) => {
          expect(measureOf(metric, query)(stored)).toBeCloseTo(asIndexed[metric](query, stored), 6);
        }),
      );
    });
  });
});

describe('filters', () => {
  const user = fc.constantFrom('u', 'v', '', '$eq');
  const tags = fc.uniqueArray(fc.constantFrom('a', 'b', 'c', '$and', 'u', ''), { maxLength: 4 });

  it('the filter of a user finds exactly the records of that user that carry all of the tags', () => {
    fc.assert(
      fc.property(user, tags, user, tags, (asked, wanted, user_id, carried) => {
        const found = compileFilter(userFilter(asked, wanted))({
          user_id,
          ...(carried.length > 0 && { tags: carried }),
        });
        expect(found).toBe(asked === user_id && wanted.every((tag) => carried.includes(tag)));
      }),
      { numRuns: 1000 },
    );
  });
});
