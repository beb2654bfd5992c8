import { expect, it, onTestFinished, vi } from 'vitest';
import { type EmbeddingUsage, providerError, type UsageStore } from '#contract';
import { keepUsage } from '../../src/core/embedding-usage.ts';
import { call } from '../auth/call.ts';
import { recordingLog } from '../support/subject.ts';

const row = (fields: Partial<EmbeddingUsage> = {}): EmbeddingUsage => ({
  ...{ day: '2026-03-02', app: 'editor', model: 'm', texts: 1, tokens: 5, requests: 1 },
  ...fields,
});
const ALL = { since: '2026-01-01', until: '2026-12-31', limit: 100_000 };

/** A keeper of what the test puts into `used`. `fail`: whether the store fails. */
function keeper(isStored = true) {
  const used: EmbeddingUsage[] = [];
  const added: (readonly EmbeddingUsage[])[] = [];
  const state = { fail: false };
  const stored: UsageStore = {
    async add(rows) {
      if (state.fail) throw providerError('test', 'down');
      added.push(rows);
    },
    read: async () => added.flat(),
  };
  const log = recordingLog();
  const usage = keepUsage(() => used.splice(0), isStored ? stored : undefined, log);
  onTestFinished(usage.close);
  return { used, added, state, usage, log };
}

it('[Decision 63] a minute after they were counted, counts are stored; without any, nothing is asked', async () => {
  vi.useFakeTimers({ toFake: ['setInterval', 'clearInterval'] });
  onTestFinished(() => void vi.useRealTimers());
  const { used, added } = keeper();
  await vi.advanceTimersByTimeAsync(60_000);
  used.push(row(), row({ texts: 2 }), row({ app: null }));
  expect(added).toEqual([]);
  await vi.advanceTimersByTimeAsync(60_000);
  expect(added).toEqual([[row({ texts: 3, tokens: 10, requests: 2 }), row({ app: null })]]);
});

it('[Decision 63] an answer includes what is not stored yet', async () => {
  const { used, usage } = keeper();
  used.push(row());
  expect(await usage.read(ALL, call)).toEqual([row()]);
  expect(usage.since()).toBeUndefined();
});

it('[Decision 63] what the store does not take is added with the next counts', async () => {
  const { used, added, state, usage } = keeper();
  state.fail = true;
  used.push(row());
  await expect(usage.read(ALL, call)).rejects.toThrow('down');
  state.fail = false;
  used.push(row({ tokens: null }));
  await usage.close();
  expect(added).toEqual([[row({ texts: 2, tokens: null, requests: 2 })]]);
});

it('[Decision 63] the log says what is lost when the store takes nothing at the end', async () => {
  const { used, state, usage, log } = keeper();
  state.fail = true;
  used.push(row());
  await usage.close();
  expect(log.lines).toMatchObject([{ level: 'error', fields: { lost: 1 } }]);
});

it('[Decision 63] a store without usage has it since the start, in a process that forgets the oldest days', async () => {
  const before = new Date().toISOString();
  const { used, usage } = keeper(false);
  expect((usage.since() as string) >= before).toBe(true);
  used.push(row(), row({ day: '2026-03-03' }));
  expect((await usage.read(ALL, call)).map(({ day }) => day)).toEqual(['2026-03-03', '2026-03-02']);
  expect(await usage.read({ ...ALL, since: '2026-03-03' }, call)).toHaveLength(1);
  expect(await usage.read({ ...ALL, until: '2026-03-02' }, call)).toHaveLength(1);
  expect(await usage.read({ ...ALL, limit: 1 }, call)).toHaveLength(1);
  expect(await usage.read({ ...ALL, after: row({ day: '2026-03-03' }) }, call)).toEqual([row()]);
  for (let n = 0; n < 20_000; n++) used.push(row({ day: '2026-03-04', app: `subject ${n}` }));
  expect(await usage.read(ALL, call)).toHaveLength(20_000);
  expect(usage.since()).toBe('2026-03-04T00:00:00.000Z');
});
