import { describe, expect, it } from 'vitest';
import { newSecret } from '../../../src/features/webhooks/secrets.ts';
import { eventually } from '../../support/eventually.ts';
import { holdTimers } from '../../support/hold-timers.ts';
import { call, openGateway, openMemoryStore } from './gateway.ts';
import { openReceiver, type Received, type Receiver } from './receiver.ts';

const contents = ({ received }: Receiver) => received.map(({ type, data }) => [type, data.user_id, data.id]);
/** Resolves when so many requests have arrived. */
const arrived = (receiver: Receiver, count: number) =>
  eventually(() => expect(receiver.received.length).toBeGreaterThanOrEqual(count));
const distinct = (received: readonly Received[]) => [...new Set(received.map(({ id }) => id))];

describe('[Decision 52] a webhook', () => {
  it('gets each change from its creation on, thin and signed, in order', async () => {
    const store = await openMemoryStore();
    const gateway = openGateway(store);
    const client = gateway.as();
    await client.add({ user_id: 'ana', content: 'before' });
    const receiver = await openReceiver();
    const { webhook, secret } = await gateway.create({ url: receiver.url });
    const { id } = await client.add({ user_id: 'ana', content: 'a secret content', scope: 'coding/x' });
    await client.tell('PATCH', `/memories/${id}`, { content: 'another' });
    await client.tell('DELETE', `/memories/${id}`);
    await client.tell('DELETE', '/users/ana/memories');
    await arrived(receiver, 4);
    expect(contents(receiver)).toEqual([
      ['memory.add', 'ana', id],
      ['memory.update', 'ana', id],
      ['memory.delete', 'ana', id],
      ['memory.erase', 'ana', null],
    ]);
    for (const request of receiver.received) {
      expect(receiver.accepts(secret, request)).toBe(true);
      expect(receiver.accepts(newSecret(), request)).toBe(false);
      expect(request.body).not.toContain('content');
      expect(request.body.length).toBeLessThan(1_000);
    }
    const [first] = receiver.received;
    expect(JSON.parse(first?.body ?? '')).toEqual({
      type: 'memory.add',
      timestamp: expect.stringMatching(/Z$/),
      data: { id, action: 'add', user_id: 'ana', scope: 'coding/x', at: expect.any(String), caller: null },
    });
    await eventually(async () => expect((await gateway.find(webhook.id)).deliveries).toHaveLength(4));
    expect((await gateway.find(webhook.id)).deliveries[0]).toMatchObject({
      ...{ type: 'memory.erase', outcome: 'delivered', status: 204 },
    });
    expect(gateway.deliveries.stats()).toEqual({ deliveries: { delivered: 4 }, lag: 0 });
  });

  it('gets what its filter says: users, scopes, actions', async () => {
    const store = await openMemoryStore();
    const gateway = openGateway(store);
    const client = gateway.as();
    const receivers = [await openReceiver(), await openReceiver(), await openReceiver(), await openReceiver()] as const;
    const [byUser, byScope, byAction, all] = receivers;
    await gateway.create({ url: byUser.url, users: ['ana'] });
    await gateway.create({ url: byScope.url, scope: 'work/*' });
    await gateway.create({ url: byAction.url, actions: ['delete'] });
    await gateway.create({ url: all.url });
    const one = await client.add({ user_id: 'ana', content: 'x' });
    const two = await client.add({ user_id: 'ben', content: 'x', scope: 'work/a' });
    const three = await client.add({ user_id: 'cleo', content: 'x', scope: 'home' });
    // A memory that leaves the scopes of a follower is a change for it.
    await client.tell('PATCH', `/memories/${two.id}`, { scope: 'home' });
    await client.tell('DELETE', `/memories/${three.id}`);
    await arrived(all, 5);
    await arrived(byScope, 2);
    await arrived(byAction, 1);
    expect(contents(byUser)).toEqual([['memory.add', 'ana', one.id]]);
    expect(contents(byScope)).toEqual([
      ['memory.add', 'ben', two.id],
      ['memory.update', 'ben', two.id],
    ]);
    // Where it went is nothing for them.
    const scopes = ({ received }: Receiver) => received.map(({ body }) => JSON.parse(body).data.scope);
    expect(scopes(byScope)).toEqual(['work/a', 'work/a']);
    expect(scopes(all).filter((scope) => scope === 'home')).toHaveLength(3);
    expect(contents(byAction)).toEqual([['memory.delete', 'cleo', three.id]]);
  });

  it('is repeated with the same id until it succeeds, before the next change of its user; others do not wait', async () => {
    const store = await openMemoryStore();
    const gateway = openGateway(store);
    const client = gateway.as();
    const receiver = await openReceiver();
    let refuse = true;
    receiver.react(({ data }) => (data.user_id === 'ana' && refuse ? 500 : 204));
    const { webhook } = await gateway.create({ url: receiver.url });
    for (const content of ['1', '2']) await client.add({ user_id: 'ana', content });
    for (const content of ['1', '2', '3']) await client.add({ user_id: 'ben', content });
    const of = (user: string) => receiver.received.filter(({ data }) => data.user_id === user);
    await eventually(() => expect(distinct(of('ben'))).toHaveLength(3));
    await eventually(() => expect(of('ana').length).toBeGreaterThan(3));
    expect(distinct(of('ana'))).toHaveLength(1);
    await eventually(async () => expect((await gateway.find(webhook.id)).failing_since).not.toBeNull());
    expect(gateway.deliveries.stats().lag).toBeGreaterThan(0);
    refuse = false;
    await eventually(() => expect(distinct(of('ana'))).toHaveLength(2));
    await eventually(async () => expect((await gateway.find(webhook.id)).failing_since).toBeNull());
    expect(gateway.deliveries.stats().lag).toBe(0);
    const messages = gateway.log.lines.map(({ message }) => message);
    expect(messages).toContain('a delivery of a webhook failed; it will be retried');
    expect(messages).toContain('the deliveries of a webhook work again');
    expect(JSON.stringify(gateway.log.lines)).not.toContain(receiver.url);
  });

  it('that hangs, is dead, redirects or answers nonsense delays no other', async () => {
    const timers = holdTimers(15_000);
    const store = await openMemoryStore();
    const gateway = openGateway(store, { pause: () => 1_000_000 });
    const client = gateway.as();
    const [hanging, redirecting, silly, good] = [
      await openReceiver(),
      await openReceiver(),
      await openReceiver(),
      await openReceiver(),
    ];
    hanging.react(() => () => {});
    redirecting.react(() => (response) => response.writeHead(302, { location: good.url }).end());
    silly.react(() => (response) => response.socket?.end('what?\n'));
    for (const { url } of [hanging, redirecting, silly]) await gateway.create({ url });
    await gateway.create({ url: 'http://127.0.0.1:1/' });
    const { webhook } = await gateway.create({ url: good.url });
    const users = Array.from({ length: 50 }, (_, n) => `user-${n}`);
    for (const user_id of users) await client.add({ user_id, content: 'x' });
    await arrived(good, users.length);
    expect(distinct(good.received)).toHaveLength(users.length);
    await eventually(async () => expect((await gateway.find(webhook.id)).deliveries).toHaveLength(10));
    // Four at a time, and one once it has failed; then it rests.
    expect(hanging.received).toHaveLength(4);
    expect(redirecting.received.length).toBeLessThanOrEqual(6);
    const { rejected, unreachable } = gateway.deliveries.stats().deliveries;
    expect([rejected, unreachable]).not.toContain(undefined);
    timers.pass();
    await eventually(() => expect(gateway.deliveries.stats().deliveries.timeout).toBe(4));
    expect(hanging.received).toHaveLength(4);
  });

  it('stops at 410, and goes on when it is resumed, with or without what was not delivered', async () => {
    const store = await openMemoryStore();
    const gateway = openGateway(store);
    const client = gateway.as();
    const receiver = await openReceiver();
    receiver.react(() => 410);
    const { webhook } = await gateway.create({ url: receiver.url });
    for (const content of ['1', '2', '3']) await client.add({ user_id: 'ana', content });
    const state = async () => (await gateway.find(webhook.id)).state;
    await eventually(async () => expect(await state()).toBe('gone'));
    expect(await gateway.find(webhook.id)).toMatchObject({ undelivered: 3, deliveries: [{ outcome: 'gone' }] });
    expect(receiver.received).toHaveLength(1);
    await client.add({ user_id: 'ana', content: '4' });

    receiver.react(() => 204);
    const resumed = await gateway.manage.resume({ id: webhook.id, from: 'cursor' }, call);
    expect(resumed).toMatchObject({ state: 'active', undelivered: 0, failing_since: null });
    await eventually(() => expect(distinct(receiver.received)).toHaveLength(4));

    receiver.react(() => 410);
    await client.add({ user_id: 'ana', content: '5' });
    await eventually(async () => expect(await state()).toBe('gone'));
    receiver.react(() => 204);
    const before = receiver.received.length;
    await gateway.manage.resume({ id: webhook.id, from: 'now' }, call);
    const { id } = await client.add({ user_id: 'ana', content: '6' });
    await arrived(receiver, before + 1);
    expect(receiver.received.slice(before).map(({ data }) => data.id)).toEqual([id]);
  });

  it('is given up after a day of failures, with the number of what was not delivered', async () => {
    const store = await openMemoryStore();
    const gateway = openGateway(store);
    const client = gateway.as();
    const receiver = await openReceiver();
    receiver.react(() => 500);
    const { webhook } = await gateway.create({ url: receiver.url });
    await client.add({ user_id: 'ana', content: '1' });
    await arrived(receiver, 2);
    expect((await gateway.find(webhook.id)).state).toBe('active');
    // As if the failures had begun a day ago.
    const failing_since = new Date(Date.now() - 86_400_000).toISOString();
    await store.webhooks?.change({ id: webhook.id, patch: { failing_since } }, call);
    for (let n = 0; n < 300; n++) await client.add({ user_id: `user ${n}`, content: 'x' });
    gateway.deliveries.kick();
    await eventually(async () => expect((await gateway.find(webhook.id)).state).toBe('given_up'));
    const { undelivered } = await gateway.find(webhook.id);
    expect(undelivered).toBe(301);
    expect(gateway.log.lines).toContainEqual({
      level: 'error',
      fields: { webhook_id: webhook.id, state: 'given_up', undelivered },
      message: 'a webhook is not delivered any more',
    });
    receiver.react(() => 204);
    await gateway.manage.resume({ id: webhook.id, from: 'cursor' }, call);
    await eventually(() => expect(distinct(receiver.received)).toHaveLength(301));
  });

  it('stops when the log no longer holds the next change', async () => {
    const [store, other] = [await openMemoryStore(), await openMemoryStore()];
    const gateway = openGateway(store);
    const receiver = await openReceiver();
    const { webhook } = await gateway.create({ url: receiver.url });
    const { next } = (await other.changes?.({ after: 'now', limit: 1, users: null, within: null }, call)) ?? {};
    await store.webhooks?.change({ id: webhook.id, patch: { cursor: next as string } }, call);
    gateway.deliveries.kick();
    await eventually(async () => expect((await gateway.find(webhook.id)).state).toBe('lost'));
    await gateway.manage.resume({ id: webhook.id, from: 'now' }, call);
    await gateway.as().add({ user_id: 'ana', content: 'x' });
    await arrived(receiver, 1);
  });

  it('is not sent to once it is deleted', async () => {
    const store = await openMemoryStore();
    const gateway = openGateway(store);
    const [receiver, other] = [await openReceiver(), await openReceiver()];
    const { webhook } = await gateway.create({ url: receiver.url });
    await gateway.create({ url: other.url });
    expect(await gateway.manage.delete(webhook.id, call)).toBe(true);
    expect(await gateway.manage.delete(webhook.id, call)).toBe(false);
    gateway.deliveries.kick();
    await gateway.as().add({ user_id: 'ana', content: 'x' });
    await arrived(other, 1);
    expect(receiver.received).toEqual([]);
  });
});

describe('[Decision 52] secrets', () => {
  it('rotate: both sign until the time is over, and rotated twice the first signs no more', async () => {
    const store = await openMemoryStore();
    const gateway = openGateway(store);
    const receiver = await openReceiver();
    const { webhook, secret: first } = await gateway.create({ url: receiver.url });
    const sign = async () => {
      expect(await gateway.manage.test(webhook.id, call)).toMatchObject({ type: 'webhook.test', outcome: 'delivered' });
      return receiver.received.at(-1) as Received;
    };
    const rotate = async () => (await gateway.manage.rotate(webhook.id, call))?.secret as string;
    const second = await rotate();
    const signed = await sign();
    expect([first, second].map((secret) => receiver.accepts(secret, signed))).toEqual([true, true]);
    const third = await rotate();
    const again = await sign();
    expect([first, second, third].map((secret) => receiver.accepts(secret, again))).toEqual([false, true, true]);
    await store.webhooks?.change({ id: webhook.id, patch: { previous_until: new Date(0).toISOString() } }, call);
    const late = await sign();
    expect([second, third].map((secret) => receiver.accepts(secret, late))).toEqual([false, true]);
    expect(late.headers['webhook-signature']).not.toContain(' ');
  });

  it('that cannot be read stop nothing for good: the old key or a rotation brings the deliveries back', async () => {
    const store = await openMemoryStore();
    const gateway = openGateway(store);
    const receiver = await openReceiver();
    const { webhook } = await gateway.create({ url: receiver.url });
    await gateway.close();
    const other = openGateway(store, { secret: 'another secret of the gateway, long' });
    const client = other.as();
    await client.add({ user_id: 'ana', content: '1' });
    await eventually(async () =>
      expect((await other.find(webhook.id)).deliveries[0]).toMatchObject({
        outcome: 'secret_unreadable',
        status: null,
      }),
    );
    expect(receiver.received).toEqual([]);
    const { secret } = (await other.manage.rotate(webhook.id, call)) ?? { secret: '' };
    await arrived(receiver, 1);
    expect(receiver.accepts(secret)).toBe(true);
  });
});

it('[Decision 52] a stored webhook with a private address is not connected to, once that is not allowed', async () => {
  const store = await openMemoryStore();
  const open = openGateway(store);
  const receiver = await openReceiver();
  const { webhook } = await open.create({ url: receiver.url });
  await open.close();
  const strict = openGateway(store, { allow_private: false });
  await strict.as().add({ user_id: 'ana', content: 'x' });
  await eventually(async () =>
    expect((await strict.find(webhook.id)).deliveries[0]).toMatchObject({ outcome: 'address_denied', status: null }),
  );
  expect(await strict.manage.test(webhook.id, call)).toMatchObject({ outcome: 'address_denied' });
  expect(receiver.received).toEqual([]);
});

it('[Decision 52] without webhooks the feed is not read, and webhooks at its end share one reading', async () => {
  const store = await openMemoryStore();
  const changes = store.changes as NonNullable<typeof store.changes>;
  let reads = 0;
  const running = new Map<string, number>();
  let most = 0;
  const counting: typeof changes = async (query, call) => {
    reads++;
    const { after = '' } = query;
    const times = (running.get(after) ?? 0) + 1;
    most = Math.max(most, times);
    running.set(after, times);
    await new Promise((resolve) => setTimeout(resolve, 20));
    running.delete(after);
    return changes(query, call);
  };
  const gateway = openGateway({ ...store, changes: counting });
  const client = gateway.as();
  for (let n = 0; n < 5; n++) await client.add({ user_id: 'ana', content: 'x' });
  expect(reads).toBe(0);
  const receivers = [await openReceiver(), await openReceiver(), await openReceiver(), await openReceiver()];
  for (const { url } of receivers) await gateway.create({ url });
  await client.add({ user_id: 'ana', content: 'x' });
  for (const receiver of receivers) await arrived(receiver, 1);
  most = 0;
  await client.add({ user_id: 'ana', content: 'y' });
  for (const receiver of receivers) await arrived(receiver, 2);
  // The gateway's own reader, and one for all webhooks.
  expect(most).toBeLessThanOrEqual(2);
});
