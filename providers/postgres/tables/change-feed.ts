import pg from 'pg';
import {
  AUDIT_ACTIONS,
  beginAnew,
  type Call,
  type Change,
  type ChangesQuery,
  invalidRequest,
  type Provider,
} from '#provider';
import type { Row, Run } from '../client/connections.ts';
import { conditionOf, conditions, toLikePattern, whereWithin } from '../sql/conditions.ts';
import { toIso, toTextArray } from '../sql/values.ts';
import type { Names } from './names.ts';

/*
 * The feed of changes (Decision 51). The entry of a change holds the id of its transaction (xid). They are given in order, and a snapshot
 * knows the oldest transaction that is still running, the horizon: below it nothing can appear any more. So the feed is what lies
 * below the horizon, by transaction and sequence. Each node of Citus has xids and a horizon of its own; a single server is the node 0.
 */

/** Where a reader stands in the changes of one node. */
interface Position {
  readonly xid: bigint;
  readonly seq: bigint;
}

/** A node as it is now. */
interface Head {
  /** Stands for where its xids come from: another server, a restored copy or a promoted standby has another one. */
  readonly origin: string;
  readonly horizon: bigint;
  /** The last transaction whose entries the retention deleted; undefined: none. */
  readonly deletedUpTo: bigint | undefined;
}

const LAST_SEQ = 2n ** 63n - 1n;
/** The beginning of what is kept. */
const beginningOf = ({ deletedUpTo }: Head): Position =>
  deletedUpTo === undefined ? { xid: 0n, seq: 0n } : { xid: deletedUpTo, seq: LAST_SEQ };
/** A node that Citus no longer has: its entries are on others, and it makes no new ones. Its position in a cursor cannot be checked. */
const NO_NODE: Head = { origin: '00000000', horizon: 2n ** 64n - 1n, deletedUpTo: undefined };

/** Most nodes with numbers above those of all others that Citus may have lost since a cursor was made. Each costs a statement. */
const MAX_REMOVED = 8;

/** Entries that one part looks at if the query has a filter. */
const SCANNED = 5_000;

/** Left scopes of the changes in one part, so that a reader of them all is not held up by erased users: at most 1 MB. */
const MAX_NAMED = 2_000;

/** The file of the embedded engine that names its database; a restored one gets another name. */
const DATABASE_ID = `pg_read_file('omp-gateway.id', 0, 64, true)`;

/** SQL of what a node says of itself. */
const here = ({ auditLog }: Names, embedded: boolean): string => `
  select left(md5(concat_ws(' ', system_identifier, substr(pg_walfile_name(pg_current_wal_insert_lsn()), 1, 8), oid,
      to_regclass(${pg.escapeLiteral(auditLog)})::oid${embedded ? `, ${DATABASE_ID}` : ''})), 8) as origin,
    pg_snapshot_xmin(pg_current_snapshot())::text as horizon
  from pg_control_system(), pg_database where datname = current_database()`;

/** SQL of the seconds for which an open transaction has held the horizon of a node; 0: none does. Of other roles it needs the right to see them. */
export const heldSeconds = ({ placement }: Names): string => {
  const oldest = `select least((select min(xact_start) from pg_stat_activity where backend_xid is not null),
    (select min(prepared) from pg_prepared_xacts)) as begun`;
  return `select coalesce(max(extract(epoch from clock_timestamp() - begun)), 0)::float8 as seconds
    from (${placement.timesOnNodes(oldest, 'begun')}) as oldest`;
};

/** Actions that change memories. Gateways of older versions mark the entries of all actions as changes. */
const CHANGES = AUDIT_ACTIONS.filter((action) => ['add', 'update', 'delete', 'erase', 'import'].includes(action));

export function createChangeFeed(
  names: Names,
  run: Run,
  embedded: boolean,
): Required<Pick<Provider, 'changes' | 'changesHeld'>> {
  const { auditLog, store, logStarts } = names;
  const heads = names.placement.onNodes(here(names, embedded), 'origin text, horizon text');

  const readHeads = async (call: Call): Promise<{ nodes: Map<number, Head>; base: string }> => {
    const rows = await run(
      'small',
      `select h.*, s.log_origin, s.log_base::text as base,
         (select xid::text from ${logStarts} l where l.node = h.node) as deleted
       from (${heads}) as h, ${store} s order by h.node`,
      [],
      call,
    );
    const [first] = rows as [Row];
    // The sequence of a copy goes on above its entries, whose ids are those of another server.
    if (first.origin !== first.log_origin) {
      await run(
        'small',
        `update ${store} set log_origin = $1,
           log_base = case when log_origin is null then 0 else coalesce((select max(seq) from ${auditLog}), 0) end
         where log_origin is distinct from $1`,
        [first.origin],
        call,
      );
      return readHeads(call);
    }
    const nodes = rows.map(({ node, origin, horizon, deleted }): [number, Head] => [
      node as number,
      {
        origin: origin as string,
        horizon: BigInt(horizon as string),
        deletedUpTo: deleted === null ? undefined : BigInt(deleted as string),
      },
    ]);
    return { nodes: new Map(nodes), base: first.base as string };
  };

  return {
    async changes({ after, limit, ...filter }: ChangesQuery, call) {
      const { nodes, base } = await readHeads(call);
      const known = after === undefined || after === 'now' ? undefined : decode(after);
      const count = Math.max(...nodes.keys()) + 1;
      const places = Array.from({ length: Math.max(known?.length ?? 0, count) });
      const all = places.map((_, node) => nodes.get(node) ?? NO_NODE);
      const end = all.map(({ horizon }): Position => ({ xid: horizon, seq: 0n }));
      const write = (positions: readonly Position[]) => encode(positions, all);
      if (after === 'now') return { changes: [], next: write(end), more: false };
      const start = all.map((head, node) => (known ? positionIn(head, known[node]) : beginningOf(head)));
      const removed = places.length - count;
      if (removed > 0 && !names.placement.distributed) throw malformed();
      if (removed > MAX_REMOVED) throw beginAnew('too many nodes were removed since this cursor');
      const parts = await Promise.all(
        start.map((from, node) => {
          const { horizon } = all[node] as Head;
          return from.xid < horizon
            ? readPart({ names, run, node, from, horizon, base, limit, ...filter }, call)
            : { rows: [], end: from, more: false };
        }),
      );
      return merge(parts, start, { limit, write, origin: (all[0] as Head).origin });
    },
    changesHeld: async (call) => (await run('small', heldSeconds(names), [], call))[0]?.seconds as number,
  };
}

interface PartQuery extends Omit<ChangesQuery, 'after'> {
  readonly names: Names;
  readonly run: Run;
  /** The node that wrote the entries, wherever they are now. */
  readonly node: number;
  readonly from: Position;
  readonly horizon: bigint;
  /** Entries up to this sequence have the ids of another server. */
  readonly base: string;
}

/** Changes of one node. */
interface NodeChanges {
  readonly rows: readonly Row[];
  /** The position after everything that was looked at. */
  readonly end: Position;
  readonly more: boolean;
}

async function readPart(
  { names, run, node, from, horizon, base, users, within, scope, limit, left_scopes }: PartQuery,
  call: Call,
): Promise<NodeChanges> {
  const where = conditions(users ? names.placement.shardsOf(users) : undefined);
  const { bind } = where;
  where.and(where.inShard());
  where.and(`node = ${bind(node)} and seq > ${bind(base)}::bigint`);
  where.and(
    `xid >= ${bind(`${from.xid}`)}::xid8 and (xid, seq) > (${bind(`${from.xid}`)}::xid8, ${bind(`${from.seq}`)}::bigint) and xid < ${bind(`${horizon}`)}::xid8`,
  );
  const scoped = conditionOf(where, (inner) => {
    whereWithin(inner, { within });
    if (scope !== undefined) inner.and(`scope like ${bind(toLikePattern(scope))}`);
  });
  const ofUsers = users ? `user_id = any(${bind(toTextArray(users))}::text[])` : 'user_id is not null';
  const scan = users || scoped !== 'true' ? Math.max(SCANNED, limit) : limit;
  const matching = `outcome = 'ok' and action = any(${bind(toTextArray(CHANGES))}::text[]) and ${ofUsers}
    and (${scoped} or exists (select from unnest(left_scopes) as scope where ${scoped}))`;
  const order = 'order by xid, seq';
  const firstLeft =
    scoped === 'true'
      ? 'null::text[]'
      : `array(select scope from unnest(left_scopes) with ordinality as l (scope, place) where ${scoped} order by place limit 1)`;
  const rows = await run(
    'heavy',
    `with scanned as materialized (
       select xid, seq, timestamp, app, action, outcome, user_id, memory_id, scope, left_scopes
       from ${names.auditLog} where ${where} ${order} limit ${bind(scan)}),
     last as (select xid as last_xid, seq as last_seq from scanned ${order} offset ${bind(scan - 1)}),
     found as (
       select xid, seq, timestamp, app, action, user_id, memory_id, scope, ${left_scopes === 'first' ? firstLeft : 'left_scopes'} as left_scopes
       from (select * from scanned where ${matching} ${order} limit ${bind(limit)}) as f),
     counted as (select *, cardinality(left_scopes) as own, sum(cardinality(left_scopes)) over (${order}) as named, count(*) over () from found)
     select last_xid::text, last_seq::text, xid::text, seq::text, date_part('epoch', timestamp) * 1000 as milliseconds, app, action,
       user_id, memory_id, scope, left_scopes, count::float8
     from (select 1) as one left join last on true
       left join counted as m on named is null or named <= ${MAX_NAMED} or named = own order by m.xid, m.seq`,
    where.values,
    call,
  );
  const found = rows.filter(({ xid }) => xid !== null);
  const [{ last_xid, last_seq }, newest] = [rows[0] as Row, found.at(-1)];
  // There are more if this is as many as asked for, or if those after it would name too many scopes.
  if (newest && (found.length === limit || found.length < (newest.count as number)))
    return { rows: found, end: positionOf(newest), more: true };
  if (last_xid === null) return { rows: found, end: { xid: horizon, seq: 0n }, more: false };
  return { rows: found, end: { xid: BigInt(last_xid as string), seq: BigInt(last_seq as string) }, more: true };
}

const positionOf = ({ xid, seq }: Row): Position => ({ xid: BigInt(xid as string), seq: BigInt(seq as string) });

interface MergeOptions {
  readonly limit: number;
  write(positions: readonly Position[]): string;
  /** Stands for the store: sequences go on in a copy of it. */
  readonly origin: string;
}

/** The first changes of all nodes. Those of one node keep their order; the oldest of the next ones comes first. */
function merge(parts: readonly NodeChanges[], start: readonly Position[], { limit, write, origin }: MergeOptions) {
  const positions = [...start];
  const taken = parts.map(() => 0);
  const changes: Change[] = [];
  while (changes.length < limit) {
    let node = -1;
    for (const [other, { rows }] of parts.entries()) {
      const row = rows[taken[other] as number];
      const least = parts[node]?.rows[taken[node] as number];
      if (row && (!least || (row.milliseconds as number) < (least.milliseconds as number))) node = other;
    }
    const row = parts[node]?.rows[taken[node] as number];
    if (!row) break;
    taken[node] = (taken[node] as number) + 1;
    positions[node] = positionOf(row);
    changes.push(toChange(row, write(positions), origin));
  }
  let more = false;
  for (const [node, part] of parts.entries()) {
    const isWhole = taken[node] === part.rows.length;
    if (isWhole) positions[node] = part.end;
    more ||= !isWhole || part.more;
  }
  return { changes, next: write(positions), more };
}

const toChange = (row: Row, cursor: string, origin: string): Change => ({
  cursor,
  key: `${origin}-${row.seq}`,
  action: row.action as Change['action'],
  id: row.memory_id as string | null,
  user_id: row.user_id as string,
  scope: row.scope as string | null,
  left_scopes: (row.left_scopes as string[] | null) ?? [],
  at: toIso(row.milliseconds as number),
  caller: row.app as string | null,
});

/** A cursor: a position for each node, in the order of their numbers. */
const encode = (positions: readonly Position[], heads: readonly Head[]): string =>
  positions.map(({ xid, seq }, node) => `${heads[node]?.origin}-${xid}-${seq}`).join('.');

const NODE_POSITION = /^([0-9a-f]{8})-(\d{1,20})-(\d{1,19})$/;
const MAX_CURSOR = 4_096;

type NodePosition = Position & { readonly origin: string };

function decode(cursor: string): NodePosition[] {
  if (cursor.length > MAX_CURSOR) throw malformed();
  return cursor.split('.').map((place) => {
    const [, origin, xid, seq] = NODE_POSITION.exec(place) ?? [];
    if (origin === undefined) throw malformed();
    const position = { origin, xid: BigInt(xid as string), seq: BigInt(seq as string) };
    if (position.xid >= 2n ** 64n || position.seq > LAST_SEQ) throw malformed();
    return position;
  });
}

const malformed = () => invalidRequest('after: malformed; pass next_cursor as it is, or now');

/** Where to go on. A node that was added after the cursor is read from its first position. */
function positionIn(head: Head, place: NodePosition | undefined): Position {
  const { origin, horizon, deletedUpTo } = head;
  if (place && origin !== NO_NODE.origin && (place.origin !== origin || place.xid > horizon))
    throw beginAnew('the log of changes was restored or moved since this cursor');
  const { xid, seq } = place ?? { xid: 0n, seq: 0n };
  if (deletedUpTo !== undefined && (xid < deletedUpTo || (xid === deletedUpTo && seq < LAST_SEQ)))
    throw beginAnew('changes after this cursor were deleted by the retention of the audit log');
  return { xid, seq };
}
