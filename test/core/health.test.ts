import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import type { Call } from '#contract';
import { createHealth } from '../../src/core/health.ts';

beforeEach(() => {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'performance'] });
});
afterEach(() => {
  vi.useRealTimers();
});

const GOOD_MS = 1_000;
const BAD_MS = 250;
const WAIT_MS = 2_000;

const down = async () => {
  throw new Error('down');
};

/** A health that serves, and every ping that the backend saw. Each is answered as `backend.answer` does at that moment. */
function serving(answer: (call: Call) => Promise<void> = async () => {}) {
  const health = createHealth('postgres');
  const backend = { answer };
  const pings: Call[] = [];
  health.begin((call) => {
    pings.push(call);
    return backend.answer(call);
  });
  const ask = () =>
    health.check().then(
      () => 'good',
      ({ message }: Error) => message,
    );
  /** Many at once, who all hear the same. */
  const burst = async () => {
    const answers = new Set(await Promise.all(Array.from({ length: 100 }, ask)));
    expect(answers.size).toBe(1);
    return [...answers][0];
  };
  return { health, backend, pings, ask, burst };
}

describe('the backend', () => {
  it('is pinged at most once a second, for any number of checks', async () => {
    const { pings, burst } = serving();
    for (let second = 1; second <= 3; second++) {
      for (let time = 0; time < 10; time++) {
        expect(await burst()).toBe('good');
        await vi.advanceTimersByTimeAsync(GOOD_MS / 10);
      }
      expect(pings).toHaveLength(second);
    }
  });

  it('counts as down for a quarter of a second after a failure, so that its recovery shows', async () => {
    const { backend, pings, burst } = serving(down);
    expect(await burst()).toBe('down');
    backend.answer = async () => {};
    await vi.advanceTimersByTimeAsync(BAD_MS - 1);
    expect(await burst()).toBe('down');
    expect(pings).toHaveLength(1);
    await vi.advanceTimersByTimeAsync(1);
    expect(await burst()).toBe('good');
    expect(pings).toHaveLength(2);
  });

  it('may throw synchronously', async () => {
    const { ask } = serving(() => {
      throw new Error('thrown');
    });
    expect(await ask()).toBe('thrown');
  });

  it('is not pinged without a check', async () => {
    const { pings } = serving();
    await vi.advanceTimersByTimeAsync(60_000);
    expect(pings).toEqual([]);
    expect(vi.getTimerCount()).toBe(0);
  });

  it('counts as up for a second after its answer, not after the ping', async () => {
    const { backend, pings, ask } = serving();
    backend.answer = () => new Promise((resolve) => setTimeout(resolve, 1_500));
    const asked = [ask(), ask()];
    await vi.advanceTimersByTimeAsync(1_500);
    expect(await Promise.all(asked)).toEqual(['good', 'good']);
    await vi.advanceTimersByTimeAsync(GOOD_MS - 1);
    expect(await ask()).toBe('good');
    expect(pings).toHaveLength(1);
    expect(vi.getTimerCount()).toBe(0);
  });
});

describe('a backend that does not answer', () => {
  it('gets two seconds, then the ping is aborted, and no other starts before it ends', async () => {
    let settle = () => {};
    const { backend, pings, ask, burst } = serving(
      () =>
        new Promise<void>((resolve) => {
          settle = resolve;
        }),
    );
    const first = ask();
    await vi.advanceTimersByTimeAsync(WAIT_MS - 1);
    expect(pings[0]?.signal.aborted).toBe(false);
    await vi.advanceTimersByTimeAsync(1);
    expect(await first).toBe('the backend does not answer in time');
    expect(pings[0]?.signal.aborted).toBe(true);
    await vi.advanceTimersByTimeAsync(60_000);
    expect(await burst()).toBe('the backend does not answer in time');
    expect(pings).toHaveLength(1);
    settle();
    backend.answer = async () => {};
    await vi.advanceTimersByTimeAsync(0);
    expect(await burst()).toBe('good');
    expect(pings).toHaveLength(2);
  });

  it('causes no unhandled rejection when it fails without a check', async () => {
    const unhandled = vi.fn();
    process.on('unhandledRejection', unhandled);
    try {
      const { health, pings } = serving(
        ({ signal }) => new Promise((_, reject) => signal.addEventListener('abort', () => reject(signal.reason))),
      );
      // Nobody waits for the answer.
      void health.check().catch(() => {});
      await vi.advanceTimersByTimeAsync(WAIT_MS);
      await new Promise((resolve) => setImmediate(resolve));
      expect(pings[0]?.signal.aborted).toBe(true);
      expect(unhandled).not.toHaveBeenCalled();
    } finally {
      process.removeListener('unhandledRejection', unhandled);
    }
  });

  it('is named', async () => {
    const { health } = serving(() => new Promise(() => {}));
    const failed = expect(health.check()).rejects.toMatchObject({ code: 'provider_error', provider: 'postgres' });
    await vi.advanceTimersByTimeAsync(WAIT_MS);
    await failed;
  });
});

describe('the phase', () => {
  it('goes from starting, without a backend, to serving and to draining, which still pings the backend', async () => {
    const health = createHealth('postgres');
    expect(health.phase).toBe('starting');
    await expect(health.check()).rejects.toMatchObject({ code: 'provider_error', provider: 'postgres' });
    let pings = 0;
    health.begin(async () => void pings++);
    expect(health.phase).toBe('serving');
    health.drain();
    expect(health.phase).toBe('draining');
    await health.check();
    expect(pings).toBe(1);
  });
});
