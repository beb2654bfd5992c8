import type { Finding } from '#contract';
import { ITERATIVE_PGVECTOR, isOlder, LEAST_PGVECTOR, SAFE_PGVECTOR } from '../pgvector.ts';
import { ok, problem, warning } from './findings.ts';
import type { Read } from './reading.ts';

export interface Extension {
  readonly schema: string;
  readonly version: string;
}

/** pgvector: installed, and new enough. `ours`: for tables of ours, which need more of it. */
export async function lookAtExtension(
  read: Read,
  ours: boolean,
): Promise<{ extension: Extension | undefined; findings: Finding[] }> {
  const [row] = await read<Partial<Extension> & { available: string | null; may: boolean }>(
    `select n.nspname as schema, e.extversion as version, a.default_version as available,
       has_database_privilege(current_database(), 'create')
         and (select bool_or(r.rolsuper or coalesce((to_jsonb(v) ->> 'trusted')::boolean, false)) from pg_available_extension_versions v, pg_roles r
              where v.name = 'vector' and r.rolname = current_user) as may
     from (values ('vector')) as wanted(name)
     left join pg_available_extensions a using (name)
     left join pg_extension e on e.extname = wanted.name left join pg_namespace n on n.oid = e.extnamespace`,
  );
  const { schema, version, available = null, may = false } = row ?? {};
  if (schema == null || version == null) return { extension: undefined, findings: [missing(available, ours && may)] };
  return { extension: { schema, version }, findings: [judged(version, available, ours)] };
}

const CREATE = { sql: 'create extension vector;', reason: 'as a superuser, in this database' };

function missing(available: string | null, made: boolean): Finding {
  if (available === null)
    return problem(
      'extension',
      'pgvector is not on this server: install its package there, then create the extension',
      CREATE,
    );
  if (made)
    return ok('extension', `pgvector ${available} is there; the gateway creates the extension at its first start`);
  return problem('extension', `pgvector ${available} is on this server, but not created in this database`, CREATE);
}

/** What there is to say of this version. `available`: what the server could update it to. */
export function judged(version: string, available: string | null, ours: boolean): Finding {
  if (ours && isOlder(version, LEAST_PGVECTOR))
    return problem(
      'extension',
      `pgvector ${version} is too old: ${LEAST_PGVECTOR} or newer is needed`,
      ...updates(available, LEAST_PGVECTOR),
    );
  if (!isOlder(version, SAFE_PGVECTOR)) return ok('extension', `pgvector ${version}`);
  const lacks = isOlder(version, ITERATIVE_PGVECTOR)
    ? `; before ${ITERATIVE_PGVECTOR} no vector index can serve the search of one user`
    : '';
  return warning(
    'extension',
    `pgvector ${version} is older than ${SAFE_PGVECTOR}, which fixes CVE-2026-3172 and HNSW indexes damaged by vacuum${lacks}`,
    ...updates(available, SAFE_PGVECTOR),
  );
}

/** Only the server's package can bring a newer one. */
function updates(available: string | null, wanted: string) {
  const there = available !== null && !isOlder(available, wanted);
  const first = there ? '' : `once the package of ${wanted} or newer is on the server; `;
  return [
    {
      sql: 'alter extension vector update;',
      reason: `${first}then rebuild HNSW indexes with "reindex index concurrently"`,
    },
  ];
}
