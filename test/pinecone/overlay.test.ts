import { afterEach, describe, expect, it } from 'vitest';
import type { Memory } from '#contract';
import type { Service } from '../../providers/pinecone/client/client.ts';
import { createConsistency } from '../../providers/pinecone/gateway-index/consistency.ts';
import type { GatewayIndex } from '../../providers/pinecone/gateway-index/gateway-record.ts';
import { createFind, toMetadata } from '../../providers/pinecone/gateway-index/gateway-record.ts';
import { createIds, createNamespaces } from '../../providers/pinecone/gateway-index/ids.ts';
import { createOverlay, type Overlay, type OverlayOptions } from '../../providers/pinecone/overlay.ts';
import { call, memoryOf, refTo } from '../support/requests.ts';
import { recordingLog } from '../support/subject.ts';

const opened: Overlay[] = [];
afterEach(() => {
  for (const overlay of opened.splice(0)) overlay.close();
});

/** An overlay whose time is told by the test, and where queries show nothing until the test says so. */
function open(more: Partial<OverlayOptions> = {}) {
  const clock = { now: 0 };
  const shown = new Map<string, number>();
  const log = recordingLog();
  const overlay = createOverlay({
    settle_ms: 1_000,
    shows: (namespace, lsn) => (shown.get(namespace) ?? 0) >= lsn,
    log,
    now: () => clock.now,
    ...more,
  });
  opened.push(overlay);
  return { overlay, clock, shown, log };
}

const NAMESPACE = 'memories';
const UNTOLD = { namespace: NAMESPACE, lsn: undefined };
const VECTOR = Float32Array.of(1, 0);

let made = 0;
function written(user_id: string, more: Partial<Memory> = {}): { memory: Memory; vector: Float32Array } {
  made += 1;
  const created_at = new Date(Date.UTC(2026, 0, 1) + made).toISOString();
  const fixed = {
    id: `mem_${made}`,
    created_at,
    updated_at: created_at,
    embedding_model: 'm',
    status: 'done',
  } as const;
  return { memory: { ...memoryOf(user_id, `memory ${made}`), ...fixed, ...more }, vector: VECTOR };
}
const idsOf = (overlay: Overlay, user: string) => overlay.of(user).live.map(({ memory }) => memory.id);

describe('what was written lately', () => {
  it('is found by id and among what is its owner’s alone', () => {
    const { overlay } = open();
    const mine = written('me');
    const yours = written('you');
    overlay.put(mine, UNTOLD);
    overlay.put(yours, UNTOLD);
    expect(overlay.get(mine.memory.id)).toEqual(mine);
    expect(overlay.get('mem_of_nobody')).toBeUndefined();
    expect(overlay.of('me')).toEqual({ live: [mine], deleted: new Set() });
    expect(overlay.of('you')).toEqual({ live: [yours], deleted: new Set() });
    expect(overlay.of('nobody')).toEqual({ live: [], deleted: new Set() });
  });

  it('[Decision 1] is listed newest first, and by descending id within a millisecond, in whatever order it was written', () => {
    const { overlay } = open();
    const [first, second, third] = [written('u'), written('u'), written('u')] as const;
    const tied = written('u', { id: 'mem_0', created_at: second.memory.created_at });
    for (const one of [second, tied, first, third]) overlay.put(one, UNTOLD);
    expect(overlay.of('u').live).toEqual([third, second, tied, first]);
  });

  it('is what was written last', () => {
    const { overlay } = open();
    const before = written('u');
    const after = { ...before, memory: { ...before.memory, content: 'changed' } };
    overlay.put(before, UNTOLD);
    overlay.put(after, UNTOLD);
    expect(overlay.get(before.memory.id)).toEqual(after);
    expect(overlay.of('u').live).toEqual([after]);
    overlay.bury(before.memory, UNTOLD);
    expect(overlay.get(before.memory.id)).toBeNull();
    expect(overlay.of('u')).toEqual({ live: [], deleted: new Set([before.memory.id]) });
  });
});

describe('an entry leaves', () => {
  it('after settle_ms, where the service tells no numbers', () => {
    const { overlay, clock } = open();
    const kept = written('u');
    const gone = written('u');
    overlay.put(kept, UNTOLD);
    overlay.bury(gone.memory, UNTOLD);
    clock.now = 999;
    expect(overlay.get(kept.memory.id)).toEqual(kept);
    expect(overlay.get(gone.memory.id)).toBeNull();
    clock.now = 1_000;
    expect(overlay.get(kept.memory.id)).toBeUndefined();
    expect(overlay.get(gone.memory.id)).toBeUndefined();
    expect(overlay.of('u')).toEqual({ live: [], deleted: new Set() });
  });

  it('not before queries show it, where the service tells numbers', () => {
    const { overlay, clock, shown } = open();
    const { memory } = written('u');
    overlay.bury(memory, { namespace: NAMESPACE, lsn: 7 });
    clock.now = 1_000_000;
    shown.set('another', 100);
    shown.set(NAMESPACE, 6);
    expect(overlay.get(memory.id)).toBeNull();
    expect(overlay.of('u').deleted).toEqual(new Set([memory.id]));
    shown.set(NAMESPACE, 7);
    expect(overlay.get(memory.id)).toBeUndefined();
    expect(overlay.of('u').deleted).toEqual(new Set());
  });

  it('not before settle_ms though queries show it: fetch and list see less far', () => {
    const { overlay, clock, shown } = open();
    const entry = written('u');
    shown.set(NAMESPACE, 7);
    overlay.put(entry, { namespace: NAMESPACE, lsn: 7 });
    clock.now = 999;
    expect(overlay.get(entry.memory.id)).toEqual(entry);
    clock.now = 1_000;
    expect(overlay.get(entry.memory.id)).toBeUndefined();
  });

  it('where no query ever shows it: five times as late for a memory, for it may hide what others do; never for what is deleted', () => {
    const { overlay, clock } = open();
    const kept = written('u');
    const gone = written('u');
    overlay.put(kept, { namespace: NAMESPACE, lsn: 1 });
    overlay.bury(gone.memory, { namespace: NAMESPACE, lsn: 2 });
    clock.now = 4_999;
    expect(overlay.of('u')).toEqual({ live: [kept], deleted: new Set([gone.memory.id]) });
    clock.now = 5_000;
    expect(overlay.of('u')).toEqual({ live: [], deleted: new Set([gone.memory.id]) });
  });

  it('from what an answer is completed with, as soon as that answer shows it', () => {
    const { overlay } = open();
    const [first, second, untold] = [written('u'), written('u'), written('u')] as const;
    overlay.put(first, { namespace: NAMESPACE, lsn: 5 });
    overlay.bury(second.memory, { namespace: NAMESPACE, lsn: 6 });
    overlay.put(untold, UNTOLD);
    expect(overlay.of('u', 4)).toEqual(overlay.of('u'));
    expect(overlay.of('u', 5)).toEqual({ live: [untold], deleted: new Set([second.memory.id]) });
    expect(overlay.of('u', 6)).toEqual({ live: [untold], deleted: new Set() });
  });

  it('later when it is written again', () => {
    const { overlay, clock } = open();
    const entry = written('u');
    overlay.put(entry, UNTOLD);
    clock.now = 900;
    overlay.put(entry, UNTOLD);
    clock.now = 1_800;
    expect(overlay.get(entry.memory.id)).toEqual(entry);
  });
});

it('a memory that is deleted while the service is asked for it is gone', async () => {
  const { overlay } = open();
  const ids = createIds(new Uint8Array(32));
  const { memory } = written('u', { id: ids.make('u', Date.now()) });
  const fetch: Service['fetch'] = async () => {
    overlay.bury(memory, UNTOLD);
    return new Map([[memory.id, { id: memory.id, values: [1, 0], metadata: toMetadata(memory, true) }]]);
  };
  const consistency = createConsistency({ secret: new Uint8Array(32), wait_ms: 0, look: async () => undefined });
  const namespaces = createNamespaces('single', NAMESPACE);
  const own = { service: { fetch }, ids, namespaces, overlay, consistency, model: 'm' } as unknown as GatewayIndex;
  const find = createFind(own, { settle_ms: 1_000, consistency_wait_ms: 0 });
  expect(await find(refTo(memory.id), call)).toBeUndefined();
});

describe('when there are too many', () => {
  it('the oldest write leaves first, whatever was read or written again since', () => {
    const { overlay } = open({ max_entries: 3 });
    const [a, b, c, d] = [written('u'), written('u'), written('u'), written('u')] as const;
    for (const one of [a, b, c]) overlay.put(one, UNTOLD);
    overlay.bury(a.memory, UNTOLD);
    overlay.get(b.memory.id);
    overlay.put(d, UNTOLD);
    expect(overlay.get(b.memory.id)).toBeUndefined();
    expect(overlay.get(a.memory.id)).toBeNull();
    expect(idsOf(overlay, 'u')).toEqual([d.memory.id, c.memory.id]);
  });

  it('long ones count for more than short ones', () => {
    const { overlay } = open({ max_bytes: 100_000 });
    const short = Array.from({ length: 20 }, () => written('short'));
    for (const one of short) overlay.put(one, UNTOLD);
    expect(overlay.of('short').live).toHaveLength(20);
    overlay.put(written('long', { content: 'x'.repeat(40_000) }), UNTOLD);
    expect(overlay.of('long').live).toHaveLength(1);
    const left = overlay.of('short').live.length;
    expect(left).toBeGreaterThan(0);
    expect(left).toBeLessThan(20);
    overlay.put({ ...written('vector'), vector: new Float32Array(23_000) }, UNTOLD);
    expect([overlay.of('short').live, overlay.of('long').live]).toEqual([[], []]);
    expect(overlay.of('vector').live).toHaveLength(1);
  });

  it('what leaves gives its bytes back', () => {
    const { overlay } = open({ max_bytes: 100_000 });
    const entry = written('u', { content: 'x'.repeat(20_000) });
    for (let turn = 0; turn < 50; turn++) {
      overlay.put(entry, UNTOLD);
      overlay.bury(entry.memory, UNTOLD);
    }
    const other = written('u', { content: 'x'.repeat(20_000) });
    overlay.put(other, UNTOLD);
    expect(overlay.get(entry.memory.id)).toBeNull();
    expect(overlay.get(other.memory.id)).toEqual(other);
  });

  it('a warning says how many were forgotten too early, at most once a minute', () => {
    const { overlay, clock, log } = open({ max_entries: 2 });
    for (let turn = 0; turn < 5; turn++) overlay.put(written('u'), UNTOLD);
    expect(log.lines).toMatchObject([{ level: 'warn', fields: { forgotten: 1 } }]);
    clock.now = 59_999;
    for (let turn = 0; turn < 4; turn++) overlay.put(written('u'), UNTOLD);
    expect(log.lines).toHaveLength(1);
    clock.now = 60_000;
    overlay.put(written('u'), UNTOLD);
    // Two since that warning, and three later: what was pushed out in between was old enough.
    expect(log.lines).toMatchObject([{}, { level: 'warn', fields: { forgotten: 5 } }]);
  });

  it('what was old enough leaves without a warning', () => {
    const { overlay, clock, log } = open({ max_entries: 2 });
    const entry = written('u');
    overlay.put(entry, { namespace: NAMESPACE, lsn: 9 });
    clock.now = 5_000;
    for (let turn = 0; turn < 2; turn++) overlay.put(written('u'), UNTOLD);
    expect(overlay.get(entry.memory.id)).toBeUndefined();
    expect(log.lines).toEqual([]);
  });
});
