import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { type AuditEntry, IDEMPOTENCY_TTL_MS } from '#contract';
import { createAuditLog } from '../../providers/memory/audit.ts';
import { createKeyUses } from '../../providers/memory/key-uses.ts';
import { createTimeBuckets } from '../../providers/memory/time-buckets.ts';
import { auditOf, call } from '../support/requests.ts';

const START = Date.parse('2025-01-01T00:00:00.000Z');
const DAY_MS = 86_400_000;
beforeEach(() => {
  vi.useFakeTimers({ toFake: ['Date'], now: START });
});
afterEach(() => {
  vi.useRealTimers();
});
const at = (ms: number) => vi.setSystemTime(START + ms);

describe('buckets', () => {
  it('[Decision 20] keep what is younger than the lifetime, and little that is older', () => {
    const buckets = createTimeBuckets(2_400, () => ({ items: [] as number[] }));
    for (let time = 0; time < 20_000; time += 10) {
      at(time);
      buckets.at(START + time).items.push(time);
      const kept = buckets.newestFirst().flatMap(({ items }) => items.toReversed());
      expect(kept).toEqual([...kept].sort((a, b) => b - a));
      expect(kept.at(-1)).toBeLessThanOrEqual(Math.max(0, time - 2_400));
      expect(kept.at(-1)).toBeGreaterThan(time - 2_400 - 100 - 10);
      expect(buckets.newestFirst().length).toBeLessThanOrEqual(25);
    }
    at(1e9);
    expect(buckets.newestFirst()).toEqual([]);
  });

  it('[Decision 11] without an end keep everything', () => {
    const buckets = createTimeBuckets(Number.POSITIVE_INFINITY, () => ({ items: [] as number[] }));
    for (const time of [0, DAY_MS, 1e12]) {
      at(time);
      buckets.at(START + time).items.push(time);
    }
    expect(buckets.newestFirst().flatMap(({ items }) => items)).toEqual([0, DAY_MS, 1e12]);
  });
});

describe('idempotency keys', () => {
  const key = { caller: 'c', kind: 'add', key: 'k' } as const;
  const use = (fingerprint: string) => ({ fingerprint, added: [] });

  it('[Decision 20] are remembered for 24 hours, to the millisecond', () => {
    const keys = createKeyUses();
    const [first, second] = [use('first'), use('second')];
    keys.set(key, first, []);
    at(IDEMPOTENCY_TTL_MS - 1);
    expect(keys.find(key)).toBe(first);
    at(IDEMPOTENCY_TTL_MS);
    expect(keys.find(key)).toBeUndefined();
    keys.set(key, second, []);
    at(2 * IDEMPOTENCY_TTL_MS - 1);
    expect(keys.find(key)).toBe(second);
  });

  it('[Decision 20] of callers are told apart also where their texts run together', () => {
    const keys = createKeyUses();
    for (const [caller, name] of [
      ['a', 'bc'],
      ['ab', 'c'],
      ['a,b', 'c'],
      ['a', 'b,c'],
      ['"a"', 'bc'],
    ] as const) {
      const [each, its] = [{ caller, kind: 'add', key: name } as const, use(`${caller}/${name}`)];
      expect(keys.find(each)).toBeUndefined();
      keys.set(each, its, []);
      expect(keys.find(each)).toBe(its);
      expect(keys.find({ ...each, kind: 'batch' })).toBeUndefined();
    }
  });
});

describe('the audit log of the memory provider', () => {
  const entry = (ms: number, more: Partial<AuditEntry> = {}): AuditEntry => ({
    timestamp: new Date(START + ms).toISOString(),
    app: 'a',
    action: 'get',
    user_id: 'u',
    memory_id: String(ms),
    scope: null,
    request_id: 'r',
    outcome: 'ok',
    ...more,
  });
  const read = async (log: ReturnType<typeof createAuditLog>, more: Parameters<typeof auditOf>[1] = {}) =>
    (await log.read(auditOf('u', more), call)).map(({ memory_id }) => memory_id);

  it('[Decision 11] is in order of time, whenever entries arrive; in one millisecond the last to arrive comes first', async () => {
    const log = createAuditLog({ retention_days: null });
    await log.record([entry(10), entry(30)], call);
    log.note(entry(20));
    await log.record([entry(5), entry(20, { memory_id: '20, later' })], call);
    expect(await read(log)).toEqual(['30', '20, later', '20', '10', '5']);
    expect(await read(log, { limit: 2 })).toEqual(['30', '20, later']);
    expect(await read(log, { since: entry(20).timestamp })).toEqual(['30', '20, later', '20']);
  });

  it('[Decision 11] forgets what is past its days, to the millisecond', async () => {
    const log = createAuditLog({ retention_days: 2 });
    for (const time of [0, 1, DAY_MS]) {
      at(time);
      log.note(entry(time));
    }
    const [first, second, third] = ['0', '1', String(DAY_MS)];
    at(2 * DAY_MS - 1);
    expect(await read(log)).toEqual([third, second, first]);
    at(2 * DAY_MS);
    expect(await read(log)).toEqual([third, second]);
    at(3 * DAY_MS);
    expect(await read(log)).toEqual([]);
    log.note(entry(3 * DAY_MS, { memory_id: 'new' }));
    expect(await read(log)).toEqual(['new']);
  });
});
