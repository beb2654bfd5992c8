import type pg from 'pg';
import { fromSql } from 'pgvector';
import { backgroundCall, type Embedder, type Finding, hiddenBy, type Remedy } from '#provider';
import { codeOf } from '../postgres-errors.ts';
import type { Conditions } from '../sql/conditions.ts';

type Area = Finding['area'];

export const ok = (area: Area, message: string): Finding => ({ area, level: 'ok', message });

export const warning = (area: Area, message: string, ...remedies: readonly Remedy[]): Finding =>
  withRemedies({ area, level: 'warning', message }, remedies);

export const problem = (area: Area, message: string, ...remedies: readonly Remedy[]): Finding =>
  withRemedies({ area, level: 'problem', message }, remedies);

const withRemedies = (finding: Finding, remedies: readonly Remedy[]): Finding =>
  remedies.length === 0 ? finding : { ...finding, remedies };

/** A check that failed. Of a server error only the SQLSTATE is shown, because its texts may quote stored data. */
export const checkFailed = (area: Area, what: string, error: unknown): Finding =>
  problem(area, `${what} could not be checked (${codeOf(error) ?? (error instanceof Error ? error.message : error)})`);

/** Longest time for one statement, in milliseconds: doctor must not hang, nor load a busy server for long. */
const STATEMENT_MS = 30_000;

/** Sends one statement and returns its rows. */
export type Read = <Row extends pg.QueryResultRow>(text: string, values?: readonly unknown[]) => Promise<Row[]>;

/** Runs checks in a transaction in which the server rejects every change, also behind a transaction pooler. */
export async function readOnly<Result>(client: pg.Client, work: (read: Read) => Promise<Result>): Promise<Result> {
  await client.query(`begin transaction read only; set local statement_timeout = ${STATEMENT_MS}`);
  try {
    return await work(
      async <Row extends pg.QueryResultRow>(text: string, values: readonly unknown[] = []) =>
        (await client.query<Row>(text, [...values])).rows,
    );
  } finally {
    // Fails if the connection is lost, which ends the transaction too.
    await client.query('rollback').catch(() => {});
  }
}

/** The memories that other stores hide. `scope`: the SQL of a scope in the rows. */
export async function findHidden(
  read: Read,
  { from, scope, where }: { readonly from: string; readonly scope: string; readonly where: () => Conditions },
  mounts: readonly string[] = [],
): Promise<Finding[]> {
  const findings: Finding[] = [];
  for (const mount of mounts) {
    const hidden = where();
    const parameter = `${hidden.bind(mount)}::text`;
    hidden.and(`(${scope} = ${parameter} or starts_with(${scope}, ${parameter} || '/'))`);
    const [row] = await read<{ memories: number }>(
      `select count(*)::int as memories from ${from} where ${hidden}`,
      hidden.values,
    );
    findings.push(hiddenBy(mount, row?.memories ?? 0));
  }
  return findings;
}

/** Stored texts that are embedded again. */
const SAMPLE = 10;
/** Models read only the first part of a longer text, and services charge for its length. */
const MAX_SAMPLE_LENGTH = 2_000;
/** Deadline for their vectors, in milliseconds. */
const EMBED_MS = 30_000;
/** Rounding leaves a cosine above 0.99. A text embedded with something around it, such as metadata, comes between these bounds. */
const SAME = 0.9;
/** Vectors of unrelated models are nearly at right angles. */
const RELATED = 0.5;

/** SQL of stored texts and their vectors. */
export interface StoredVectors {
  readonly from: string;
  readonly content: string;
  readonly vector: string;
  readonly where: Conditions;
}

/** Embeds a few stored texts again and compares, to find out whether this embedder made the stored vectors. */
export async function compareVectors(read: Read, embedder: Embedder, stored: StoredVectors): Promise<Finding[]> {
  const { from, content, vector, where } = stored;
  const rows = await read<{ text: string; stored: string }>(
    `select ${content} as text, ${vector}::text as stored from ${from} where ${where} and length(${content}) <= ${MAX_SAMPLE_LENGTH} limit ${SAMPLE}`,
    where.values,
  );
  if (rows.length === 0) return [];
  let made: readonly Float32Array[];
  try {
    const call = backgroundCall('doctor', AbortSignal.timeout(EMBED_MS));
    const texts = rows.map(({ text }) => text);
    made = await embedder.embed(texts, 'document', call);
  } catch (error) {
    return [checkFailed('embedding', 'whether the embedder made the stored vectors', error)];
  }
  const cosines = rows.map(({ stored }, i) => cosine(fromSql(stored), made[i] as Float32Array));
  const median = cosines.sort((a, b) => a - b)[Math.floor(cosines.length / 2)] as number;
  const found = `${rows.length} stored texts embedded again have a median cosine of ${median.toFixed(2)} with their stored vectors`;
  if (median >= SAME) return [ok('embedding', `"${embedder.model}" made the stored vectors: ${found}`)];
  if (median >= RELATED) {
    const message = `${found}: the embedded text may contain more than the content (a title, metadata), or a related model made the vectors`;
    return [warning('embedding', message)];
  }
  return [
    problem(
      'embedding',
      `"${embedder.model}" did not make the stored vectors: ${found}; set OMP_EMBEDDER, OMP_EMBEDDING_MODEL, OMP_EMBEDDING_DIMENSIONS and OPENAI_BASE_URL to the embedder that made them`,
    ),
  ];
}

/** 0 for a vector without direction. */
function cosine(a: readonly number[], b: Float32Array): number {
  const [ab, aa, bb] = a.reduce(
    ([x, y, z], value, i) => [x + value * (b[i] ?? 0), y + value * value, z + (b[i] ?? 0) ** 2],
    [0, 0, 0] as [number, number, number],
  );
  return aa === 0 || bb === 0 ? 0 : ab / Math.sqrt(aa * bb);
}

/** Estimates from the planner's statistics. Null: unknown. */
export interface TableSize {
  readonly rows: number | null;
  readonly users: number | null;
  /** Rows of the user with the most rows. */
  readonly largest: number | null;
  readonly analysed: boolean;
}

/** Where the statistics of the owner are: a table and its column, or an index and its expression. */
export interface StatisticsSource {
  readonly relation: string;
  readonly attribute: string;
}

/** Reads estimates only: counting would read the whole table. Reads no value of any column. */
export async function estimateSize(
  read: Read,
  schema: string,
  table: string,
  owner: StatisticsSource | undefined,
): Promise<TableSize> {
  const [whole] = await read<{ rows: number | null; analysed: boolean }>(
    `select case when c.reltuples >= 0 and (c.reltuples > 0 or c.relpages > 0 or s.analysed) then c.reltuples::float8 end as rows,
       coalesce(s.analysed, false) or exists (select from pg_stats p where p.schemaname = $1 and p.tablename = $2) as analysed
     from pg_class c join pg_namespace n on n.oid = c.relnamespace
     left join lateral (
       select coalesce(last_analyze, last_autoanalyze) is not null as analysed from pg_stat_all_tables where relid = c.oid
     ) s on true
     where n.nspname = $1 and c.relname = $2`,
    [schema, table],
  );
  const { rows = null, analysed = false } = whole ?? {};
  const [spread] = owner
    ? await read<{ distinct: number; share: number | null }>(
        `select n_distinct::float8 as distinct, most_common_freqs[1]::float8 as share from pg_stats
         where schemaname = $1 and tablename = $2 and attname = $3 order by inherited desc limit 1`,
        [schema, owner.relation, owner.attribute],
      )
    : [];
  if (rows === null || !spread) return { rows, users: null, largest: null, analysed };
  const users = Math.max(1, Math.round(spread.distinct < 0 ? -spread.distinct * rows : spread.distinct));
  // Without common values all users have about the same number of rows.
  return { rows, users, largest: Math.round(spread.share === null ? rows / users : spread.share * rows), analysed };
}

/** Reports the rows and their spread over users. `table` is quoted. `optional`: missing statistics are no reason to warn. */
export function reportSize({ rows, users, largest, analysed }: TableSize, table: string, optional: boolean): Finding {
  if (!analysed) {
    if (optional) return ok('size', 'there are no statistics yet, so sizes are unknown');
    return warning('size', 'ANALYZE has never run on the table: the planner guesses, and sizes are unknown', {
      sql: `analyze ${table};`,
      reason: 'tells the planner how many rows and users there are; autovacuum does it by itself where it is on',
    });
  }
  if (rows === null) return ok('size', 'the number of rows is unknown');
  const spread =
    users === null || largest === null
      ? 'their spread over users is unknown'
      : `of ${about(users)} users, ${about(rows / users)} each on average; the largest has ${about(largest)} (${percent(largest / rows)})`;
  return ok('size', `${about(rows)} rows, ${spread}`);
}

/** Two significant digits: these are estimates. */
const about = (number: number): string => `about ${Number(number.toPrecision(2)).toLocaleString('en')}`;
const percent = (share: number): string => `${Math.round(share * 100)} %`;
