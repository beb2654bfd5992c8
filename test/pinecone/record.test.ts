import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { Memory } from '#contract';
import type { Metadata } from '../../providers/pinecone/client/client.ts';
import { MAX_CONTENT_LENGTH, requireFits } from '../../providers/pinecone/client/client.ts';
import {
  changes,
  isEmbedded,
  toMemory,
  toMetadata,
  toVector,
} from '../../providers/pinecone/gateway-index/gateway-record.ts';
import { toValues } from '../../providers/pinecone/score.ts';
import { LIMITS } from '../../src/http/schemas.ts';
import { memoryOf } from '../support/requests.ts';
import { anyMemory, changed } from './any-memory.ts';

const onTheWire = (metadata: Metadata): Metadata => JSON.parse(JSON.stringify(metadata)) as Metadata;
const read = (metadata: Metadata) => toMemory('mem_1', onTheWire(metadata), 'model');
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
        expect(read(toMetadata(given, embedded))).toStrictEqual(given);
      }),
      { numRuns: 500 },
    );
  });

  it('hold nothing but strings, numbers, booleans and lists of strings that are not empty, under keys without $', () => {
    fc.assert(
      fc.property(
        anyMemory.chain((before) => fc.tuple(fc.constant(before), changed(before))),
        ([before, after]) => {
          for (const metadata of [toMetadata(before, false), changes(before, after, true)]) {
            for (const [key, value] of Object.entries(metadata)) {
              expect(key).toMatch(/^[^$]/);
              const list = Array.isArray(value) && value.length > 0 && value.every((one) => typeof one === 'string');
              expect(list || ['string', 'number', 'boolean'].includes(typeof value), key).toBe(true);
            }
          }
        },
      ),
      { numRuns: 300 },
    );
  });

  it('use the names of the protocol', () => {
    const metadata = toMetadata(
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
    expect(toMetadata(memory(), true)).toEqual({ content: 'text', user_id: 'u', created_at: time, updated_at: time });
  });
});

describe('changes', () => {
  const anyChange = anyMemory.chain((before) => fc.tuple(fc.constant(before), changed(before)));

  it('merged into what is stored give the changed memory, though no key can be removed', () => {
    fc.assert(
      fc.property(anyChange, ([before, after]) => {
        expect(read({ ...toMetadata(before, true), ...changes(before, after) })).toStrictEqual(after);
      }),
      { numRuns: 500 },
    );
  });

  it('can be made again and again, and each field can be emptied and filled', () => {
    fc.assert(
      fc.property(
        anyMemory.chain((first) => fc.tuple(fc.constant(first), fc.array(changed(first), { maxLength: 5 }))),
        ([first, versions]) => {
          let stored = toMetadata(first, true);
          for (const version of [...versions, first]) {
            stored = { ...stored, ...changes(read(stored) as Memory, version) };
            expect(read(stored)).toStrictEqual(version);
          }
        },
      ),
      { numRuns: 200 },
    );
  });

  it('name nothing that stays as it is', () => {
    const before = memory({ tags: ['a'], valid_to: time, confidence: 0.5, extensions: { 'x-a': [1], 'x-b': 2 } });
    expect(changes(before, before)).toEqual({});
    const after = { ...before, tags: [], valid_to: null, extensions: { 'x-a': [1], 'x-b': 3 } };
    expect(changes(before, after)).toEqual({ tags: [''], valid_to: '', 'x-b': '3' });
    expect(changes(before, { ...before, content: 'b' }, false)).toEqual({ content: 'b', embedded: false });
    expect(changes(before, { ...before, content: 'b' }, true)).toEqual({ content: 'b', embedded: true });
  });
});

describe('what is no memory of ours', () => {
  const whole = toMetadata(memory(), true);

  it.each(['content', 'user_id', 'created_at'])('is a record without %s', (key) => {
    const { [key]: _, ...rest } = whole;
    expect(toMemory('mem_1', rest, 'model')).toBeUndefined();
    for (const odd of ['', 7, true, ['text']])
      expect(toMemory('mem_1', { ...rest, [key]: odd }, 'model')).toBeUndefined();
  });

  it('may leave values in optional fields that mean nothing here', () => {
    const odd = { tags: 'a', source: '{', confidence: 'high', valid_to: 7, supersedes: true, 'x-a': '{', 'x-b': 7 };
    expect(toMemory('mem_1', { ...whole, ...odd, updated_at: 1 }, 'model')).toStrictEqual(memory());
  });
});

describe('the budget', () => {
  const bytes = (metadata: Metadata) => Buffer.byteLength(JSON.stringify(metadata));
  const fitting = (most: number, unit: string): Metadata => {
    const rest = toMetadata(memory({ content: '' }), true);
    return { ...rest, content: unit.repeat(Math.floor((most - bytes(rest)) / Buffer.byteLength(unit))) };
  };

  it('[SPEC Errors payload_too_large] is 38,000 bytes of UTF-8, and what exceeds it is told by how much', () => {
    const full = fitting(38_000, 'a');
    expect(bytes(full)).toBe(38_000);
    expect(() => requireFits(full)).not.toThrow();
    const over = { ...full, 'x-a': '' };
    expect(() => requireFits(over)).toThrow(
      expect.objectContaining({ code: 'payload_too_large', message: expect.stringMatching(/38009 .* 38000 /) }),
    );
    expect(() => requireFits({ ...fitting(38_000, '😀'), user_id: '😀😀' })).toThrow(/bytes/);
  });

  it('[SPEC Capabilities features.max_content_length] fits the longest content in any script, and the longest user', () => {
    const longest = memory({
      content: '😀'.repeat(MAX_CONTENT_LENGTH),
      user_id: '😀'.repeat(LIMITS.userId),
      confidence: 1 / 3,
      valid_from: time,
      valid_to: time,
    });
    expect(() => requireFits(toMetadata(longest, false))).not.toThrow();
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
    const { content: _, ...emptied } = changes(before, memory());
    expect(Object.keys(emptied)).toHaveLength(6);
    expect(bytes({ ...fitting(38_000, 'a'), ...emptied })).toBeLessThan(40_960);
  });
});

describe('vectors', () => {
  it('are never all zero in the index, and come back as they were', () => {
    const stored = (vector: Float32Array) => {
      const { values, embedded } = toValues(vector);
      return { values: [...values], metadata: onTheWire(toMetadata(memory(), embedded)) };
    };
    const nothing = stored(new Float32Array(3));
    expect(nothing.values).toEqual([1, 0, 0]);
    expect(isEmbedded(nothing.metadata)).toBe(false);
    expect(toVector(nothing)).toEqual(new Float32Array(3));
    const something = stored(Float32Array.of(0, -0.5, 0.25));
    expect(something.values).toEqual([0, -0.5, 0.25]);
    expect(isEmbedded(something.metadata)).toBe(true);
    expect(toVector(something)).toEqual(Float32Array.of(0, -0.5, 0.25));
  });

  it('of a text that gains a signal by a change say so', () => {
    const stored = { ...toMetadata(memory(), false), ...changes(memory(), memory({ content: 'b' }), true) };
    expect(isEmbedded(stored)).toBe(true);
  });
});
