import { LRUCache } from 'lru-cache';
import { backgroundCall, Call, type Log, type RankingOptions, type SearchQuery } from '#provider';
import type { Database, Row, rememberStatements, Weight } from '../client/connections.ts';
import { conditionOf, conditions, whereWithin } from '../sql/conditions.ts';
import { whereUser } from './conditions.ts';
import type { Names } from './names.ts';
import {
  countMatchesStatement,
  hasIndexedFilter,
  indexSettings,
  keysOf,
  LARGE_USER_SETTINGS,
  MAX_INDEXED_LIMIT,
  type Search,
  searchStatements,
} from './search-statement.ts';
import type { Rarity } from './search-terms.ts';

export interface SearchOptions {
  readonly db: Database;
  readonly names: Names;
  readonly statement: ReturnType<typeof rememberStatements>;
  readonly ranking: RankingOptions;
  readonly largeUsers: LargeUsers;
}

/** Runs a heavy statement, as all of a search are. */
type HeavyRun = (text: string, values: readonly unknown[], call: Call, settings?: string) => Promise<Row[]>;

/** Runs a search the fastest way: over all memories of the user, over all that match, or through the indexes. Returns rows, best first. */
export function createTableSearch({ db, names, statement, ranking, largeUsers }: SearchOptions) {
  const toStatement = searchStatements(names, ranking);
  const run: HeavyRun = (text, values, call, settings) =>
    db.query(statement('heavy', text), values, call, settings && names.placement.settings(settings));
  const runLarge: HeavyRun = (text, values, call) => run(text, values, call, LARGE_USER_SETTINGS);
  const rarityOf = createRarity(names, runLarge);
  const countMatching = createMatchCount(names, runLarge);

  return async (query: SearchQuery, call: Call): Promise<Row[]> => {
    const rank = async (way: Partial<Search>, settings?: string): Promise<Row[]> => {
      const { text, values } = toStatement({ query, ...way });
      const rows = await run(text, values, call, settings);
      return !way.within && rows.some(({ content }) => content === null)
        ? rank({ ...way, within: 'bytes' }, settings)
        : rows;
    };
    const large = largeUsers.has(query.user_id);
    const indexable = query.limit <= MAX_INDEXED_LIMIT && (query.vector?.some((part) => part !== 0) ?? true);
    if (large && indexable) {
      const rarity = await rarityOf(query, keysOf(ranking, query), call);
      const few = largeUsers.walkPaysAbove();
      const most = Math.max(few, FEW_MATCHES);
      if (hasIndexedFilter(query) && (await countMatching(query, most + 1, call)) <= most)
        return rank({ rarity, matching: true }, LARGE_USER_SETTINGS);
      if (rarity.rows > few) {
        const rows = await rank({ rarity }, indexSettings(rarity.rows));
        // Other memories may score 0 too, and the newest of them come first: unless all were compared, they must be now.
        const isFull = rows.length === query.limit && rows.at(-1)?.score !== 0;
        if (isFull || rows[0]?.complete || ranking.mode === 'keyword') return rows;
      }
    }
    const rows = await rank({}, large ? LARGE_USER_SETTINGS : undefined);
    largeUsers.observe(query.user_id, Number(rows[0]?.total ?? 0));
    return rows;
  };
}

/** Comparing this many memories takes 5 ms; walking the vector index for so few could take far longer. */
const FEW_MATCHES = 2_000;

/** Of the filters that counts are kept for: a caller chooses them, and its allowed scopes may be long. */
const MAX_KEY_CHARACTERS = 4 * 1024 * 1024;

/** How many memories match the filters of a search, at most `limit`. Counted once a minute. */
function createMatchCount(names: Names, run: HeavyRun) {
  const kept = new LRUCache<string, number>({
    ttl: FRESH_MS,
    maxSize: MAX_KEY_CHARACTERS,
    sizeCalculation: (_, key) => key.length,
  });
  return async (query: SearchQuery, limit: number, call: Call): Promise<number> => {
    const { user_id, within, scope, tags, since, until } = query;
    const key = JSON.stringify([user_id, within, scope, tags, since, until, limit]);
    const known = kept.get(key);
    if (known !== undefined) return known;
    const { text, values } = countMatchesStatement(names, query, limit);
    const [{ matching }] = (await run(text, values, call)) as [{ matching: number }];
    kept.set(key, matching);
    return matching;
  };
}

/** A count, and when it was made. */
interface Count {
  readonly count: number;
  readonly at: number;
}

/** Counts of one user, within the allowed scopes of one grant. */
interface Counted {
  readonly rows: Count;
  readonly holding: Map<number, Count>;
}

/**
 * Counts older than a minute are made again, beside the search that uses them: counting a hundred thousand memories takes
 * 10 ms, and ten times as much for a term that all of them contain. Memories added meanwhile make the counts slightly wrong;
 * they are found all the same.
 */
const FRESH_MS = 60_000;
/** A search waits for counts that would be older than this. */
const USABLE_MS = 3_600_000;
const MAX_CACHED = 1_000;
/** Terms of all users together, about 100 bytes each. */
const MAX_CACHED_TERMS = 200_000;
const MAX_TERMS_OF_USER = 10_000;

/**
 * Counts how rare the terms of a query are for a large user. Each grant has its own counts, over the memories it allows:
 * otherwise scores would reveal the terms of hidden memories.
 */
export function createRarity(names: Names, run: HeavyRun, now = Date.now) {
  const kept = new LRUCache<string, Counted>({
    max: MAX_CACHED,
    maxSize: MAX_CACHED_TERMS,
    sizeCalculation: ({ holding }) => 1 + holding.size,
  });
  const refreshing = new Set<string>();

  const count = async (
    query: SearchQuery,
    wanted: CountRequest & { known: Counted | undefined },
    call: Call,
  ): Promise<Counted> => {
    const whose = whoseOf(query);
    const at = now();
    const { text, values } = countStatement(names, query, wanted);
    const [row] = (await run(text, values, call)) as [{ rows: number; holding: number[] }];
    // Other searches may have counted terms meanwhile, or caused the known ones to be dropped.
    const known = kept.peek(whose) ?? wanted.known;
    const rows = wanted.all || !known ? { count: row.rows, at } : known.rows;
    const holding = new Map([...(wanted.known?.holding ?? []), ...(known?.holding ?? [])]);
    for (const [i, key] of wanted.keys.entries()) holding.set(key, { count: row.holding[i] as number, at });
    if (holding.size > MAX_TERMS_OF_USER) kept.delete(whose);
    else kept.set(whose, { rows, holding });
    return { rows, holding };
  };
  /** Makes counts again without delaying the search. After a failure the next search tries again. */
  const refresh = (query: SearchQuery, known: Counted, keys: readonly number[], caller: Call['caller']) => {
    const oldest = now() - FRESH_MS;
    const old = keys.filter((key) => (known.holding.get(key) as Count).at < oldest);
    const all = known.rows.at < oldest;
    const whose = whoseOf(query);
    if ((!all && old.length === 0) || refreshing.has(whose)) return;
    refreshing.add(whose);
    const call = new Call('rarity', caller);
    void count(query, { keys: old, all, known }, call)
      .catch(() => undefined)
      .finally(() => refreshing.delete(whose));
  };

  return async (query: SearchQuery, keys: readonly number[], call: Call): Promise<Rarity> => {
    const isUsable = (found: Count | undefined) => found !== undefined && found.at >= now() - USABLE_MS;
    const found = kept.get(whoseOf(query));
    const known = isUsable(found?.rows) ? found : undefined;
    const missing = keys.filter((key) => !isUsable(known?.holding.get(key)));
    const counted =
      known && missing.length === 0 ? known : await count(query, { keys: missing, all: !known, known }, call);
    refresh(query, counted, keys, call.caller);
    const holding = keys.map((key) => (counted.holding.get(key) as Count).count);
    // Memories may have been added between two counts. A term in more memories than there are would count against them.
    return { rows: Math.max(counted.rows.count, ...holding), holding };
  };
}

const whoseOf = ({ user_id, within, outside }: SearchQuery): string => JSON.stringify([user_id, within, outside]);

interface CountRequest {
  readonly keys: readonly number[];
  /** Whether to count all memories too. */
  readonly all: boolean;
}

export function countStatement(names: Names, query: SearchQuery, { keys, all }: CountRequest) {
  const where = conditions(names.placement.shardOf(query.user_id));
  const wanted = where.bind(`{${keys}}`);
  const visible = conditionOf(where, (inner) => whereWithin(inner, query));
  const whole = () =>
    `select count(*) from ${names.memories} where ${where.inShard()} and ${conditionOf(where, (inner) => whereUser(inner, query, where.bind(query.user_id)))} and ${visible}`;
  return {
    text: `select (${all ? whole() : 'select null'})::float8 as rows, array(
        select (select count(*) from ${names.memories} where ${where.inShard()} and large and keywords @> array[key] and ${visible})
        from unnest(${wanted}::bigint[]) with ordinality as term (key, n) order by n)::float8[] as holding`,
    values: where.values,
  };
}

export interface LargeUsers {
  has(userId: string): boolean;
  /** Above this many memories, walking the vector index for them costs less than comparing all of them. */
  walkPaysAbove(): number;
  /** Reports how many memories a search of this user saw. Above the threshold they are moved into the indexes. */
  observe(userId: string, atLeast: number): void;
  close(): Promise<void>;
}

export interface LargeUsersOptions {
  readonly db: Database;
  readonly names: Names;
  readonly statement: ReturnType<typeof rememberStatements>;
  /** Memories that a user may have before the indexes are used. */
  readonly threshold: number;
  readonly log: Log;
  /** Runs after a user is entered on the primary, before its searches use the indexes. */
  readonly beforeUse: (call: Call) => Promise<void>;
}

const REFRESH_MS = 30_000;
/**
 * Measured (docs/backends/postgres.md): a search needs fifty rows of the user. On the way to each, the index walk passes
 * rows of other users, and each of these costs as much as four memories in an exact search. So the index pays when
 * 4 · 50 · (rows in the index / rows of the user) is less than the rows of the user.
 */
const COST_OF_WALK = 200;
/** In a smaller index every walk is short. */
const SMALL_INDEX = 50_000;
/** Rows flagged at a time, to keep the locks short: each enters three indexes. */
const BATCH = 500;
/** Deadline of the lock, in milliseconds: adds queue behind the request for it. */
const LOCK_MS = 2_000;

/** Selects the rows of the vector index in this table. */
const indexSize = (table: string): string => `select max(c.reltuples) as rows from pg_index i
    join pg_class c on c.oid = i.indexrelid join pg_am a on a.oid = c.relam
    where i.indrelid = ${table}::regclass and a.amname = 'hnsw'`;

/**
 * The users that are searched through the vector and keyword indexes: all of their rows have the flag `large`. Until a
 * replica has read that another one moved a user, its searches of that user are slower.
 */
export async function openLargeUsers({
  db,
  names,
  statement,
  threshold,
  log,
  beforeUse,
}: LargeUsersOptions): Promise<LargeUsers> {
  const stop = new AbortController();
  const call = backgroundCall('large-users', stop.signal);
  const moving = new Map<string, Promise<void>>();
  let users = new Set<string>();
  let indexed = 0;

  const run = (weight: Weight, text: string, values: readonly unknown[] = []) =>
    db.query(statement(weight, text), values, call);
  const refresh = async () => {
    const rows = await run('small', `select user_id from ${names.largeUsers} where ready`);
    await beforeUse(call);
    users = new Set(rows.map((row) => row.user_id as string));
    const [index] = await run('small', names.placement.largest(indexSize));
    indexed = Number(index?.rows ?? 0);
  };
  const move = async (userId: string) => {
    // Every insert reads this table. The lock waits for inserts in progress; later ones see the user here and flag their
    // row. So once the existing rows are flagged, all are.
    await db.query(
      statement('small', `insert into ${names.largeUsers} (bucket, user_id) values ($1, $2) on conflict do nothing`),
      [names.placement.storedBucket(userId), userId],
      call,
      `set local lock_timeout = ${LOCK_MS}; lock table ${names.largeUsers} in access exclusive mode`,
    );
    const { bind, values, inShard } = conditions(names.placement.shardOf(userId));
    const isUser = `${inShard()} and user_id = ${bind(userId)}`;
    const flag = `update ${names.memories} set large = true where ${inShard()} and id in (
        select id from ${names.memories} where ${isUser} and not large limit ${BATCH}) returning 1`;
    while ((await run('heavy', flag, values)).length > 0);
    await run('small', `update ${names.largeUsers} set ready = true where ${isUser}`, values);
    await beforeUse(call);
    users.add(userId);
  };
  const background = (work: Promise<void>, what: string) =>
    work.catch((error: unknown) => {
      if (!stop.signal.aborted) log.warn({ err: error }, `${what} failed; it will be retried`);
    });

  await refresh();
  const timer = setInterval(() => void background(refresh(), 'reading the list of large users'), REFRESH_MS).unref();
  return {
    has: (userId) => users.has(userId),
    walkPaysAbove: () => (indexed < SMALL_INDEX ? 0 : Math.floor(Math.sqrt(COST_OF_WALK * indexed))),
    observe(userId, atLeast) {
      if (atLeast <= threshold || users.has(userId) || moving.has(userId)) return;
      moving.set(
        userId,
        background(move(userId), 'indexing a large user').finally(() => moving.delete(userId)),
      );
    },
    async close() {
      clearInterval(timer);
      stop.abort(new Error('closing'));
      await Promise.all(moving.values());
    },
  };
}
