import { afterEach, beforeEach, describe, expect, it, onTestFinished } from 'vitest';
import type { Memory } from '#contract';
import type { Service } from '../../providers/pinecone/client/client.ts';
import { createConsistency, createTokens } from '../../providers/pinecone/gateway-index/consistency.ts';
import { createGatewayCollection } from '../../providers/pinecone/gateway-index/gateway-collection.ts';
import type { GatewayIndex } from '../../providers/pinecone/gateway-index/gateway-reads.ts';
import { createIds, createNamespaces } from '../../providers/pinecone/gateway-index/ids.ts';
import { createOverlay, type Overlay, type WrittenPoint } from '../../providers/pinecone/overlay.ts';
import { startPinecone } from '../pinecone-server/start.ts';
import { eventually } from '../support/eventually.ts';
import { call, listOf, memoryOf, refTo, searchFor } from '../support/requests.ts';
import { freshUser, recordingLog } from '../support/subject.ts';
import { createSession, openGateway, useTwoGateways } from './gateways.ts';

describe('consistency tokens', () => {
  /** Waits for as long as a test takes. */
  const PATIENT = { consistency_wait_ms: 3_600_000 };
  /** Looks once. */
  const HASTY = { consistency_wait_ms: 0 };

  describe('tokens', () => {
    const tokens = createTokens(new Uint8Array(32).fill(1));

    it('name the latest write to each namespace', () => {
      const first = tokens.add(undefined, 'a', 7);
      const second = tokens.add(first, 'b', 3);
      expect([tokens.read(second, 'a'), tokens.read(second, 'b'), tokens.read(second, 'c')]).toEqual([7, 3, undefined]);
      const ahead = tokens.add(second, 'a', 9);
      // Answers may arrive in another order than the writes were made in.
      expect(tokens.read(tokens.add(ahead, 'a', 8), 'a')).toBe(9);
    });

    it('hold eight namespaces, those written last, in at most 172 characters fit for a header', () => {
      let token: string | undefined;
      for (let turn = 0; turn < 12; turn++) token = tokens.add(token, `n${turn}`, Number.MAX_SAFE_INTEGER - turn);
      token = tokens.add(token, 'n5', 1);
      expect(token).toMatch(/^[A-Za-z0-9_-]{1,172}$/);
      const held = Array.from({ length: 12 }, (_, turn) => tokens.read(token, `n${turn}`) !== undefined);
      expect(held).toEqual([false, false, false, false, true, true, true, true, true, true, true, true]);
      token = tokens.add(token, 'n12', 1);
      expect([tokens.read(token, 'n4'), tokens.read(token, 'n5')]).toEqual([undefined, Number.MAX_SAFE_INTEGER - 5]);
    });

    it('of another index, damaged, of an unknown version or made up are none', () => {
      const token = tokens.add(undefined, 'a', 7);
      const bytes = Buffer.from(token, 'base64url');
      const altered = (at: number) => {
        const copy = Buffer.from(bytes);
        copy[at] = (copy[at] as number) ^ 1;
        return copy.toString('base64url');
      };
      const wrong = [
        createTokens(new Uint8Array(32).fill(2)).add(undefined, 'a', 7),
        ...Array.from(bytes.keys(), altered),
        token.slice(0, -2),
        `${token}AA`,
        '',
        'AQ',
        'AQ'.repeat(200),
        'not a token',
        '{"a":7}',
      ];
      for (const one of wrong) expect(tokens.read(one, 'a'), one).toBeUndefined();
      for (const one of wrong) expect(tokens.read(tokens.add(one, 'a', 3), 'a'), one).toBe(3);
      expect(tokens.read(token, 'a')).toBe(7);
    });
  });

  describe('[Decision 23] what a client wrote through one gateway', () => {
    const used = useTwoGateways(PATIENT);
    let { server, here, there } = used;
    let user: string;
    beforeEach(() => {
      ({ server, here, there } = used);
      user = freshUser();
    });
    const operations = async () => (await server.calls()).map(({ operation }) => operation);
    /** Shows what was written once the gateway has looked for it in vain. */
    const shownLate = async <Result>(work: Promise<Result>, operation = 'query'): Promise<Result> => {
      const looked = expect.objectContaining({ operation, status: 200 });
      await eventually(async () => expect(await server.calls()).toContainEqual(looked));
      await server.settle();
      const result = await work;
      await server.resetCalls();
      return result;
    };

    it('is found by a search through another, once the index shows it', async () => {
      await server.lag({ held: true });
      const client = createSession();
      const found = (text: string) => shownLate(there.search(searchFor(user, text), client.call()));
      const memory = await here.add({ input: memoryOf(user, 'the cat sleeps') }, client.call());
      expect(await found('the cat sleeps')).toEqual([{ memory, score: 1 }]);
      const changed = await here.update({ ref: refTo(memory.id), patch: { content: 'a dog barks' } }, client.call());
      await server.resetCalls();
      expect(await found('a dog barks')).toEqual([{ memory: changed, score: 1 }]);
      await here.delete(refTo(memory.id), client.call());
      await server.resetCalls();
      expect(await found('a dog barks')).toEqual([]);
      expect(client.behind).toBe(0);
    });

    it('is read, changed and deleted through another, though it arrives late there', async () => {
      await server.lag({ held: true });
      const client = createSession();
      const added = async (content: string) =>
        refTo((await here.add({ input: memoryOf(user, content) }, client.call())).id);
      const first = await added('the cat sleeps');
      expect(await shownLate(there.get(first, client.call()))).toMatchObject({ id: first.id });
      const second = await added('a dog barks');
      const updated = there.update({ ref: second, patch: { confidence: 1 } }, client.call());
      expect(await shownLate(updated)).toMatchObject({ confidence: 1 });
      expect(await shownLate(there.delete(await added('birds sing'), client.call()))).toBe(true);
      expect(client.behind).toBe(0);
    });

    it('is read through another where fetch lags behind queries: it looks again', async () => {
      await server.lag({ fetchMs: 3_600_000 });
      const client = createSession();
      const memory = await here.add({ input: memoryOf(user, 'the cat sleeps') }, client.call());
      expect(await shownLate(there.get(refTo(memory.id), client.call()), 'fetch')).toEqual(memory);
      expect(client.behind).toBe(0);
    });

    it('is not waited for without the token', async () => {
      await server.lag({ held: true });
      const { id } = await here.add({ input: memoryOf(user, 'the cat sleeps') }, createSession().call());
      await server.resetCalls();
      expect(await there.get(refTo(id), call)).toBeUndefined();
      expect(await there.search(searchFor(user, 'the cat sleeps'), call)).toEqual([]);
      expect(await operations()).toEqual(['fetch', 'query']);
    });

    it('is looked for once: what is known of the index is remembered', async () => {
      const client = createSession();
      const memory = await here.add({ input: memoryOf(user, 'the cat sleeps') }, client.call());
      await server.resetCalls();
      expect(await there.get(refTo(memory.id), client.call())).toEqual(memory);
      expect(await operations()).toEqual(['query', 'fetch']);
      // Looking for it reads no memories.
      const [looked] = await server.calls();
      expect(looked?.body).toMatchObject({ topK: 1, filter: { user_id: { $eq: '' } }, includeMetadata: false });
      await server.resetCalls();
      expect(await there.get(refTo(memory.id), client.call())).toEqual(memory);
      expect(await there.list(listOf(user), client.call())).toEqual([memory]);
      expect(await there.search(searchFor(user, memory.content), client.call())).toHaveLength(1);
      expect(await operations()).toEqual(['fetch', 'list', 'fetch', 'query']);
    });

    it('is not looked for once a search saw it', async () => {
      const client = createSession();
      const memory = await here.add({ input: memoryOf(user, 'the cat sleeps') }, client.call());
      expect(await there.search(searchFor(user, memory.content), call)).toHaveLength(1);
      await server.resetCalls();
      expect(await there.get(refTo(memory.id), client.call())).toEqual(memory);
      expect(await operations()).toEqual(['fetch']);
    });

    it('is not masked by what the other gateway wrote before', async () => {
      const client = createSession();
      const { id } = await there.add({ input: memoryOf(user, 'the cat sleeps') }, client.call());
      const changed = (await here.update(
        { ref: refTo(id), patch: { content: 'a dog barks', tags: ['a'] } },
        client.call(),
      )) as Memory;
      expect(await there.get(refTo(id), client.call())).toEqual(changed);
      expect(await there.list(listOf(user, { tags: ['a'] }), client.call())).toEqual([changed]);
      expect(await there.search(searchFor(user, 'a dog barks'), client.call())).toEqual([
        { memory: changed, score: 1 },
      ]);
      await here.delete(refTo(id), client.call());
      expect(await there.search(searchFor(user, 'a dog barks'), client.call())).toEqual([]);
      expect(client.behind).toBe(0);
    });

    it('ends with the call that waits for it', async () => {
      await server.lag({ held: true });
      const client = createSession();
      const { id } = await here.add({ input: memoryOf(user, 'the cat sleeps') }, client.call());
      const gone = new Error('the client went away');
      const call = client.call();
      const waiting = there.get(refTo(id), call);
      const ended = expect(waiting).rejects.toBe(gone);
      await eventually(async () => expect(await operations()).toContain('query'));
      call.abort(gone);
      await ended;
    });
  });

  describe('[Decision 23] when waiting is over', () => {
    const used = useTwoGateways(HASTY);
    let { server, here, there: hasty } = used;
    beforeEach(() => {
      ({ server, here, there: hasty } = used);
    });

    it('the answer says that it may lack something, whatever was asked', async () => {
      const user = freshUser();
      const known = await here.add({ input: memoryOf(user, 'known') }, call);
      await server.settle();
      await server.lag({ held: true });
      const client = createSession();
      const { id } = await here.add({ input: memoryOf(user, 'the cat sleeps') }, client.call());
      expect(await hasty.search(searchFor(user, 'known'), client.call())).toEqual([{ memory: known, score: 1 }]);
      expect(client.behind).toBe(1);
      expect(await hasty.list(listOf(user), client.call())).toEqual([known]);
      expect(client.behind).toBe(2);
      expect(await hasty.get(refTo(known.id), client.call())).toEqual(known);
      expect(client.behind).toBe(3);
      expect(await hasty.get(refTo(id), client.call())).toBeUndefined();
      expect(client.behind).toBeGreaterThan(3);
    });

    it('a request that reads more than once waits once, and says so once', async () => {
      const user = freshUser();
      const inputs = Array.from({ length: 100 }, (_, i) => memoryOf(user, `known ${i}`));
      // Each of its memories gets a millisecond of its own, so its clock runs ahead.
      const other = await openGateway(server);
      await other.batch({ inputs }, call);
      await other.close();
      await server.settle();
      await server.lag({ held: true });
      const client = createSession();
      await here.add({ input: memoryOf(user, 'the cat sleeps') }, client.call());
      await server.resetCalls();
      expect(await hasty.list(listOf(user, { tags: ['none'] }), client.call())).toEqual([]);
      const operations = (await server.calls()).map(({ operation }) => operation);
      expect(operations).toEqual(['query', 'list', 'fetch', 'list', 'fetch']);
      expect(client.behind).toBe(1);
    });

    it('a memory that fetch does not show yet says so too', async () => {
      await server.lag({ fetchMs: 3_600_000 });
      const client = createSession();
      const { id } = await here.add({ input: memoryOf(freshUser(), 'the cat sleeps') }, client.call());
      expect(await hasty.get(refTo(id), client.call())).toBeUndefined();
      expect(client.behind).toBe(1);
    });

    it('a memory that every read would show by now is looked for once', async () => {
      const brief = await openGateway(server, { options: { ...PATIENT, settle_ms: 0 } });
      const client = createSession();
      const { id } = await here.add({ input: memoryOf(freshUser(), 'the cat sleeps') }, client.call());
      await here.delete(refTo(id), client.call());
      await server.resetCalls();
      expect(await brief.get(refTo(id), client.call())).toBeUndefined();
      expect((await server.calls()).map(({ operation }) => operation)).toEqual(['query', 'fetch']);
      expect(client.behind).toBe(0);
      await brief.close();
    });
  });

  it('[Decision 23] where the service tells no numbers there are no tokens', async () => {
    const server = await startPinecone({ lsn: false });
    const gateway = await openGateway(server);
    const client = createSession();
    const { id } = await gateway.add({ input: memoryOf('u', 'the cat sleeps') }, client.call());
    await gateway.update({ ref: refTo(id), patch: { confidence: 1 } }, client.call());
    await gateway.delete(refTo(id), client.call());
    expect(client).toMatchObject({ token: undefined, behind: 0 });
    await gateway.close();
    await server.close();
  });
});

describe('the overlay', () => {
  const opened: Overlay[] = [];
  afterEach(() => {
    for (const overlay of opened.splice(0)) overlay.close();
  });

  /** An overlay whose time is told by the test, and where queries show nothing until the test says so. */
  function open(more: Partial<Parameters<typeof createOverlay>[0]> = {}) {
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
  function written(owner: string, content = 'short'): WrittenPoint {
    made += 1;
    return { id: `mem_${made}`, owner, fields: { content }, vector: VECTOR };
  }
  const idsOf = (overlay: Overlay, user: string) => overlay.of(user).live.map(({ id }) => id);

  describe('an entry leaves', () => {
    it.each([
      ['the service tells no numbers', undefined, 0, 999, [true, true]],
      ['the service tells no numbers', undefined, 0, 1_000, [false, false]],
      // Fetch and list see less far than queries.
      ['queries show it', 7, 7, 999, [true, true]],
      ['queries show it', 7, 7, 1_000, [false, false]],
      ['queries do not show it', 7, 6, 4_999, [true, true]],
      // A memory may hide what others do; what was deleted must not come back.
      ['queries do not show it', 7, 6, 5_000, [false, true]],
      ['queries do not show it', 7, 6, 1_000_000, [false, true]],
    ] as const)('where %s: number %s, shown up to %i, after %i ms', (...row) => {
      const [, lsn, seen, ms, [isLive, isDeleted]] = row;
      const { overlay, clock, shown } = open();
      const [kept, gone] = [written('u'), written('u')];
      shown.set('another', 100).set(NAMESPACE, seen);
      overlay.put(written('of another user'), { namespace: NAMESPACE, lsn });
      overlay.put(kept, { namespace: NAMESPACE, lsn });
      overlay.bury(gone, { namespace: NAMESPACE, lsn });
      clock.now = ms;
      expect(overlay.get(kept.id)).toEqual(isLive ? kept : undefined);
      expect(overlay.get(gone.id)).toBe(isDeleted ? null : undefined);
      expect(overlay.of('u')).toEqual({
        live: isLive ? [kept] : [],
        deleted: new Set(isDeleted ? [gone.id] : []),
      });
    });

    it('from what an answer is completed with, as soon as that answer shows it', () => {
      const { overlay } = open();
      const [first, second, untold] = [written('u'), written('u'), written('u')] as const;
      overlay.put(first, { namespace: NAMESPACE, lsn: 5 });
      overlay.bury(second, { namespace: NAMESPACE, lsn: 6 });
      overlay.put(untold, UNTOLD);
      expect(overlay.of('u', 4)).toEqual(overlay.of('u'));
      expect(overlay.of('u', 5)).toEqual({ live: [untold], deleted: new Set([second.id]) });
      expect(overlay.of('u', 6)).toEqual({ live: [untold], deleted: new Set() });
    });
  });

  it('a memory that is deleted during its fetch is absent', async () => {
    const ids = createIds(new Uint8Array(32));
    const id = ids.make('u', Date.now());
    const overlay = createOverlay({ settle_ms: 1_000, shows: () => false, log: recordingLog() });
    onTestFinished(overlay.close);
    const time = '2026-01-02T03:04:05.678Z';
    const metadata = { content: 'text', user_id: 'u', created_at: time, updated_at: time };
    let isDeleted = false;
    const fetch: Service['fetch'] = async () => {
      if (isDeleted) overlay.bury({ id, owner: ids.userPart('u') }, UNTOLD);
      return new Map([[id, { id, values: [1, 0], metadata }]]);
    };
    const consistency = createConsistency({ secret: new Uint8Array(32), wait_ms: 0, look: async () => undefined });
    const namespaces = createNamespaces('single', NAMESPACE);
    const own = { service: { fetch }, ids, namespaces, overlay, consistency, metric: 'cosine', settle_ms: 1_000 };
    const { find } = createGatewayCollection(own as unknown as GatewayIndex);
    expect(await find?.(refTo(id), call)).toMatchObject({ id, fields: { content: 'text' } });
    isDeleted = true;
    expect(await find?.(refTo(id), call)).toBeUndefined();
  });

  describe('when there are too many', () => {
    it('the oldest write leaves first, whatever was read or written again since', () => {
      const { overlay } = open({ max_entries: 3 });
      const [a, b, c, d] = [written('u'), written('u'), written('u'), written('u')] as const;
      for (const one of [a, b, c]) overlay.put(one, UNTOLD);
      overlay.bury(a, UNTOLD);
      overlay.get(b.id);
      overlay.put(d, UNTOLD);
      expect(overlay.get(b.id)).toBeUndefined();
      expect(overlay.get(a.id)).toBeNull();
      expect(idsOf(overlay, 'u')).toEqual([c.id, d.id]);
    });

    it('long ones count for more than short ones', () => {
      const { overlay } = open({ max_bytes: 100_000 });
      const short = Array.from({ length: 20 }, () => written('short'));
      for (const one of short) overlay.put(one, UNTOLD);
      expect(overlay.of('short').live).toHaveLength(20);
      overlay.put(written('long', 'x'.repeat(48_000)), UNTOLD);
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
      const entry = written('u', 'x'.repeat(20_000));
      for (let turn = 0; turn < 50; turn++) {
        overlay.put(entry, UNTOLD);
        overlay.bury(entry, UNTOLD);
      }
      const other = written('u', 'x'.repeat(20_000));
      overlay.put(other, UNTOLD);
      expect(overlay.get(entry.id)).toBeNull();
      expect(overlay.get(other.id)).toEqual(other);
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
      expect(overlay.get(entry.id)).toBeUndefined();
      expect(log.lines).toEqual([]);
    });
  });
});
