import { beforeEach, expect, test } from 'vitest';
import { dataFolder, runProgram, startGateway } from '../process/gateway.ts';
import { expectError } from '../support/expect-error.ts';
import { fakeClock, NO_FAKE_CLOCK } from '../support/fake-clock.ts';
import { freshUser } from '../support/subject.ts';
import type { WireMemory } from '../support/wire.ts';
import { startSubject } from './subject.ts';
import { survive } from './survive.ts';

beforeEach(({ skip }) => skip(NO_FAKE_CLOCK !== '', NO_FAKE_CLOCK));

const MINUTE = 60;
const HOUR = 60 * MINUTE;
const DAY = 24 * HOUR;
const YEAR = 365 * DAY;

async function emptyFolder(): Promise<{ OMP_DATA_DIR: string }> {
  const OMP_DATA_DIR = await dataFolder();
  return { OMP_DATA_DIR };
}

test('clock jumps under load lose nothing', async () => {
  const clock = fakeClock();
  const env = { ...clock.env, ...(await emptyFolder()) };
  const { load, gateway } = await startSubject({ env, clients: 12 });
  // Never as far ahead as idempotency keys are stored.
  for (const [name, seconds] of [
    ['an hour back', -HOUR],
    ['an hour ahead', HOUR],
    ['20 hours back', -20 * HOUR],
    ['right again', 0],
  ] as const) {
    await survive(load, { name: `clock: ${name}`, strike: async () => clock.jumpTo(seconds) });
  }
  await load.pause();
  expect((await gateway.stop()).status).toBe(0);
});

test('[Decision 1|2] memories added and changed while the clock jumps are listed in that order, also by an earlier cursor', async () => {
  const clock = fakeClock();
  const { client } = await startGateway({ env: { ...clock.env, ...(await emptyFolder()) } });
  const user_id = freshUser();
  const added: WireMemory[] = [];
  const addSome = async () => {
    for (let i = 0; i < 4; i++) added.push(await client.add({ user_id, content: `memory ${added.length}` }));
  };
  await addSome();
  const first = await client.list({ user_id, limit: 2 });
  // Set back by a day at most.
  for (const seconds of [-HOUR, HOUR, HOUR - DAY, 0]) {
    clock.jumpTo(seconds);
    await addSome();
    const oldest = added[0] as WireMemory;
    const before = await client.get(oldest.id);
    const after = await client.update(oldest.id, { tags: [`at ${seconds}`] });
    expect(Date.parse(after.updated_at as string)).toBeGreaterThan(Date.parse(before.updated_at as string));
    expect(after.created_at).toBe(oldest.created_at);
  }
  const ids = added.map(({ id }) => id).reverse();
  expect((await client.list({ user_id })).items.map(({ id }) => id)).toEqual(ids);
  expect(first.items.map(({ id }) => id)).toEqual([ids.at(-3), ids.at(-4)].reverse());
  const rest = await client.list({ user_id, cursor: first.next_cursor ?? undefined });
  expect(rest.items.map(({ id }) => id)).toEqual(ids.slice(-2));
});

test('[Decision 20] an Idempotency-Key is valid when the clock jumps back or 23 hours ahead, and expires after a day', async () => {
  const clock = fakeClock();
  const { client } = await startGateway({ env: { ...clock.env, ...(await emptyFolder()) } });
  const memory = { user_id: freshUser(), content: 'once' };
  const add = async () => {
    const reply = await client.tell('POST', '/memories', memory, { 'idempotency-key': 'k' });
    expect(reply.status).toBe(201);
    return reply.body as WireMemory;
  };
  const first = await add();
  for (const seconds of [-3 * DAY, 23 * HOUR, 0]) {
    clock.jumpTo(seconds);
    expect(await add()).toEqual(first);
  }
  clock.jumpTo(DAY + MINUTE);
  const second = await add();
  expect(second.id).not.toBe(first.id);
  clock.jumpTo(0);
  expect(await add()).toEqual(second);
});

test('[SPEC Memory created_at] [Decision 20] a clock that was once 30 years ahead does not affect later memories', async () => {
  const clock = fakeClock();
  const { client } = await startGateway({ env: { ...clock.env, ...(await emptyFolder()) } });
  const user_id = freshUser();
  const add = async (content: string) => {
    const reply = await client.tell('POST', '/memories', { user_id, content }, { 'idempotency-key': 'k' });
    expect(reply.status).toBe(201);
    return reply.body as WireMemory;
  };
  clock.jumpTo(30 * YEAR);
  const wrong = Date.parse((await add('then')).created_at);
  clock.jumpTo(0);
  const right = Date.parse((await add('now')).created_at);
  expect(wrong - right).toBeGreaterThan(29 * YEAR * 1_000);
});

test('[Decision 17] a clock jump rejects no caller for longer than a minute', async () => {
  const clock = fakeClock();
  const env = { ...clock.env, ...(await emptyFolder()), OMP_RATE_LIMIT_PER_MINUTE: '5' };
  const { client } = await startGateway({ env });
  const ask = () => client.ask('/memories', { user_id: 'ana' });
  for (const seconds of [0, HOUR, -HOUR, DAY, -DAY]) {
    clock.jumpTo(seconds);
    let reply = await ask();
    // Requests at other times do not count.
    expect(reply.status).toBe(200);
    while (reply.status === 200) reply = await ask();
    expectError(reply, 'rate_limited');
    expect(Number(reply.headers.get('retry-after'))).toBeLessThanOrEqual(2 * MINUTE);
  }
});

test('[Decision 13] a key is rejected exactly while it has expired by the clock', async () => {
  const clock = fakeClock();
  const env = { ...clock.env, ...(await emptyFolder()) };
  const expires = new Date(Date.now() + HOUR * 1_000).toISOString();
  const args = ['keys', 'create', 'editor', '--grant', 'read:*', '--expires', expires];
  const { status, stdout, stderr } = await runProgram({ args, env });
  expect(status, stderr).toBe(0);
  const { client } = await startGateway({ env });
  const ask = () => client.ask('/memories', { user_id: 'ana' }, { authorization: `Bearer ${stdout.trim()}` });
  for (const [seconds, valid] of [
    [0, true],
    [2 * HOUR, false],
    [-DAY, true],
    [HOUR + MINUTE, false],
    [0, true],
  ] as const) {
    clock.jumpTo(seconds);
    expect((await ask()).status).toBe(valid ? 200 : 401);
  }
});
