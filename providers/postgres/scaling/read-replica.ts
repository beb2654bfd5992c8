import { LRUCache } from 'lru-cache';
import { backgroundCall, type Call, type Log, type Provider } from '#provider';
import { type Database, statement } from '../client/connections.ts';

/** Reads that may be answered by a read replica. */
export interface ReadReplica {
  /**
   * Runs a read of this user on the replica if that shows every write of the user and of the call's consistency token, else on
   * the primary. `work` may run twice: what fails on the replica is done again on the primary.
   */
  read<Result>(user_id: string, call: Call, work: (on: 'replica' | 'primary') => Promise<Result>): Promise<Result>;
  /**
   * After a change of these users' memories: sets the token of the response. No users: every read must see it. Never rejects.
   */
  wrote(users: readonly string[], call: Call): Promise<void>;
  close(): Promise<void>;
}

export interface ReadReplicaOptions {
  readonly primary: Database;
  readonly replica: Database;
  readonly log: Log;
  /** Milliseconds between two looks at the replica. */
  readonly every_ms?: number;
}

const EVERY_MS = 1_000;
/** Users whose last write is remembered. */
const MAX_USERS = 100_000;

/** A position in the write-ahead log. */
type Position = bigint;
const NOWHERE: Position = -1n;

const latest = (a: Position, b: Position): Position => (a > b ? a : b);

const LSN = /^([0-9A-F]{1,8})\/([0-9A-F]{1,8})$/;
const toPosition = (lsn: string | undefined): Position | undefined => {
  const [, high, low] = LSN.exec(lsn ?? '') ?? [];
  return high === undefined ? undefined : (BigInt(`0x${high}`) << 32n) | BigInt(`0x${low}`);
};

const WRITTEN = statement('small', 'select pg_current_wal_insert_lsn()::text as lsn');
const REPLAYED = statement('small', 'select pg_is_in_recovery() as standby, pg_last_wal_replay_lsn()::text as lsn');

/**
 * Sends reads to a streaming replica of the primary. The replica is asked every second how far it is, and used while it answers.
 * Every read must see what the primary had written a second before; so a replica that lags by more than two seconds is not
 * used. A read that must see more, because of its user's last write or its token, asks the replica by itself.
 */
export function openReadReplica({ primary, replica, log, every_ms = EVERY_MS }: ReadReplicaOptions): ReadReplica {
  const stop = new AbortController();
  const call = backgroundCall('read-replica', stop.signal);
  const written = new LRUCache<string, Position>({ max: MAX_USERS });
  /** What the replica has replayed, at least; `NOWHERE`: it cannot be used. */
  let shown = NOWHERE;
  /** What every read must see, now and from the next round on. Answers may come out of order, so positions only rise. */
  let floor = NOWHERE;
  let next = NOWHERE;
  /**
   * Changes whose position is unknown, and how many of them `floor` includes: those before the question of a round. The first
   * one stands for all changes before the start.
   */
  let lost = 1;
  let included = 0;
  let wasUsed: boolean | undefined;

  const writtenPosition = async (): Promise<Position> => {
    const [row] = await primary.query(WRITTEN, [], call);
    return toPosition(row?.lsn as string) as Position;
  };
  const look = async () => {
    const [row] = await replica.query(REPLAYED, [], call);
    // A promoted replica no longer follows the primary.
    shown = row?.standby === true ? (toPosition(row.lsn as string) ?? NOWHERE) : NOWHERE;
  };
  const isUsable = () => shown !== NOWHERE && included === lost;
  const shows = async (wanted: Position): Promise<boolean> => {
    if (!isUsable()) return false;
    if (wanted > floor || shown < floor) await look();
    // The floor may have risen meanwhile.
    return isUsable() && shown >= latest(wanted, floor);
  };
  const round = async () => {
    let err: unknown;
    try {
      const before = lost;
      const now = await writtenPosition();
      floor = latest(floor, included === lost ? next : now);
      next = latest(next, now);
      included = before;
      await look();
    } catch (error) {
      err = error;
      shown = NOWHERE;
    }
    const isUsed = shown !== NOWHERE;
    if (isUsed !== wasUsed && !stop.signal.aborted) {
      if (isUsed) log.info({}, 'searches and lists go to the read replica');
      else log.warn({ err }, 'the read replica cannot be used; the primary answers all reads');
    }
    wasUsed = isUsed;
  };
  let running = round();
  const timer = setInterval(() => {
    running = running.then(round);
  }, every_ms).unref();

  return {
    async read(user_id, call, work) {
      const named = toPosition(call.consistency?.token) ?? NOWHERE;
      const own = written.get(user_id) ?? NOWHERE;
      try {
        if (await shows(latest(named, own))) return await work('replica');
      } catch (error) {
        if (call.aborted) throw error;
        if (shown !== NOWHERE) log.warn({ err: error }, 'a read failed on the read replica; the primary answers it');
        shown = NOWHERE;
      }
      return work('primary');
    },
    async wrote(users, { consistency }) {
      const at = await writtenPosition().catch(() => undefined);
      if (at === undefined) {
        lost++;
        return;
      }
      if (users.length === 0) floor = latest(floor, at);
      for (const user of users) written.set(user, latest(written.get(user) ?? NOWHERE, at));
      consistency?.answer(`${(at >> 32n).toString(16)}/${(at & 0xffffffffn).toString(16)}`.toUpperCase());
    },
    async close() {
      clearInterval(timer);
      stop.abort(new Error('closing'));
      await running;
    },
  };
}

type Reads = Required<Pick<Provider, 'list' | 'search' | 'neighbours'>>;

/** The provider with its lists and searches on the replica where possible, and with consistency tokens (Decision 44). */
export function withReadReplica(provider: Provider, onReplica: Reads, { read, wrote }: ReadReplica): Provider {
  const {
    capabilities,
    add,
    batch,
    keyUse,
    update,
    delete: remove,
    erase,
    import: importMemories,
  } = provider as Required<Provider>;
  const on = { primary: provider as Reads, replica: onReplica };
  /** A change that failed may have happened. */
  const change = async <Result>(users: readonly string[], call: Call, work: Promise<Result>): Promise<Result> => {
    try {
      return await work;
    } finally {
      await wrote(users, call);
    }
  };
  return {
    ...provider,
    capabilities: { ...capabilities, consistency_tokens: true },
    list: (query, call) => read(query.user_id, call, (server) => on[server].list(query, call)),
    search: (query, call) => read(query.user_id, call, (server) => on[server].search(query, call)),
    neighbours: (query, call) => read(query.user_id, call, (server) => on[server].neighbours(query, call)),
    add: (request, call) => change([request.input.user_id], call, add(request, call)),
    batch: (request, call) =>
      change(
        request.items.map(({ input }) => input.user_id),
        call,
        batch(request, call),
      ),
    async keyUse(query, call) {
      const use = await keyUse(query, call);
      // Another gateway may have added the memories just now.
      if (use) await wrote(query.users, call);
      return use;
    },
    update: (request, call) => change(request.ref.users ?? [], call, update(request, call)),
    delete: (ref, call) => change(ref.users ?? [], call, remove(ref, call)),
    erase: (request, call) => change([request.user_id], call, erase(request, call)),
    import: (request, call) =>
      change(
        request.items.map(({ memory }) => memory.user_id),
        call,
        importMemories(request, call),
      ),
  };
}
