import { isWithinTokenLimit } from 'gpt-tokenizer/encoding/o200k_base';
import { expect, it, vi } from 'vitest';
import { linesWithin } from '../../src/core/context-lines.ts';

vi.mock('gpt-tokenizer/encoding/o200k_base', async (load) => {
  const real = await load<typeof import('gpt-tokenizer/encoding/o200k_base')>();
  return { ...real, isWithinTokenLimit: vi.fn(real.isWithinTokenLimit) };
});

it('[Decision 10] a counted line that does not fit uses up the work limit too', () => {
  const unbroken = Array.from({ length: 100 }, () => '\u65e5\u672c'.repeat(1_300));
  const { text } = linesWithin({ contents: [...unbroken, 'green tea'], budget: 300 });
  expect(text).toBe('[1] green tea');
  expect(isWithinTokenLimit).toHaveBeenCalledTimes(2);
});

it('[Decision 10] a number with joiners is not a citation', () => {
  const { text } = linesWithin({ contents: ['a [\u200d2] b [2\u200c] c [\ufe0f3]'], budget: 300 });
  expect(text).toBe('[1] a \\[\u200d2\\] b \\[2\u200c\\] c \\[\ufe0f3\\]');
});
