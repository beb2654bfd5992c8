import { expect, it } from 'vitest';
import type { Extensions, Memory } from '#contract';
import type { FullStore } from '../support/stores.ts';
import { call, memoryOf, refTo, storeForAll } from './store.ts';

const store = storeForAll();

const keys = (letter: string): Extensions =>
  Object.fromEntries(Array.from({ length: 200 }, (_, n) => [`x-${letter}${n}`, n]));

it('[Decision 6] updates that read the memory before any of them is written give it no more keys than one may', async () => {
  const provider = (await store.open()) as FullStore;
  const { id } = (await provider.add({ input: memoryOf('ana', 'tea') }, call)) as Memory;
  const outcomes = await Promise.allSettled(
    ['a', 'b', 'c'].map((letter) =>
      provider.update({ ref: refTo(id), patch: { content: `of ${letter}`, extensions: keys(letter) } }, call),
    ),
  );
  const added = outcomes.flatMap((one) =>
    one.status === 'fulfilled' ? [Object.keys(one.value?.extensions ?? {})] : [],
  );
  expect(added.map(({ length }) => length)).toEqual([200]);
  for (const one of outcomes) {
    if (one.status === 'fulfilled') continue;
    expect(one.reason).toMatchObject({ code: 'invalid_request', message: expect.stringContaining('256 x- keys') });
  }
});
