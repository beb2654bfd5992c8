import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { describe, expect, it } from 'vitest';
import { backgroundCall } from '#contract';
import { createKeyedMutex } from '#toolbox';

const settle = () => new Promise((resolve) => setImmediate(resolve));

describe('createKeyedMutex', () => {
  it('runs work for one key sequentially, in order of arrival', async () => {
    const mutex = createKeyedMutex();
    const begun: string[] = [];
    const ends: (() => void)[] = [];
    const run = (name: string) =>
      mutex('id', () => {
        begun.push(name);
        return new Promise<string>((resolve) => ends.push(() => resolve(name)));
      });
    const all = [run('a'), run('b'), run('c')];
    for (const [i, name] of ['a', 'b', 'c'].entries()) {
      await settle();
      expect(begun).toEqual(['a', 'b', 'c'].slice(0, i + 1));
      ends[i]?.();
      expect(await all[i]).toBe(name);
    }
  });

  it('does not block work for another key or of another mutex', async () => {
    const mutex = createKeyedMutex();
    const ends: (() => void)[] = [];
    const held = mutex('id', () => new Promise<void>((resolve) => void ends.push(resolve)));
    expect(await mutex('other', async () => 1)).toBe(1);
    expect(await createKeyedMutex()('id', async () => 2)).toBe(2);
    for (const end of ends) end();
    await held;
  });

  it.each<[string, () => Promise<never>]>([
    ['rejects', () => Promise.reject(new Error('broken'))],
    [
      'throws',
      () => {
        throw new Error('broken');
      },
    ],
  ])('continues after work that %s', async (_, work) => {
    const mutex = createKeyedMutex();
    const failed = mutex('id', work);
    const next = mutex('id', async () => 'next');
    await expect(failed).rejects.toThrow('broken');
    expect(await next).toBe('next');
  });

  it('stays sequential when work arrives while the last work runs or ends', async () => {
    const mutex = createKeyedMutex();
    let working = 0;
    let most = 0;
    const order: number[] = [];
    const run = (n: number): Promise<void> =>
      mutex('id', async () => {
        working++;
        most = Math.max(most, working);
        for (let turns = n % 4; turns > 0; turns--) await null;
        order.push(n);
        working--;
      });
    const all: Promise<void>[] = [];
    for (let n = 0; n < 500; n++) {
      all.push(run(n));
      // Sometimes the queue grows, sometimes it is empty, and sometimes the next work arrives at that moment.
      for (let turns = (n * 31) % 17; turns > 0; turns--) await null;
    }
    await Promise.all(all);
    expect(most).toBe(1);
    expect(order).toEqual(Array.from({ length: 500 }, (_, n) => n));
  });

  it('keeps no idle keys', async () => {
    setFlagsFromString('--expose-gc');
    const collect = runInNewContext('gc') as () => void;
    const mutex = createKeyedMutex();
    const made: WeakRef<object>[] = [];
    const result = async () => {
      const one = { size: new Uint8Array(1_000) };
      made.push(new WeakRef(one));
      return one;
    };
    for (let i = 0; i < 100; i++) await mutex(`id ${i % 50}`, result);
    await mutex('id', () => Promise.reject(new Error('broken'))).catch(() => {});
    // What a WeakRef showed in this turn of the event loop stays until the next.
    await settle();
    collect();
    expect(made.filter((one) => one.deref() !== undefined)).toEqual([]);
    expect(await mutex('id 1', async () => 'still works')).toBe('still works');
  });
});

it('much work may wait for one signal, without a warning of a leak', async () => {
  const warnings: Error[] = [];
  const note = (warning: Error) => void warnings.push(warning);
  process.on('warning', note);
  try {
    const stop = new AbortController();
    const all = Array.from({ length: 20 }, () =>
      backgroundCall('test', stop.signal).unlessAborted(new Promise(() => {})),
    );
    stop.abort(new Error('stopped'));
    for (const work of all) await expect(work).rejects.toThrow('stopped');
    await settle();
    expect(warnings).toEqual([]);
  } finally {
    process.off('warning', note);
  }
});
