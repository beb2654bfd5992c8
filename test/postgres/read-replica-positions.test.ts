import { setImmediate as settled } from 'node:timers/promises';
import { expect, it, onTestFinished, vi } from 'vitest';
import type { Database, Row } from '../../providers/postgres/client/connections.ts';
import { openReadReplica } from '../../providers/postgres/scaling/read-replica.ts';
import { recordingLog } from '../support/subject.ts';
import { call } from './store.ts';

const EVERY_MS = 1_000;

/** A primary whose answers the test gives, in any order, and a replica that has replayed everything up to `replayed`. */
async function scripted() {
  vi.useFakeTimers({ toFake: ['setInterval', 'clearInterval'] });
  const asked: { answer(lsn: string): Promise<void>; fail(): Promise<void> }[] = [];
  const state = { replayed: '0/10', beforeLook: async () => {} };
  const primary: Pick<Database, 'query'> = {
    query: () =>
      new Promise<Row[]>((resolve, reject) => {
        asked.push({
          answer: (lsn) => settled(resolve([{ lsn }])),
          fail: () => settled(reject(new Error('the primary is lost'))),
        });
      }),
  };
  const replica: Pick<Database, 'query'> = {
    async query() {
      const lsn = state.replayed;
      await state.beforeLook();
      return [{ standby: true, lsn }];
    },
  };
  const log = recordingLog();
  const opened = openReadReplica({
    ...{ primary: primary as Database, replica: replica as Database },
    ...{ log, every_ms: EVERY_MS },
  });
  onTestFinished(async () => {
    const closed = opened.close();
    for (const { answer } of asked) await answer('0/0');
    await closed;
    vi.useRealTimers();
  });
  /** The next question to the primary. */
  const question = () => {
    const next = asked.shift();
    if (!next) throw new Error('the primary was not asked');
    return next;
  };
  const beginRound = () => settled(void vi.advanceTimersByTime(EVERY_MS)).then(question);
  await question().answer('0/10');
  const gateway = {
    ...{ state, log, opened, beginRound },
    round: async (lsn: string) => (await beginRound()).answer(lsn),
    /** Begins to ask for the position of a change. */
    wrote(users: readonly string[]) {
      const done = opened.wrote(users, call);
      return { ...question(), done };
    },
    server: (user: string) => opened.read(user, call, async (on) => on),
  };
  expect(await gateway.server('ana')).toBe('replica');
  return gateway;
}

it.each([[['ana']], [[]]])('[Decision 44] positions of two changes of %j may come out of order', async (users) => {
  const { state, server, wrote } = await scripted();
  const [first, second] = [wrote(users), wrote(users)];
  await second.answer('0/30');
  await first.answer('0/20');
  state.replayed = '0/20';
  expect(await server('ana')).toBe('primary');
  state.replayed = '0/30';
  expect(await server('ana')).toBe('replica');
});

it('[Decision 44] a round does not undo what a change meanwhile asks of every read', async () => {
  const { state, server, wrote, beginRound, round } = await scripted();
  const slow = await beginRound();
  await wrote([]).answer('0/30');
  await slow.answer('0/20');
  state.replayed = '0/20';
  expect(await server('ana')).toBe('primary');
  await round('0/30');
  expect(await server('ana')).toBe('primary');
  state.replayed = '0/30';
  expect(await server('ana')).toBe('replica');
});

it('[Decision 44] a change during a look at the replica counts for the reads that wait for it', async () => {
  const { state, server, wrote, round } = await scripted();
  await round('0/20');
  await round('0/20');
  state.replayed = '0/20';
  state.beforeLook = () => wrote([]).answer('0/30');
  expect(await server('ana')).toBe('primary');
});

it('[Decision 44] after a change at an unknown position, no read goes to the replica until a round begins after it', async () => {
  const { state, server, wrote, beginRound, round } = await scripted();
  state.replayed = '0/20';
  await wrote(['ana']).fail();
  expect([await server('ana'), await server('ben')]).toEqual(['primary', 'primary']);
  const slow = await beginRound();
  await wrote(['ana']).fail();
  await slow.answer('0/20');
  expect([await server('ana'), await server('ben')]).toEqual(['primary', 'primary']);
  await round('0/30');
  expect(await server('ana')).toBe('primary');
  state.replayed = '0/30';
  expect([await server('ana'), await server('ben')]).toEqual(['replica', 'replica']);
});

it('logs why the replica is not used, once', async () => {
  const { log, opened, beginRound, round } = await scripted();
  const conflict = new Error('cancelled because of a conflict with recovery');
  const read = () =>
    opened.read('ana', call, async (on) => {
      if (on === 'replica') throw conflict;
      return on;
    });
  log.lines.length = 0;
  expect(await Promise.all([read(), read()])).toEqual(['primary', 'primary']);
  await round('0/10');
  for (let i = 0; i < 2; i++) await (await beginRound()).fail();
  expect(log.lines).toEqual([
    { level: 'warn', fields: { err: conflict }, message: 'a read failed on the read replica; the primary answers it' },
    {
      level: 'warn',
      fields: { err: new Error('the primary is lost') },
      message: 'the read replica cannot be used; the primary answers all reads',
    },
  ]);
});
