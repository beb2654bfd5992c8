import { type Freeze, type Freezing, storeFrozen } from '#provider';

/** `requireThawed` throws while the store is frozen. It is called in the tick of each change. */
export function createFreezing(provider: string): { readonly freezing: Freezing; requireThawed(): void } {
  let frozen: Freeze | undefined;
  return {
    freezing: {
      current: async () => frozen,
      async freeze({ by }) {
        frozen ??= { since: new Date().toISOString(), by };
        return frozen;
      },
      async unfreeze() {
        const ended = frozen;
        frozen = undefined;
        return ended;
      },
    },
    requireThawed() {
      if (frozen) throw storeFrozen(provider, frozen.since);
    },
  };
}
