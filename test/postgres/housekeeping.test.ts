import { beforeEach, describe, expect, it } from 'vitest';
import { type Call, IDEMPOTENCY_TTL_MS, type VersionOptions } from '#contract';
import type { Run } from '../../providers/postgres/client/connections.ts';
import { startHousekeeping } from '../../providers/postgres/tables/housekeeping.ts';
import { gate } from '../embedding/observed-embedder.ts';
import { recordingLog } from '../support/subject.ts';
import { call, memoryOf, refTo, storeForEach, until } from './store.ts';

const DAY_MS = 86_400_000;
/** More than are deleted at a time. */
const OLD = 2_500;

const store = storeForEach();
beforeEach(async () => (await store.open()).close());

/** Adds `old` entries and keys that expired a second ago, and a few that expire in a minute. */
const fill = async (old: number) => {
  const [past, young] = [1_000, -60_000].map((ms) => Date.now() - ms);
  const days = new Date((past as number) - 30 * DAY_MS).toISOString();
  const almost = new Date((young as number) - 30 * DAY_MS).toISOString();
  await store.sql(
    `insert into ${store.names.auditLog} (timestamp, app, action, user_id, request_id, outcome)
     select case when n <= $1::int then $2 else $3 end::timestamptz, 'a', 'get', 'u', n::text, 'ok' from generate_series(1, $1::int + 5) as n`,
    [old, days, almost],
  );
  await store.sql(
    `insert into ${store.names.onceKeys} (caller, key, fingerprint, memory_id, created_at)
     select 'c', n::text, 'f', 'm', case when n <= $1::int then $2 else $3 end::timestamptz from generate_series(1, $1::int + 7) as n`,
    [old, ...[past, young].map((ms) => new Date((ms as number) - IDEMPOTENCY_TTL_MS).toISOString())],
  );
};
const left = async () => {
  const [row] = await store.sql<{ entries: number; keys: number }>(
    `select (select count(*)::int from ${store.names.auditLog}) as entries, (select count(*)::int from ${store.names.onceKeys}) as keys`,
  );
  return row;
};
const keysLeft = async (keys: number) => (await left())?.keys === keys;

describe('[Decision 11] what has expired', () => {
  it('is deleted soon after the start, and nothing else', async () => {
    await fill(OLD);
    await store.open({ audit: { retention_days: 30 } });
    await until(() => keysLeft(7));
    expect(await left()).toEqual({ entries: 5, keys: 7 });
  });

  it('includes a key that was used while the clock was 30 years ahead', async () => {
    await fill(3);
    const ahead = `update ${store.names.onceKeys} set created_at = now() + interval '30 years' where key in ('5', '6')`;
    await store.sql(ahead);
    await store.open();
    await until(() => keysLeft(5));
  });

  it.each([
    ['without a retention', { retention_days: null }],
    ['without audit', null],
  ])('is kept %s, except keys', async (_, audit) => {
    await fill(3);
    await store.open({ audit });
    await until(() => keysLeft(7));
    expect(await left()).toEqual({ entries: 8, keys: 7 });
  });

  it('is deleted by several gateways at once', async () => {
    await fill(OLD);
    const log = recordingLog();
    await Promise.all([1, 2, 3, 4].map(() => store.open({ audit: { retention_days: 30 }, log })));
    await until(async () => (await keysLeft(7)) && (await left())?.entries === 5);
    expect(log.lines.filter(({ fields }) => 'err' in fields)).toEqual([]);
  });
});

describe('[Decision 55] versions', () => {
  const changed = async (count: number, versions: VersionOptions) => {
    const provider = await store.open({ versions });
    const { id } = await provider.add({ input: memoryOf('u', 'number 1') }, call);
    for (let n = 2; n <= count; n++)
      await provider.update?.({ ref: refTo(id), patch: { content: `number ${n}` } }, call);
    return { provider, id };
  };
  const numbers = async () =>
    (await store.sql<{ version: number }>(`select version from ${store.names.versions} order by version`)).map(
      ({ version }) => version,
    );

  it('beyond the limit are deleted by the change that makes them too many', async () => {
    const { provider, id } = await changed(6, { max: 2, retention_days: null });
    expect(await numbers()).toEqual([4, 5]);
    const all = { ref: refTo(id), limit: 10, max_bytes: 1e6 };
    expect(await provider.versions?.list(all, call)).toMatchObject({
      version: 6,
      versions: [{ version: 5 }, { version: 4 }],
    });
  });

  it.each([
    ['that were replaced long enough ago are deleted', 1, [3]],
    ['stay without a retention', null, [1, 2, 3]],
  ])('%s', async (_, retention_days, left) => {
    await changed(4, { max: 100, retention_days: null });
    await store.sql(
      `update ${store.names.versions} set replaced_at = now() - interval '1 day 1 hour' where version < 3`,
    );
    await fill(3);
    await store.open({ versions: { max: 100, retention_days }, audit: { retention_days: 30 } });
    // Keys are deleted last.
    await until(() => keysLeft(7));
    expect(await numbers()).toEqual(left);
  });
});

describe('[Decision 38] memories past valid_to', () => {
  it('are deleted after as many days as are set, each with its audit entry', async () => {
    const { names } = store;
    await store.sql(
      `insert into ${names.memories} (id, user_id, content, created_at, updated_at, keywords, valid_to)
       select 'm' || n, 'u', 'x', now(), now(), '{}', case when n > 2503 then null else now() - interval '1 day' + (1 - n % 2 * 2) * interval '1 hour' end
       from generate_series(1, 2505) as n`,
    );
    const housekeeping = startHousekeeping({
      run: (_how, text, values) => store.sql(text, values),
      names,
      audit: { retention_days: null },
      purge_expired_days: 1,
      log: recordingLog(),
    });
    const count = async () =>
      (await store.sql<{ n: number }>(`select count(*)::int as n from ${names.memories}`))[0]?.n;
    await until(async () => ((await count()) ?? 0) <= 1253);
    await housekeeping.close();
    const entries = await store.sql(
      `select action, app, outcome, count(*)::int as n from ${names.auditLog} where memory_id is not null group by 1, 2, 3`,
    );
    expect(entries).toEqual([{ action: 'delete', app: null, outcome: 'ok', n: 1252 }]);
    expect(await store.sql(`select from ${names.memories} where valid_to < now() - interval '1 day'`)).toEqual([]);
  });
});

describe('housekeeping', () => {
  const start = (run: Run, log = recordingLog()) =>
    startHousekeeping({ run, names: store.names, audit: { retention_days: 30 }, log, every_ms: 5, retry_ms: 5 });
  const onStore: Run = (_how, text, values) => store.sql(text, values);

  it('runs again after each interval', async () => {
    const housekeeping = start(onStore);
    await fill(2);
    await until(() => keysLeft(7));
    await store.sql(`update ${store.names.onceKeys} set created_at = created_at - interval '1 day'`);
    await until(() => keysLeft(0));
    await housekeeping.close();
  });

  it('deletes no more than a batch at a time', async () => {
    await fill(OLD);
    const sizes: number[] = [];
    const housekeeping = start(async (how, text, values) => {
      const rows = await onStore(how, text, values, {} as Call);
      sizes.push(rows.length);
      return rows;
    });
    await until(() => keysLeft(7));
    await housekeeping.close();
    expect(sizes.filter((size) => size > 0)).toEqual([1_000, 1_000, 500, 1_000, 1_000, 500]);
  });

  it('logs a failure and retries', async () => {
    await fill(2);
    const log = recordingLog();
    await store.sql(`alter table ${store.names.auditLog} rename to away`);
    const housekeeping = start(onStore, log);
    await until(async () => log.lines.length >= 2);
    expect(log.lines[0]).toMatchObject({ level: 'warn', message: expect.stringMatching(/retried/) });
    await store.sql(`alter table ${store.names.schema}.away rename to audit_log`);
    await until(() => keysLeft(7));
    expect((await left())?.entries).toBe(5);
    await housekeeping.close();
  });

  it('finishes its current statement when it closes, and starts no other', async () => {
    const asked: string[] = [];
    const answer = gate();
    const housekeeping = start(async (_how, text) => {
      asked.push(text);
      await answer.opened;
      return [{}];
    });
    await until(async () => asked.length === 1);
    let closed = false;
    const closing = housekeeping.close().then(() => {
      closed = true;
    });
    await new Promise(setImmediate);
    expect(closed).toBe(false);
    answer.open();
    await closing;
    expect(asked).toHaveLength(1);
  });
});
