import type { Memory } from '#contract';

/** When it was said what a memory holds: from when it is valid, else when it was created. */
export const saidAt = ({ valid_from, created_at }: Pick<Memory, 'valid_from' | 'created_at'>): string =>
  valid_from ?? created_at;
