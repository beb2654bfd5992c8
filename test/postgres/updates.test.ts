import { expect, it } from 'vitest';
import type { Extensions, Memory } from '#contract';
import type { FullStore } from '../support/stores.ts';
import { call, failure, memoryOf, refTo, storeForAll } from './store.ts';

const store = storeForAll();

const keys = (letter: string): Extensions =>
  Object.fromEntries(Array.from({ length: 200 }, (_, n) => [`x-${letter}${n}`, n]));

it('[Decision 6] updates that read the memory before any of them is written give it no more keys than one may', async () => {
  const provider = (await store.open()) as FullStore;
  const { id } = (await provider.add({ input: memoryOf('ana', 'tea') }, call)) as Memory;
  const [first, ...others] = ['a', 'b', 'c'].map((letter) =>
    provider.update({ ref: refTo(id), patch: { content: `of ${letter}`, extensions: keys(letter) } }, call),
  );
  const errors = others.map(failure);
  expect(Object.keys((await first)?.extensions ?? {})).toHaveLength(200);
  for (const error of await Promise.all(errors)) {
    expect(error).toMatchObject({ code: 'invalid_request', message: expect.stringContaining('256 x- keys') });
  }
});
