import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { type AuditAction, type AuditEntry, type AuditLog, Call, OmpError } from '#contract';
import { type AuditFacts, type AuditQueueOptions, openAuditQueue } from '../../src/core/audit-queue.ts';
import { callOf } from '../embedding/observed-embedder.ts';
import { auditOf, call, callBy, openMemory } from '../support/requests.ts';
import { recordingLog } from '../support/subject.ts';

beforeEach(() => {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'Date'], now: new Date('2025-01-01T00:00:00.000Z') });
});
afterEach(() => {
  vi.useRealTimers();
});

const FLUSH_MS = 1_000;
const factsOf = (scope: string | null = null): AuditFacts => ({ user_id: 'u', memory_id: null, scope });

/** An audit queue over the log of the memory provider. A test can make that log fail or wait. */
const openTrail = async (options: Partial<AuditQueueOptions> = {}) => {
  const { audit } = await openMemory();
  const written: (readonly AuditEntry[])[] = [];
  const log = recordingLog();
  const door: { enter: () => Promise<void> } = { enter: async () => {} };
  const behindDoor: AuditLog = {
    async record(entries, by) {
      await door.enter();
      written.push(entries);
      await (audit as AuditLog).record(entries, by);
    },
    read: (query, by) => (audit as AuditLog).read(query, by),
  };
  const auditQueue = openAuditQueue({ audit: behindDoor, record: 'all', log, ...options });
  const done = (action: AuditAction, scope: string | null = null, by = call) =>
    auditQueue.audited(action, factsOf(scope), by, async () => 'done');
  return { auditQueue, done, written, log, door };
};
/** Nobody gets through until the returned function is called. */
const shut = (door: { enter: () => Promise<void> }): (() => void) => {
  let open = () => {};
  const opened = new Promise<void>((resolve) => {
    open = resolve;
  });
  door.enter = () => opened;
  return open;
};
const scopes = (batches: readonly (readonly AuditEntry[])[]) => batches.map((batch) => batch.map(({ scope }) => scope));
const down = async () => Promise.reject(new OmpError('provider_error', 'down'));
const numbers = (from: number, to: number) => Array.from({ length: to - from }, (_, i) => `${from + i}`);

describe('without an audit log', () => {
  it('runs the work and has no read', async () => {
    const { auditQueue } = await openTrail({ audit: undefined });
    expect(auditQueue.read).toBeUndefined();
    expect(await auditQueue.audited('get', factsOf(), call, async () => 7)).toBe(7);
    await expect(auditQueue.audited('get', factsOf(), call, down)).rejects.toThrow('down');
    await auditQueue.close();
  });
});

describe('an audit entry', () => {
  it('is short and valid for every input, since one invalid entry would block all later ones', async () => {
    const { auditQueue, written } = await openTrail();
    const scope = '\u{1F600}'.repeat(512);
    const named = (memory_id: string): AuditFacts => ({ user_id: 'u', memory_id, scope });
    for (const id of ['x'.repeat(9_000), 'a\0b', 'c\ud800', `${'y'.repeat(1_023)}\u{1F600}`, 'mem_1']) {
      await auditQueue.audited('get', named(id), call, async () => 'done');
    }
    await auditQueue.close();
    const entries = written.flat();
    expect(entries.map(({ memory_id }) => memory_id)).toEqual([
      'x'.repeat(1_024),
      'ab',
      'c\ufffd',
      `${'y'.repeat(1_023)}\ufffd`,
      'mem_1',
    ]);
    expect(new Set(entries.map((entry) => entry.scope))).toEqual(new Set([scope]));
  });

  it('has the facts of the work, the caller and the time', async () => {
    const { auditQueue, written } = await openTrail();
    const by = new Call('r1', { id: 'test', app: 'somebody' });
    const result = await auditQueue.audited(
      'get',
      { user_id: null, memory_id: 'm', scope: null },
      by,
      async (facts) => {
        facts.user_id = 'u';
        facts.scope = 'a/b';
        return 'found';
      },
    );
    expect(result).toBe('found');
    await auditQueue.close();
    expect(written).toEqual([
      [
        {
          timestamp: '2025-01-01T00:00:00.000Z',
          app: 'somebody',
          action: 'get',
          user_id: 'u',
          memory_id: 'm',
          scope: 'a/b',
          request_id: 'r1',
          outcome: 'ok',
        },
      ],
    ]);
  });

  it.each([
    ['all', ['get', 'list', 'search', 'context', 'audit', 'list_keys', 'create_key', 'revoke_key']],
    ['writes', ['create_key', 'revoke_key']],
  ] as const)(
    'of what succeeds, recording %s, is %j: the provider enters changes of memories itself',
    async (record, entered) => {
      const { auditQueue, done, written } = await openTrail({ record });
      const verbs = ['add', 'get', 'update', 'list', 'delete', 'search', 'context', 'audit'] as const;
      for (const action of [...verbs, 'list_keys', 'create_key', 'revoke_key'] as const) {
        expect(await done(action)).toBe('done');
      }
      await auditQueue.close();
      expect(written.flat().map(({ action }) => action)).toEqual(entered);
    },
  );

  it.each(['all', 'writes'] as const)(
    'is written for every failure when recording %s, and the error is rethrown',
    async (record) => {
      const { auditQueue, written } = await openTrail({ record });
      const errors = [new OmpError('scope_denied', 'no'), new OmpError('not_found', 'gone'), new TypeError('a fault')];
      for (const [place, action] of (['add', 'get', 'search'] as const).entries()) {
        const error = errors[place] as Error;
        const failing = auditQueue.audited(action, factsOf(), call, () => Promise.reject(error));
        expect(await failing.catch((thrown: unknown) => thrown)).toBe(error);
      }
      await auditQueue.close();
      expect(written.flat().map(({ action, outcome }) => `${action} ${outcome}`)).toEqual([
        'add scope_denied',
        'get not_found',
        'search provider_error',
      ]);
    },
  );
});

describe('entries are written', () => {
  it('in a batch after a short delay', async () => {
    const { done, written } = await openTrail();
    for (const scope of ['1', '2', '3']) await done('get', scope);
    await vi.advanceTimersByTimeAsync(FLUSH_MS - 1);
    expect(written).toEqual([]);
    await vi.advanceTimersByTimeAsync(1);
    expect(scopes(written)).toEqual([['1', '2', '3']]);
    await vi.advanceTimersByTimeAsync(10 * FLUSH_MS);
    expect(written).toHaveLength(1);
  });

  it('at once when a batch is full, in order and without duplicates', async () => {
    const { auditQueue, done, written, door } = await openTrail();
    const open = shut(door);
    for (const scope of numbers(0, 234)) await done('get', scope);
    expect(written).toEqual([]);
    open();
    await auditQueue.read?.(auditOf('u'), call);
    expect(scopes(written)).toEqual([numbers(0, 100), numbers(100, 200), numbers(200, 234)]);
  });

  it('at once for each full batch, the rest after a delay', async () => {
    const { done, written } = await openTrail();
    for (const scope of numbers(0, 99)) await done('get', scope);
    await vi.advanceTimersByTimeAsync(0);
    expect(written).toEqual([]);
    await done('get', '99');
    await vi.advanceTimersByTimeAsync(0);
    await done('get', '100');
    expect(scopes(written)).toEqual([numbers(0, 100)]);
    await vi.advanceTimersByTimeAsync(FLUSH_MS);
    expect(scopes(written)).toEqual([numbers(0, 100), ['100']]);
  });

  it('in full batches, also if they come while another is written', async () => {
    const { done, written, door } = await openTrail();
    const open = shut(door);
    for (const scope of numbers(0, 100)) await done('get', scope);
    for (const scope of numbers(100, 230)) await done('get', scope);
    open();
    await vi.advanceTimersByTimeAsync(FLUSH_MS - 1);
    expect(scopes(written)).toEqual([numbers(0, 100), numbers(100, 200)]);
    await vi.advanceTimersByTimeAsync(FLUSH_MS);
    expect(scopes(written)).toEqual([numbers(0, 100), numbers(100, 200), numbers(200, 230)]);
  });

  it('in a retry after a failure of the backend, in order with later entries', async () => {
    const { done, written, door, log } = await openTrail();
    door.enter = down;
    await done('get', '1');
    await vi.advanceTimersByTimeAsync(FLUSH_MS);
    await done('get', '2');
    await vi.advanceTimersByTimeAsync(FLUSH_MS);
    expect(log.lines.map(({ level, fields }) => [level, (fields as { queue_length: number }).queue_length])).toEqual([
      ['warn', 1],
      ['warn', 2],
    ]);
    door.enter = async () => {};
    await vi.advanceTimersByTimeAsync(FLUSH_MS);
    expect(scopes(written)).toEqual([['1', '2']]);
    expect(log.lines).toHaveLength(2);
  });

  it('[Decision 11] up to a limit in bytes', async () => {
    const { auditQueue, log, door } = await openTrail();
    const open = shut(door);
    const text = 'a'.repeat(2_000);
    const by = callBy({ app: text });
    const note = () => auditQueue.audited('get', { user_id: text, memory_id: text, scope: text }, by, async () => {});
    for (let i = 0; i < 10_000; i++) await note();
    expect(log.lines.filter(({ level }) => level === 'error')).toHaveLength(1);
    open();
    // What was written makes room.
    await vi.advanceTimersByTimeAsync(FLUSH_MS);
    await auditQueue.close();
  });

  it('up to a limit while the backend is down: the oldest stay queued, and the log counts the lost ones', async () => {
    const { auditQueue, done, written, door, log } = await openTrail();
    door.enter = down;
    const MOST = 50_000;
    for (const scope of numbers(0, MOST + 20)) await done('get', scope);
    door.enter = async () => {};
    await auditQueue.close();
    expect(scopes(written).flat()).toEqual(numbers(0, MOST));
    expect(log.lines.filter(({ level }) => level === 'error').map(({ fields }) => fields)).toEqual([{ lost: 1 }]);
  });
});

describe('reading', () => {
  it('includes queued entries', async () => {
    const { auditQueue, done } = await openTrail();
    await done('get', '1');
    await done('list', '2');
    const entries = await auditQueue.read?.(auditOf('u'), call);
    expect(entries?.map(({ action, scope }) => [action, scope])).toEqual([
      ['list', '2'],
      ['get', '1'],
    ]);
  });

  it('waits for the running write', async () => {
    const { auditQueue, done, door } = await openTrail();
    const open = shut(door);
    await done('get', '1');
    await vi.advanceTimersByTimeAsync(FLUSH_MS);
    const reading = auditQueue.read?.(auditOf('u'), call);
    open();
    expect(await reading).toHaveLength(1);
  });

  it('fails if queued entries cannot be written', async () => {
    const { auditQueue, done, door } = await openTrail();
    door.enter = down;
    await done('get', '1');
    await expect(auditQueue.read?.(auditOf('u'), call)).rejects.toThrow('down');
    door.enter = async () => {};
    expect(await auditQueue.read?.(auditOf('u'), call)).toHaveLength(1);
  });

  it('ends when the call is aborted', async () => {
    const { auditQueue, done, door } = await openTrail();
    door.enter = () => new Promise(() => {});
    await done('get', '1');
    const reason = new OmpError('provider_error', 'too slow');
    await expect(auditQueue.read?.(auditOf('u'), callOf(AbortSignal.abort(reason)))).rejects.toBe(reason);
  });
});

describe('closing', () => {
  it('writes queued entries, and calls no backend without them', async () => {
    const { auditQueue, done, written } = await openTrail();
    await auditQueue.close();
    expect(written).toEqual([]);
    await done('get', '1');
    await auditQueue.close();
    expect(scopes(written)).toEqual([['1']]);
    await vi.advanceTimersByTimeAsync(10 * FLUSH_MS);
    expect(written).toHaveLength(1);
  });

  it.each([
    [2, ['1'], 0],
    [3, [], 1],
  ])('tries three times: after %i failures %j is written', async (failures, kept, lost) => {
    const { auditQueue, done, written, door, log } = await openTrail();
    let attempts = 0;
    door.enter = () => (attempts++ < failures ? down() : Promise.resolve());
    await done('get', '1');
    const closing = auditQueue.close();
    await vi.advanceTimersByTimeAsync(2 * 500);
    await closing;
    expect(scopes(written).flat()).toEqual(kept);
    expect(log.lines.filter(({ level }) => level === 'error').map(({ fields }) => fields)).toEqual(
      lost > 0 ? [{ lost }] : [],
    );
    await vi.advanceTimersByTimeAsync(10 * FLUSH_MS);
    expect(attempts).toBe(3);
  });

  it('writes a full queue to a slow backend', async () => {
    const { auditQueue, done, written, door } = await openTrail();
    door.enter = down;
    for (const scope of numbers(0, 50_000)) await done('get', scope);
    door.enter = () => new Promise((resolve) => setTimeout(resolve, 50));
    const closing = auditQueue.close();
    await vi.advanceTimersByTimeAsync(4_000);
    await closing;
    expect(scopes(written).flat()).toEqual(numbers(0, 50_000));
  });

  it('does not wait for a backend that never answers, and logs the number of lost entries', async () => {
    const { auditQueue, done, written, door, log } = await openTrail();
    const open = shut(door);
    for (const scope of numbers(0, 7)) await done('get', scope);
    const closing = auditQueue.close();
    await vi.advanceTimersByTimeAsync(4_000);
    await closing;
    expect(log.lines).toMatchObject([{ level: 'error', fields: { lost: 7 } }]);
    expect(written).toEqual([]);
    // Nothing stays behind that would write later on.
    door.enter = down;
    open();
    expect(vi.getTimerCount()).toBe(0);
  });
});
