import type { Memory } from '#contract';

/** A record as the client sees it: its `x-` keys stand beside the protocol's own (README, "Decisions" 6). */
export const toWire = ({ extensions, ...memory }: Memory) => ({ ...memory, ...extensions });
