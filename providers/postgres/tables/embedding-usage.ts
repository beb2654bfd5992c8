import type pg from 'pg';
import type { EmbeddingUsage, UsageStore } from '#provider';
import type { Run } from '../client/connections.ts';
import type { Names } from './names.ts';

/** What embedding costs, in its table. */
export const createUsageStore = (names: Names, run: Run): UsageStore => ({
  add: async (rows, call) => void (await run('small', addText(names), valuesOf(rows), call)),
  read: async ({ since, until, after, limit }, call) => {
    const values = [since, until, limit, after?.day ?? null, after?.app ?? '', after?.model ?? ''];
    return (await run('heavy', readText(names), values, call)) as unknown as EmbeddingUsage[];
  },
});

/** The same for a command with a connection of its own. */
export async function addUsage(client: pg.Client, names: Names, rows: readonly EmbeddingUsage[]): Promise<void> {
  if (rows.length > 0) await client.query(addText(names), valuesOf(rows));
}

/** In one order, so that gateways that add the same rows do not deadlock. No app is stored as the empty name. */
const addText = ({ embeddingUsage }: Names): string =>
  `insert into ${embeddingUsage} as u (day, app, model, texts, tokens, requests)
   select * from unnest($1::date[], $2::text[], $3::text[], $4::bigint[], $5::bigint[], $6::bigint[])
     as v (day, app, model, texts, tokens, requests) order by day, app collate "C", model collate "C"
   on conflict (day, app, model) do update set
     texts = u.texts + excluded.texts, tokens = u.tokens + excluded.tokens, requests = u.requests + excluded.requests
   returning 1`;

const valuesOf = (rows: readonly EmbeddingUsage[]): unknown[] => [
  rows.map(({ day }) => day),
  rows.map(({ app }) => app ?? ''),
  ...(['model', 'texts', 'tokens', 'requests'] as const).map((column) => rows.map((row) => row[column])),
];

const readText = ({ embeddingUsage }: Names): string =>
  `select to_char(day, 'YYYY-MM-DD') as day, nullif(app, '') as app, model, texts::float8, tokens::float8, requests::float8
   from ${embeddingUsage} as u where u.day between $1::date and least($2::date, $4::date)
     and ($4::date is null or u.day < $4::date or (u.app, u.model) > ($5, $6)) order by u.day desc, u.app, u.model limit $3`;
