import { analyse } from '#ranking';
import { built } from './built.ts';
import { vectorOf } from './free-embedder.ts';

const { toHalfvec, toKeys } =
  await built<typeof import('../../providers/postgres/sql/values.ts')>('providers/postgres/values');

/** The one best statement of each verb on the gateway's table, written by hand, and the values it takes. */
export interface Statements {
  readonly get: string;
  readonly list: string;
  readonly search: string;
  readonly add: string;
}

const COLUMNS = `id, user_id, content, scope, tags, source, confidence, date_part('epoch', created_at) * 1000 as created_at,
  date_part('epoch', updated_at) * 1000 as updated_at, date_part('epoch', valid_from) * 1000 as valid_from,
  date_part('epoch', valid_to) * 1000 as valid_to, supersedes, extensions`;

export const statements = (memories: string): Statements => ({
  get: `select ${COLUMNS} from ${memories} where id = $1`,
  list: `select ${COLUMNS} from ${memories} m where user_id = $1 order by m.created_at desc, m.id desc limit 50`,
  // The gateway's ranking with its default weights: half cosine, half coverage of the query's terms weighted by rarity.
  search: `with mine as materialized (
      select *, greatest(0, 1 - (embedding <=> $2::halfvec)) as cosine from ${memories} where user_id = $1),
    term as materialized (
      select key, ln(1 + (rows - df + 0.5) / (df + 0.5)) as idf
      from (select count(*) as rows from mine) as total,
        (select key, (select count(*) from mine where key = any(keywords)) as df from unnest($3::bigint[]) as key) as frequency)
    select ${COLUMNS}, score from (
      select *, 0.5 * cosine
        + 0.5 * coalesce((select sum(idf) from term where key = any(keywords)), 0) / (select sum(idf) from term) as score
      from mine) as hit
    order by score desc, hit.created_at desc, hit.id desc limit 10`,
  add: `insert into ${memories} (id, user_id, content, scope, tags, created_at, updated_at, keywords, embedding)
    values ($1, $2, $3, $4, $5, $6, $6, $7, $8::halfvec)`,
});

/** The statement of a service without keyword search. */
export const vectorSearch = (memories: string): string =>
  `select ${COLUMNS}, 1 - (embedding <=> $2::halfvec) as score from ${memories} where user_id = $1
   order by embedding <=> $2::halfvec limit 10`;

export const vectorValue = (text: string): Buffer => toHalfvec(vectorOf(text));
export const keywordsValue = (userId: string, text: string): string => `{${toKeys(userId, analyse(text)).join(',')}}`;
