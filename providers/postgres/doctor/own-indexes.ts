import type { Finding } from '#contract';
import { MIGRATIONS } from '../migrate.ts';
import type { Names } from '../names.ts';
import { vectorIndexes } from '../vector-column.ts';
import { ok, warning } from './findings.ts';
import type { Read } from './reading.ts';

/** What each is there for; others of the migrations are told in general words. */
const REASONS: Readonly<Record<string, string>> = {
  memories_user_time: 'without it every list and every search reads the memories of everybody',
  memories_user_scope: 'without it filters by scope read all memories of a user',
  memories_tags: 'without it filters by tag read all memories of a user',
  memories_keywords: 'without it searches of users with many memories read all of them',
  memories_embedding: 'without it every search of a user with many memories looks at all of them',
  memories_without_vector: 'without it the start looks for memories without a vector in all of the table',
  audit_log_user_time: 'without it GET /audit reads the whole log',
  audit_log_time: 'without it the hourly housekeeping reads the whole log',
  ingestion_due: 'without it the search for memories without a vector reads the whole queue, every second',
  ingestion_claim: 'without it writing the vectors of a batch reads the whole queue',
  once_keys_time: 'without it the hourly housekeeping reads all Idempotency-Keys',
};
/** Indexes of our tables that were dropped, or whose building failed, with what makes them again. */
export async function lookAtOwnIndexes(
  read: Read,
  { schema, names, version, dimensions }: { schema: string; names: Names; version: number; dimensions: number | null },
): Promise<Finding[]> {
  const existing = await read<{ name: string; valid: boolean }>(
    `select c.relname as name, x.indisvalid and x.indisready as valid
     from pg_index x join pg_class c on c.oid = x.indexrelid join pg_namespace n on n.oid = c.relnamespace
     where n.nspname = $1`,
    [schema],
  );
  const valid = new Map(existing.map((index) => [index.name, index.valid]));
  const wanted = expected(names, version);
  for (const { name, on } of dimensions === null ? [] : vectorIndexes(names, dimensions)) {
    wanted.set(name, `create index ${name} on ${names.memories} ${on}`);
  }
  const findings = [...wanted]
    .filter(([name]) => !valid.get(name))
    .map(([name, create]) => {
      const remedy = {
        sql: `${create.replace(/^create index /, 'create index concurrently ')};`,
        reason: REASONS[name] ?? 'the statements of the gateway count on it',
      };
      if (!valid.has(name)) return warning('indexes', `the index ${name} is missing`, remedy);
      const drop = { sql: `drop index concurrently ${names.schema}.${name};`, reason: 'takes away what is left of it' };
      return warning('indexes', `the index ${name} is there but not valid: building it did not end`, drop, remedy);
    });
  return findings.length > 0 ? findings : [ok('indexes', 'all indexes of the gateway are there and valid')];
}

/** By name, as the migrations up to this version make them. */
function expected(names: Names, version: number): Map<string, string> {
  const indexes = new Map<string, string>();
  for (const { sql } of MIGRATIONS.slice(0, version)) {
    const text = sql(names).replace(/--.*/g, '');
    for (const [, create, made = '', dropped = ''] of text.matchAll(
      /(create index (\w+) on [^;]+);|drop index (?:if exists )?(?:"(?:[^"]|"")+"\.)?(\w+)/g,
    )) {
      if (create) indexes.set(made, create.replaceAll(/\s+/g, ' '));
      else indexes.delete(dropped);
    }
  }
  return indexes;
}
