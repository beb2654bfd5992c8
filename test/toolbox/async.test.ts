import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { describe, expect, it } from 'vitest';
import { createKeyedMutex } from '#toolbox';

/** A few turns of the event loop, so that whatever could begin has begun. */
const settle = () => new Promise((resolve) => setTimeout(resolve, 5));

/** Work that ends when it is told to, and tells of its beginning. */
const controlled = (name: string, begun: string[]) => {
  let end = (_outcome: Error | undefined): void => {};
  const ended = new Promise<Error | undefined>((resolve) => {
    end = resolve;
  });
  const work = async (): Promise<string> => {
    begun.push(name);
    const error = await ended;
    if (error) throw error;
    return name;
  };
  return { work, end: (error?: Error) => end(error) };
};

describe('createKeyedMutex', () => {
  it('runs work for one key sequentially, in order of arrival', async () => {
    const mutex = createKeyedMutex();
    const begun: string[] = [];
    const [a, b, c] = ['a', 'b', 'c'].map((name) => controlled(name, begun)) as [
      ReturnType<typeof controlled>,
      ReturnType<typeof controlled>,
      ReturnType<typeof controlled>,
    ];
    const first = mutex('id', a.work);
    const second = mutex('id', b.work);
    const third = mutex('id', c.work);
    // The last may end first as soon as it is let begin: nothing but its turn holds it back.
    c.end();
    await settle();
    expect(begun).toEqual(['a']);
    a.end();
    expect(await first).toBe('a');
    await settle();
    expect(begun).toEqual(['a', 'b']);
    b.end();
    expect(await Promise.all([second, third])).toEqual(['b', 'c']);
  });

  it('does not block work for another key or of another mutex', async () => {
    const mutex = createKeyedMutex();
    const held = controlled('held', []);
    const pending = mutex('id', held.work);
    expect(await mutex('other', async () => 1)).toBe(1);
    expect(await createKeyedMutex()('id', async () => 2)).toBe(2);
    held.end();
    await pending;
  });

  it('rejects for failed work and continues with the next', async () => {
    const mutex = createKeyedMutex();
    const begun: string[] = [];
    const failing = controlled('failing', begun);
    const first = mutex('id', failing.work);
    const second = mutex('id', async () => 'next');
    failing.end(new Error('broken'));
    await expect(first).rejects.toThrow('broken');
    expect(await second).toBe('next');
    const thrown = mutex('id', () => {
      throw new Error('before there was a promise');
    });
    const after = mutex('id', async () => 'after');
    await expect(thrown).rejects.toThrow('before there was a promise');
    expect(await after).toBe('after');
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
      // Sometimes the queue grows, sometimes it runs empty, and sometimes the next one comes at that very moment.
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
