import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import {
  createIds,
  EARLIEST_MS,
  listOrder,
  parseId,
  timeOf,
  timePart,
  userPrefix,
} from '../../providers/pinecone/gateway-index/ids.ts';

const SECRET = new Uint8Array(32).fill(1);
const ids = createIds(SECRET);
const LATEST_MS = 2 ** 48 - 1;
const time = fc.integer({ min: EARLIEST_MS, max: LATEST_MS });
const user = fc.string({ minLength: 1, unit: 'binary' });

describe('ids in an index of ours', () => {
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

  it('are told from every other text', () => {
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

describe('times in ids', () => {
  it('descend in byte order as time goes on', () => {
    fc.assert(fc.property(time, time, (a, b) => void expect(timePart(a) < timePart(b)).toBe(a > b)));
  });

  it('stay within what an id can name', () => {
    expect(timePart(-1)).toBe('ffffffffffff');
    expect(timePart(0)).toBe('ffffffffffff');
    expect(timePart(LATEST_MS)).toBe('000000000000');
    expect(timePart(Number.POSITIVE_INFINITY)).toBe('000000000000');
  });
});

describe('the order of ids in a list', () => {
  it('[Decision 1] is by time of making, then by id, both descending', () => {
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
