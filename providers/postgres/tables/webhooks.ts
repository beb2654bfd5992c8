import type { StoredWebhook, WebhookLease, WebhookStore } from '#provider';
import { type Database, type Row, statement } from '../client/connections.ts';
import type { Names } from './names.ts';

/** The webhooks in their table. A webhook is one JSON value, of which the statements read only the state. */
export function createWebhookStore({ db, names }: { db: Database; names: Names }): WebhookStore {
  const table = names.webhooks;
  const list = statement('small', `select data from ${table} order by data ->> 'created_at', id`);
  const find = statement('small', `select data from ${table} where id = $1`);
  const create = statement(
    'small',
    `insert into ${table} (id, data) select $1, $2::jsonb where (select count(*) from ${table}) < $3::int returning 1`,
  );
  const change = statement(
    'small',
    `update ${table} set data = data || $2::jsonb, holder = null, lease = null, held_until = null where id = $1 returning data`,
  );
  const remove = statement('small', `delete from ${table} where id = $1 returning 1`);
  // A lease is renewed when half of it is over, so that most rounds only read.
  const until = `now() + $2::float8 * interval '1 s'`;
  const claim = statement(
    'small',
    `with mine as (
       update ${table} set holder = $1, held_until = ${until},
         lease = case when holder = $1 and held_until > now() then lease else gen_random_uuid() end
       where data ->> 'state' = 'active' and (held_until is null or held_until <= now()
         or holder = $1 and held_until < now() + $2::float8 / 2 * interval '1 s')
       returning id, lease, data)
     select lease, data from mine
     union all
     select lease, data from ${table}
     where data ->> 'state' = 'active' and holder = $1 and held_until > now() and id not in (select id from mine)`,
  );
  const save = statement(
    'small',
    `update ${table} set data = data || $3::jsonb where id = $1 and lease = $2::uuid returning 1`,
  );
  const release = statement(
    'small',
    `update ${table} set holder = null, lease = null, held_until = null where holder = $1 returning 1`,
  );
  return {
    list: async (call) => (await db.query(list, [], call)).map(toWebhook),
    find: async (id, call) => (await db.query(find, [id], call)).map(toWebhook)[0],
    create: async ({ webhook, most }, call) =>
      (await db.query(create, [webhook.id, JSON.stringify(webhook), most], call)).length > 0,
    change: async ({ id, patch }, call) =>
      (await db.query(change, [id, JSON.stringify(patch)], call)).map(toWebhook)[0],
    delete: async (id, call) => (await db.query(remove, [id], call)).length > 0,
    claim: async ({ holder, seconds }, call) => (await db.query(claim, [holder, seconds], call)).map(toLease),
    save: async ({ id, lease, patch }, call) =>
      (await db.query(save, [id, lease, JSON.stringify(patch)], call)).length > 0,
    release: async (holder, call) => void (await db.query(release, [holder], call)),
  };
}

const toWebhook = ({ data }: Row): StoredWebhook => data as StoredWebhook;
const toLease = ({ lease, data }: Row): WebhookLease => ({ webhook: data as StoredWebhook, lease: lease as string });
