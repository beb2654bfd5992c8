import type { Call, EraseRequest, Holdings, Provider } from '#contract';

/**
 * How a store was read back after an erase. `counted`: it counted everything itself; `listed`: its memories were listed; `impossible`: it
 * can do neither; `failed`: an optional store failed, so that nothing is known.
 */
export const READ_BACKS = ['counted', 'listed', 'impossible', 'failed'] as const;

/** What became of a user in one store. */
export interface StoreErasure {
  readonly name: string;
  readonly removed: Partial<Holdings>;
  readonly left: Partial<Holdings>;
  readonly read_back: (typeof READ_BACKS)[number];
  /** Another application fills it, and may hold more. */
  readonly mapped?: true;
}

/** Kinds that an erase leaves: they hold no texts. */
const KEPT = ['audit_entries', 'large_user_notes'] as const satisfies (keyof Holdings)[];

/** Memories that a reading back by list counts at most. */
const LISTED = 100;
const LISTED_BYTES = 1024 * 1024;

type Reads = Pick<Provider, 'capabilities' | 'holdings' | 'list'>;

/** What a store still has of a user. A list of it may come from a cache of the backend; what counts itself does not. */
export async function readBack(
  { capabilities, holdings, list }: Reads,
  request: EraseRequest,
  call: Call,
): Promise<Omit<StoreErasure, 'name' | 'removed'>> {
  const read = async (): Promise<Pick<StoreErasure, 'left' | 'read_back'>> => {
    if (holdings) return { left: await holdings(request, call), read_back: 'counted' };
    if (!list) return { left: {}, read_back: 'impossible' };
    const query = { ...request, tags: [], within: null, limit: LISTED, max_bytes: LISTED_BYTES };
    return { left: { memories: (await list(query, call)).length }, read_back: 'listed' };
  };
  return { ...(await read()), ...(capabilities.mapped && { mapped: true }) };
}

/** Erases a user, then reads back what is left. */
export const eraseFrom =
  (provider: Provider, erase: NonNullable<Provider['erase']>) =>
  async (request: EraseRequest, call: Call): Promise<StoreErasure[]> => {
    const removed = await erase(request, call);
    return [
      {
        name: provider.name,
        removed: typeof removed === 'number' ? { memories: removed } : removed,
        ...(await readBack(provider, request, call)),
      },
    ];
  };

/** Whether the store was read back, and has nothing of the user but what is kept. */
export const isEmpty = ({ left, read_back }: StoreErasure): boolean =>
  (read_back === 'counted' || read_back === 'listed') &&
  Object.entries(left).every(([kind, count]) => count === 0 || KEPT.some((kept) => kept === kind));
