import {
  addUsage,
  type BatchOutcome,
  type BatchRequest,
  type Call,
  createKeyedMutex,
  type KeyClaim,
  type KeyUse,
  type LimitsOf,
  type Memory,
  NO_USAGE,
  OmpError,
  overLimit,
  type Provider,
  type UserLimits,
  usageOf,
  usedBy,
} from '#provider';
import type { Query, Row, Run } from '../client/connections.ts';
import type { Insert } from './insert-statement.ts';
import type { Names } from './names.ts';
import { createUsage, type Room } from './user-usage.ts';

interface Options {
  readonly names: Names;
  readonly run: Run;
  send(query: Query, call: Call): Promise<Row[]>;
  insertAll(inserts: readonly Insert[], key: KeyClaim | undefined, call: Call, room: Room): Query;
  insertOf(item: BatchRequest['items'][number], call: Call): Promise<Insert>;
  keyUse: NonNullable<Provider['keyUse']>;
}

export function createLimitedChanges({ names, run, send, insertAll, insertOf, keyUse }: Options) {
  const since = new Date().toISOString();
  const { count, userUsage } = createUsage(names, run, since);
  // So that the adds of one user wait here, and not on connections that others need.
  const mutex = createKeyedMutex();

  /** Adds what fits of one user's memories. Undefined: another request has used the key. */
  const addOf = async (
    user_id: string,
    inserts: readonly Insert[],
    { key, limits }: { readonly key: KeyClaim | undefined; readonly limits: UserLimits },
    call: Call,
  ): Promise<BatchOutcome[] | undefined> => {
    const outcomes: BatchOutcome[] = inserts.map(({ memory }) => memory);
    for (;;) {
      call.throwIfAborted();
      const places = [...outcomes.keys()].filter((place) => !(outcomes[place] instanceof OmpError));
      if (places.length === 0) {
        // What this key has added meanwhile may have taken the room.
        const isUsed = key && !isSameUse(await keyUse({ ...key, users: [user_id] }, call), key.before);
        return isUsed ? undefined : outcomes;
      }
      const fitting = places.map((place) => inserts[place] as Insert);
      const added = fitting.map(({ memory }) => usageOf(memory)).reduce(addUsage, NO_USAGE);
      const claim = key && { ...key, places: places.map((place) => key.places[place] as number) };
      const rows = await send(insertAll(fitting, claim, call, { user_id, added, limits, since }), call);
      if (rows.length > 0) return outcomes;
      if (key && !isSameUse(await keyUse({ ...key, users: [user_id] }, call), key.before)) return undefined;
      const counted = await count(user_id, '', call);
      if (!counted) continue;
      let { used } = counted;
      for (const [place, { memory }] of inserts.entries()) {
        const rejection = overLimit(used, usageOf(memory), limits);
        outcomes[place] = rejection ?? memory;
        if (!rejection) used = addUsage(used, usageOf(memory));
      }
    }
  };

  const batch = async (
    { items, key, limits }: BatchRequest & { readonly limits: LimitsOf },
    call: Call,
  ): Promise<BatchOutcome[] | undefined> => {
    const inserts: Insert[] = [];
    for (const item of items) inserts.push(await insertOf(item, call));
    const outcomes: BatchOutcome[] = [];
    let before: KeyUse | undefined = key?.before;
    let failure: OmpError | undefined;
    // Each user by itself, so that no request waits for the rows of two.
    for (const user_id of new Set(items.map(({ input }) => input.user_id))) {
      const places = [...items.keys()].filter((place) => items[place]?.input.user_id === user_id);
      const claim = key && { ...key, before, places: places.map((place) => key.places[place] as number) };
      const own = places.map((place) => inserts[place] as Insert);
      const add = () => addOf(user_id, own, { key: claim, limits: limits(user_id) }, call);
      let added: BatchOutcome[] | undefined;
      try {
        if (failure) throw failure;
        added = await mutex(user_id, add);
      } catch (error) {
        const isFirst = outcomes.every((outcome) => outcome === undefined);
        if (isFirst || !(error instanceof OmpError)) throw error;
        failure = error;
        added = own.map(() => error);
      }
      if (!added) return undefined;
      if (claim && !added.every((outcome) => outcome instanceof OmpError)) before = usedBy(claim, added);
      for (const [i, place] of places.entries()) outcomes[place] = added[i] as BatchOutcome;
    }
    return outcomes;
  };

  return {
    batch,
    userUsage,
    /**
     * Runs a change of a content again until it meets figures that are exact. `isOpen`: whether the memory is still there, and as it was.
     * Undefined: the store did not take it.
     */
    async change(
      { user_id, id, content }: Pick<Memory, 'user_id' | 'id' | 'content'>,
      limits: UserLimits,
      { send, isOpen }: { send(room: Room): Promise<Row[]>; isOpen(): Promise<boolean> },
      call: Call,
    ): Promise<Row | undefined> {
      const added = { ...NO_USAGE, bytes: usageOf({ content }).bytes };
      return mutex(user_id, async () => {
        for (let tries = MAX_TRIES; ; tries--) {
          call.throwIfAborted();
          const [row] = await send({ user_id, added, limits, since });
          // Counting reads all that the user has, and would not help.
          if (row || tries === 0 || !(await isOpen())) return row;
          const counted = await count(user_id, id, call);
          const growth = { ...added, bytes: added.bytes - (counted?.own ?? 0) };
          const rejection = counted && overLimit(counted.used, growth, limits);
          if (rejection) throw rejection;
        }
      });
    },
  };
}

/** How often a change of a content is tried again: others may change the memory, or take the room, between the steps each time. */
const MAX_TRIES = 20;

const isSameUse = (one: KeyUse | undefined, other: KeyUse | undefined): boolean =>
  one?.added.map((identity) => identity?.id).join() === other?.added.map((identity) => identity?.id).join();
