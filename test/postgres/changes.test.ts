import { setTimeout as sleep } from 'node:timers/promises';
import pg from 'pg';
import { describe, expect, it, onTestFinished } from 'vitest';
import type { Change, ChangesQuery, Memory, Provider } from '#contract';
import { eventually } from '../support/eventually.ts';
import { IS_CITUS, SERVER_URL } from '../support/postgres-server.ts';
import type { FullStore } from '../support/stores.ts';
import { call, failure, memoryOf, storeForEach } from './store.ts';

// What a change says and who may read it: test/conformance.
const store = storeForEach();

type Feed = Required<Pick<Provider, 'changes' | 'changesHeld'>>;
const openFeed = async () => (await store.open({ mode: 'keyword' })) as FullStore;
const everything = { users: null, within: null, limit: 1_000 } as const;
const read = (feed: Feed, query: Partial<ChangesQuery> = {}) => feed.changes({ ...everything, ...query }, call);
const end = async (feed: Feed) => (await read(feed, { after: 'now' })).next;
const idsOf = (changes: readonly Change[]) => changes.map(({ id }) => id);
/** Transactions of other tests hold the feed of the whole server back. */
const reads = (feed: Feed, query: Partial<ChangesQuery>, ids: readonly (string | undefined)[]) =>
  eventually(async () => {
    const part = await read(feed, query);
    expect(idsOf(part.changes)).toEqual(ids);
    return part;
  });

/** A session that writes entries in transactions of its own, as a gateway would. */
async function openWriter() {
  const client = new pg.Client({ connectionString: store.url });
  await client.connect();
  onTestFinished(() => client.end());
  return {
    sql: (text: string) => client.query(text),
    write: (memory_id: string, user_id = 'u') =>
      client.query(
        `insert into ${store.names.auditLog} (bucket, timestamp, action, user_id, memory_id, request_id, outcome)
         values (${store.names.placement.storedBucket(user_id)}, now(), 'add', '${user_id}', '${memory_id}', 'r', 'ok')`,
      ),
  };
}

describe.skipIf(SERVER_URL === '')('[Decision 51] transactions on a server', () => {
  it('that commit in another order are read in the order of their ids, once all before them have ended', async () => {
    const feed = await openFeed();
    const after = await end(feed);
    const [first, second, third] = [await openWriter(), await openWriter(), await openWriter()];
    await first.sql('begin');
    await first.write('1');
    await second.sql('begin');
    await second.write('2');
    await third.sql('begin');
    await third.write('rolled back');
    await third.sql('rollback');
    await third.write('3');
    await second.sql('commit');
    // Whoever read 2 and 3 now would miss 1.
    const held = await read(feed, { after });
    expect(idsOf(held.changes)).toEqual([]);
    expect(await feed.changesHeld(call)).toBeGreaterThan(0);
    await first.write('1 again');
    await first.sql('commit');
    for (const from of [after, held.next]) {
      await reads(feed, { after: from }, ['1', '1 again', '2', '3']);
    }
  });

  it('that fail leave nothing, and one that only reads holds nothing back', async () => {
    const feed = await openFeed();
    const after = await end(feed);
    const [reader, writer] = [await openWriter(), await openWriter()];
    await reader.sql('begin isolation level repeatable read');
    await reader.sql(`select count(*) from ${store.names.memories}`);
    await writer.sql('begin');
    await writer.write('lost');
    await expect(writer.sql('select 1/0')).rejects.toThrow('division by zero');
    await writer.sql('commit');
    await writer.sql('begin; savepoint one');
    await writer.write('lost too');
    await writer.sql('rollback to one');
    await writer.write('kept');
    await writer.sql('commit');
    await reads(feed, { after }, ['kept']);
    await reader.sql('commit');
  });

  it('of many writers are read once, and by all readers in the same order', async () => {
    const [feed, other] = [await openFeed(), await openFeed()];
    const after = await end(feed);
    const users = ['ana', 'ben', 'cleo', 'dora'];
    const random = randomOf(7);
    const committed = new Set<string>();
    let writing = true;
    const writer = async (name: number) => {
      const session = await openWriter();
      for (let turn = 0; turn < 10; turn++) {
        await session.sql('begin');
        const mine: string[] = [];
        for (let i = 0; i <= random(3); i++) {
          const id = `${name}/${turn}/${i}`;
          await session.write(id, users[random(users.length)]);
          mine.push(id);
          if (random(4) === 0) await session.sql('select pg_sleep(0.005)');
        }
        const keep = random(4) > 0;
        await session.sql(keep ? 'commit' : 'rollback');
        if (keep) for (const id of mine) committed.add(id);
      }
    };
    const reader = async (from: Feed, limit: number) => {
      const seen: Change[] = [];
      for (let position = after; ; ) {
        const part = await read(from, { after: position, limit });
        seen.push(...part.changes);
        position = part.next;
        // One read more than needed, which would show what comes twice.
        if (!writing && seen.length >= committed.size && part.changes.length === 0) return seen;
        // Readers that never rest would leave the writers no processor.
        if (!part.more) await sleep(20);
      }
    };
    const readers = [7, 1_000].flatMap((limit) => [reader(feed, limit), reader(other, limit)]);
    await Promise.all(Array.from({ length: 4 }, (_, name) => writer(name)));
    writing = false;
    const [first = [], ...others] = await Promise.all(readers);
    expect(idsOf(first).sort()).toEqual([...committed].sort());
    // Nodes of Citus have no common order; a user lives on one of them.
    const orders = (changes: readonly Change[]) =>
      IS_CITUS ? users.map((user) => idsOf(changes.filter(({ user_id }) => user_id === user))) : idsOf(changes);
    for (const changes of others) expect(orders(changes)).toEqual(orders(first));
  });
});

describe.skipIf(!IS_CITUS)('[Decision 51] on Citus', () => {
  it('a shard that moves to another node takes its changes along, and a batch has one on each node', async () => {
    const feed = await openFeed();
    const after = await end(feed);
    const users = Array.from({ length: 12 }, (_, i) => `user ${i}`);
    const add = async () => {
      const inputs = users.map((user) => memoryOf(user, 'x'));
      return (await feed.batch({ inputs }, call)).map((one) => (one as Memory).id);
    };
    const first = await add();
    const half = await eventually(async () => {
      const part = await read(feed, { after, limit: 5 });
      expect(part.changes).toHaveLength(5);
      return part;
    });
    const shards = await store.sql<{ shard: string; host: string; port: number; to: number }>(
      `select s.shardid as shard, s.nodename as host, s.nodeport as port, n.nodeport as to from citus_shards s
       join pg_dist_node n on n.groupid > 0 and n.nodeport <> s.nodeport where table_name = $1::regclass order by s.shardid`,
      [store.names.auditLog],
    );
    // Of two, so that one moves from each node.
    for (const { shard, host, port, to } of [shards[0], shards.find(({ port }) => port !== shards[0]?.port)].flatMap(
      (s) => s ?? [],
    )) {
      await store.sql(`select citus_move_shard_placement($1::bigint, $2, $3::int, $2, $4::int, 'block_writes')`, [
        shard,
        host,
        port,
        to,
      ]);
    }
    const second = await add();
    const rest = await eventually(async () => {
      const part = await read(feed, { after: half.next });
      expect(idsOf([...half.changes, ...part.changes]).sort()).toEqual([...first, ...second].sort());
      return part;
    });
    expect(idsOf((await read(feed, { after })).changes).sort()).toEqual([...first, ...second].sort());
    const ofUser = (user: string) => idsOf(rest.changes.filter(({ user_id }) => user_id === user)).at(-1);
    for (const [i, user] of users.entries()) expect(ofUser(user)).toBe(second[i]);
    expect((await read(feed, { after: rest.next })).changes).toEqual([]);
  });
});

/** Numbers below a bound, the same in every run. */
function randomOf(seed: number) {
  let state = seed;
  return (bound: number) => {
    state = (state * 1_103_515_245 + 12_345) % 2 ** 31;
    return Math.floor((state / 2 ** 31) * bound);
  };
}

describe('[Decision 51] the log of changes', () => {
  it('goes on after a restart, for gateways that share it', async () => {
    const first = await openFeed();
    const after = await end(first);
    const { id } = await first.add({ input: memoryOf('u', 'one') }, call);
    await first.close();
    const second = await openFeed();
    const { next } = await reads(second, { after }, [id]);
    expect((await read(second, { after: next })).changes).toEqual([]);
  });

  it('has no entries from before it was made, and those of gateways of the version before', async () => {
    const feed = await openFeed();
    const after = await end(feed);
    const { auditLog } = store.names;
    const columns = 'bucket, timestamp, action, user_id, memory_id, request_id, outcome';
    const entry = (action: string, id: string, outcome = 'ok') =>
      store.sql(
        `insert into ${auditLog} (${columns}) values (${store.names.placement.storedBucket('u')}, now(), '${action}', 'u', '${id}', 'r', '${outcome}')`,
      );
    await store.sql(
      `insert into ${auditLog} (${columns}, node) values (${store.names.placement.storedBucket('u')}, now(), 'add', 'u', 'old', 'r', 'ok', null)`,
    );
    await entry('add', 'new');
    await entry('get', 'read');
    await entry('add', 'failed', 'scope_denied');
    for (const from of [after, undefined]) await reads(feed, { after: from }, ['new']);
  });

  it('of a restored copy is another one, with what was written since', async () => {
    const feed = await openFeed();
    await feed.add({ input: memoryOf('u', 'before') }, call);
    const cursor = await end(feed);
    // What a restored dump holds: the entries, their transactions, and where they are from.
    await store.sql(`update ${store.names.store} set log_origin = 'elsewhere'`);
    await read(feed);
    const { id } = await feed.add({ input: memoryOf('u', 'after') }, call);
    for (const from of [undefined, cursor]) await reads(feed, { after: from }, [id]);
    const renamed = cursor.replace(/^[0-9a-f]{8}/, '0badc0de');
    expect(await failure(feed.changes({ ...everything, after: renamed }, call))).toMatchObject({ gone: true });
  });

  it('asks no node that a cursor invents', async () => {
    const feed = await openFeed();
    const cursor = await end(feed);
    const { id } = await feed.add({ input: memoryOf('u', 'one') }, call);
    const forged = (places: number) => cursor + '.00000000-0-0'.repeat(places);
    if (IS_CITUS) await reads(feed, { after: forged(8) }, [id]);
    for (const places of [IS_CITUS ? 9 : 1, 300]) {
      const error = await failure(feed.changes({ ...everything, after: forged(places) }, call));
      expect(error).toMatchObject({ code: 'invalid_request' });
      expect(error.gone === true).toBe(IS_CITUS);
    }
    // A cursor of another log is that first, however many nodes it had.
    const other = forged(1).replace(/^[0-9a-f]{8}/, '0badc0de');
    expect(await failure(feed.changes({ ...everything, after: other }, call))).toMatchObject({ gone: true });
  });

  it('tells a reader that comes after the retention to begin anew', async () => {
    const feed = await openFeed();
    const first = await end(feed);
    await feed.add({ input: memoryOf('u', 'one') }, call);
    const { next } = await read(feed, { after: first });
    await feed.add({ input: memoryOf('u', 'two') }, call);
    await store.sql(`update ${store.names.auditLog} set timestamp = '2020-01-01'`);
    // Housekeeping runs when a gateway starts.
    const later = (await store.open({
      mode: 'keyword',
      audit: { retention_days: 1 },
    })) as FullStore;
    await eventually(async () => expect(await store.sql(`select from ${store.names.auditLog}`)).toEqual([]));
    for (const after of [first, next]) {
      const error = await failure(later.changes({ ...everything, after }, call));
      expect(error).toMatchObject({ code: 'invalid_request', gone: true });
      expect(error.message).toContain('after=now');
    }
    const { id } = await later.add({ input: memoryOf('u', 'three') }, call);
    const beginning = await reads(later, { limit: 1 }, [id]);
    expect((await read(later, { after: beginning.next })).changes).toEqual([]);
  });

  it('of an erase names each scope once, with the memories that were deleted together, in entries of at most 100', async () => {
    const feed = await openFeed();
    const scopes = Array.from({ length: 10_250 }, (_, i) => `s/${i}`);
    await feed.add({ input: { ...memoryOf('u', 'x'), scope: 's/0' } }, call);
    const { memories } = store.names;
    const columns = (
      await store.sql<{ name: string }>(
        `select attname as name from pg_attribute where attrelid = $1::regclass and attnum > 0 and not attisdropped and attgenerated = ''`,
        [memories],
      )
    ).map(({ name }) => name);
    const copied = columns.map((name) => ({ id: `'m' || n`, scope: `'s/' || n` })[name] ?? name);
    await store.sql(
      `insert into ${memories} (${columns}) select ${copied} from ${memories}, generate_series(1, 10249) as n`,
    );
    const after = await end(feed);
    expect(await feed.erase({ user_id: 'u' }, call)).toMatchObject([{ removed: { memories: scopes.length } }]);
    const changes = await eventually(async () => {
      const all: Change[] = [];
      for (let part = await read(feed, { after }); ; part = await read(feed, { after: part.next })) {
        // What a reader of all scopes gets at once is bounded.
        expect(part.changes.length).toBeLessThanOrEqual(20);
        all.push(...part.changes);
        if (!part.more) break;
      }
      expect(all).toHaveLength(103);
      return all;
    });
    const left = changes.map(({ left_scopes }) => left_scopes);
    expect(Math.max(...left.map(({ length }) => length))).toBe(100);
    expect(left.flat().sort()).toEqual(scopes.sort());
    const first = async (query: Partial<ChangesQuery>) =>
      (await read(feed, { after, left_scopes: 'first', ...query })).changes.map((one) => one.left_scopes);
    expect(await first({})).toEqual(left.map(() => []));
    expect(await first({ within: ['s/7'] })).toEqual([['s/7']]);
    expect(await first({ within: ['s/7', 's/8?'], scope: '*5' })).toEqual([['s/85']]);
    for (const one of await first({ within: ['s/*'] })) expect(one).toHaveLength(1);
  });

  it('of a user with more scopes than a part may name come one by one', async () => {
    const feed = await openFeed();
    const after = await end(feed);
    const { auditLog } = store.names;
    await store.sql(
      `insert into ${auditLog} (bucket, timestamp, action, user_id, memory_id, request_id, outcome, left_scopes)
       select ${store.names.placement.storedBucket('u')}, now(), 'erase', 'u', n::text, 'r', 'ok', array(select 's/' || i from generate_series(1, 3000) as i)
       from generate_series(1, 3) as n`,
    );
    const ids: (string | null)[] = [];
    for (let position = after; ids.length < 3; ) {
      const part = await read(feed, { after: position });
      expect(part.changes.length).toBeLessThanOrEqual(1);
      ids.push(...idsOf(part.changes));
      position = part.next;
    }
    expect(ids).toEqual(['1', '2', '3']);
  });

  it('looks at a bounded number of entries for a reader of few', async () => {
    const feed = await openFeed();
    const after = await end(feed);
    const many = `select ${store.names.placement.storedBucket('other')}, now(), 'add', 'other', n::text, 'r', 'ok' from generate_series(1, 6000) as n`;
    await store.sql(
      `insert into ${store.names.auditLog} (bucket, timestamp, action, user_id, memory_id, request_id, outcome) ${many}`,
    );
    const { id } = await feed.add({ input: memoryOf('mine', 'x') }, call);
    const within = ['nowhere'];
    const first = await eventually(async () => {
      const part = await read(feed, { after, within });
      expect(part).toMatchObject({ changes: [], more: true });
      return part;
    });
    expect(await read(feed, { after: first.next, within })).toMatchObject({ changes: [], more: false });
    const mine: (string | null)[] = [];
    for (let position = after; mine.length === 0; ) {
      const part = await read(feed, { after: position, users: ['mine'], limit: 1 });
      mine.push(...idsOf(part.changes));
      position = part.next;
    }
    expect(mine).toEqual([id]);
  });
});
