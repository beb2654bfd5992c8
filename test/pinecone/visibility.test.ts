import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import type { Memory } from '#contract';
import { createTokens } from '../../providers/pinecone/gateway-index/consistency.ts';
import { type Pinecone, startPinecone } from '../pinecone-server/start.ts';
import { call, listOf, memoryOf, refTo, searchFor } from '../support/requests.ts';
import { freshUser } from '../support/subject.ts';
import { createSession, type Gateway, openGateway } from './gateways.ts';

/** Longer than any lag here: who waits in vain would run into the test's own deadline. */
const PATIENT = { consistency_wait_ms: 30_000 };

describe('tokens', () => {
  const tokens = createTokens(new Uint8Array(32).fill(1));

  it('name the latest write to each namespace', () => {
    const first = tokens.add(undefined, 'a', 7);
    const second = tokens.add(first, 'b', 3);
    expect([tokens.read(second, 'a'), tokens.read(second, 'b'), tokens.read(second, 'c')]).toEqual([7, 3, undefined]);
    expect(tokens.read(tokens.add(second, 'a', 9), 'a')).toBe(9);
  });

  it('never go back: answers may arrive in another order than the writes were made in', () => {
    const ahead = tokens.add(undefined, 'a', 9);
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
  let server: Pinecone;
  let here: Gateway;
  let there: Gateway;
  let user: string;
  beforeAll(async () => {
    server = await startPinecone();
    here = await openGateway(server, { options: PATIENT });
    there = await openGateway(server, { options: PATIENT });
  });
  beforeEach(async () => {
    await server.lag({});
    await server.settle();
    user = freshUser();
  });
  afterAll(async () => {
    await here?.close();
    await there?.close();
    await server?.close();
  });
  const operations = async () => (await server.calls()).map(({ operation }) => operation);

  it('is found by a search through another, once the index shows it', async () => {
    await server.lag({ ms: 400 });
    const client = createSession();
    const memory = await here.add(memoryOf(user, 'the cat sleeps'), client.call());
    expect(await there.search(searchFor(user, 'the cat sleeps'), client.call())).toEqual([{ memory, score: 1 }]);
    const changed = await here.update(refTo(memory.id), { content: 'a dog barks' }, client.call());
    expect(await there.search(searchFor(user, 'a dog barks'), client.call())).toEqual([{ memory: changed, score: 1 }]);
    await here.delete(refTo(memory.id), client.call());
    expect(await there.search(searchFor(user, 'a dog barks'), client.call())).toEqual([]);
    expect(client.behind).toBe(0);
  });

  it('is read, changed and deleted through another, though it arrives late there', async () => {
    await server.lag({ ms: 400 });
    const client = createSession();
    const { id } = await here.add(memoryOf(user, 'the cat sleeps'), client.call());
    expect(await there.get(refTo(id), client.call())).toMatchObject({ id });
    const second = await here.add(memoryOf(user, 'a dog barks'), client.call());
    expect(await there.update(refTo(second.id), { confidence: 1 }, client.call())).toMatchObject({ confidence: 1 });
    const third = await here.add(memoryOf(user, 'birds sing'), client.call());
    expect(await there.delete(refTo(third.id), client.call())).toBe(true);
    expect(client.behind).toBe(0);
  });

  it('is read through another where fetch lags behind queries: it looks again', async () => {
    await server.lag({ fetchMs: 400 });
    const client = createSession();
    const memory = await here.add(memoryOf(user, 'the cat sleeps'), client.call());
    expect(await there.get(refTo(memory.id), client.call())).toEqual(memory);
    expect(client.behind).toBe(0);
  });

  it('is not waited for without the token', async () => {
    await server.lag({ held: true });
    const { id } = await here.add(memoryOf(user, 'the cat sleeps'), createSession().call());
    await server.resetCalls();
    expect(await there.get(refTo(id), call)).toBeUndefined();
    expect(await there.search(searchFor(user, 'the cat sleeps'), call)).toEqual([]);
    expect(await operations()).toEqual(['fetch', 'query']);
  });

  it('is looked for once: what is known of the index is remembered', async () => {
    const client = createSession();
    const memory = await here.add(memoryOf(user, 'the cat sleeps'), client.call());
    await server.resetCalls();
    expect(await there.get(refTo(memory.id), client.call())).toEqual(memory);
    expect(await operations()).toEqual(['query', 'fetch']);
    await server.resetCalls();
    expect(await there.get(refTo(memory.id), client.call())).toEqual(memory);
    expect(await there.list(listOf(user), client.call())).toEqual([memory]);
    expect(await there.search(searchFor(user, memory.content), client.call())).toHaveLength(1);
    expect(await operations()).toEqual(['fetch', 'list', 'fetch', 'query']);
  });

  it('looking for it reads nobody’s memories', async () => {
    const client = createSession();
    const { id } = await here.add(memoryOf(user, 'the cat sleeps'), client.call());
    await server.resetCalls();
    await there.get(refTo(id), client.call());
    const [looked] = await server.calls();
    expect(looked?.body).toMatchObject({ topK: 1, filter: { user_id: { $eq: '' } }, includeMetadata: false });
  });

  it('is not masked by what the other gateway wrote before', async () => {
    const client = createSession();
    const { id } = await there.add(memoryOf(user, 'the cat sleeps'), client.call());
    const changed = (await here.update(refTo(id), { content: 'a dog barks', tags: ['a'] }, client.call())) as Memory;
    expect(await there.get(refTo(id), client.call())).toEqual(changed);
    expect(await there.list(listOf(user, { tags: ['a'] }), client.call())).toEqual([changed]);
    expect(await there.search(searchFor(user, 'a dog barks'), client.call())).toEqual([{ memory: changed, score: 1 }]);
    await here.delete(refTo(id), client.call());
    expect(await there.search(searchFor(user, 'a dog barks'), client.call())).toEqual([]);
    expect(client.behind).toBe(0);
  });

  it('is not waited for where tokens are forged, foreign or too old to be known', async () => {
    await server.lag({ held: true });
    const { id } = await here.add(memoryOf(user, 'the cat sleeps'), call);
    const foreign = createTokens(new Uint8Array(32)).add(undefined, 'memories', Number.MAX_SAFE_INTEGER);
    for (const token of [foreign, 'AQ', 'nonsense', `${foreign}x`]) {
      const client = createSession(token);
      expect(await there.get(refTo(id), client.call())).toBeUndefined();
      expect(await there.list(listOf(user), client.call())).toEqual([]);
      expect(client.behind).toBe(0);
      expect((await here.update(refTo(id), { confidence: Math.random() }, client.call()))?.id).toBe(id);
      expect(client.token).not.toBe(token);
    }
  });

  it('ends with the call that waits for it', async () => {
    await server.lag({ held: true });
    const client = createSession();
    const { id } = await here.add(memoryOf(user, 'the cat sleeps'), client.call());
    const gone = new Error('the client went away');
    const controller = new AbortController();
    const waiting = there.get(refTo(id), client.call({ signal: controller.signal }));
    const ended = expect(waiting).rejects.toBe(gone);
    await server.resetCalls();
    while ((await operations()).length === 0) await new Promise((resolve) => setTimeout(resolve, 5));
    controller.abort(gone);
    await ended;
  });
});

describe('[Decision 23] when waiting is over', () => {
  let server: Pinecone;
  let here: Gateway;
  let hasty: Gateway;
  beforeAll(async () => {
    server = await startPinecone();
    here = await openGateway(server);
    hasty = await openGateway(server, { options: { consistency_wait_ms: 60 } });
  });
  afterAll(async () => {
    await here?.close();
    await hasty?.close();
    await server?.close();
  });

  it('the answer says that it may lack something, whatever was asked', async () => {
    const user = freshUser();
    const known = await here.add(memoryOf(user, 'known'), call);
    await server.settle();
    await server.lag({ held: true });
    const client = createSession();
    const { id } = await here.add(memoryOf(user, 'the cat sleeps'), client.call());
    expect(await hasty.search(searchFor(user, 'known'), client.call())).toEqual([{ memory: known, score: 1 }]);
    expect(client.behind).toBe(1);
    expect(await hasty.list(listOf(user), client.call())).toEqual([known]);
    expect(client.behind).toBe(2);
    expect(await hasty.get(refTo(known.id), client.call())).toEqual(known);
    expect(client.behind).toBe(3);
    expect(await hasty.get(refTo(id), client.call())).toBeUndefined();
    expect(client.behind).toBeGreaterThan(3);
  });

  it('a memory that fetch does not show yet says so too', async () => {
    await server.lag({ fetchMs: 3_600_000 });
    const client = createSession();
    const { id } = await here.add(memoryOf(freshUser(), 'the cat sleeps'), client.call());
    expect(await hasty.get(refTo(id), client.call())).toBeUndefined();
    expect(client.behind).toBe(1);
  });

  it('a memory that every read would show by now is looked for once', async () => {
    const brief = await openGateway(server, { options: { consistency_wait_ms: 30_000, settle_ms: 0 } });
    await server.lag({});
    const client = createSession();
    const { id } = await here.add(memoryOf(freshUser(), 'the cat sleeps'), client.call());
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
  const { id } = await gateway.add(memoryOf('u', 'the cat sleeps'), client.call());
  await gateway.update(refTo(id), { confidence: 1 }, client.call());
  await gateway.delete(refTo(id), client.call());
  expect(client).toMatchObject({ token: undefined, behind: 0 });
  await gateway.close();
  await server.close();
});
