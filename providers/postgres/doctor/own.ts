import pg from 'pg';
import type { Embedder, Finding } from '#contract';
import { halfRestored, INGESTION, MIGRATIONS, missingTables } from '../migrate.ts';
import { toNames, withVectorsIn } from '../names.ts';
import type { Options } from '../options.ts';
import type { Extension } from './extension.ts';
import { ok, problem } from './findings.ts';
import { lookAtOwnIndexes } from './own-indexes.ts';
import { lookAtIngestion } from './own-ingestion.ts';
import { lookAtOwnPrivileges } from './own-privileges.ts';
import { lookAtStore, readStore } from './own-store.ts';
import type { Read } from './reading.ts';
import { estimateSize, lookAtSize } from './size.ts';

/** Tables of ours: whether they are there, the role may use them, and what is in them fits this gateway. */
export async function lookAtOwn(
  read: Read,
  { url, schema, large_user_rows }: Options,
  extension: Extension | undefined,
  embedder: Embedder | undefined,
): Promise<Finding[]> {
  const { findings, complete } = await lookAtOwnPrivileges(read, schema);
  if (!complete) return findings;
  // Where it is missing that is told already, and nothing below needs its types.
  const initial = toNames(schema, extension?.schema ?? 'public');
  const [{ version } = { version: 0 }] = await read<{ version: number }>(
    `select coalesce(max(version), 0) as version from ${initial.migrations}`,
  );
  findings.push(lookAtVersion(schema, version));
  if (version > MIGRATIONS.length) return findings;
  const missing = await read<{ name: string }>(missingTables(initial, version));
  if (missing.length > 0) {
    const lost = missing.map(({ name }) => name);
    return [...findings, problem('privileges', halfRestored(schema, lost))];
  }

  const store = await readStore(read, initial);
  const names = withVectorsIn(store?.column ?? 'embedding', initial);
  if (store) findings.push(...(await lookAtStore(read, names, { store, version, embedder })));
  if (version >= INGESTION) findings.push(await lookAtIngestion(read, names, embedder !== undefined));
  const dimensions = store?.made_by?.dimensions ?? null;
  findings.push(...(await lookAtOwnIndexes(read, { schema, names, version, dimensions })));

  const size = await estimateSize(read, schema, 'memories', { relation: 'memories', attribute: 'user_id' });
  const [some] = await read(`select 1 from ${names.memories} limit 1`);
  findings.push(lookAtSize(size, names.memories, some === undefined || url === undefined));
  const [{ large, moving } = { large: 0, moving: 0 }] = await read<{ large: number; moving: number }>(
    `select count(*) filter (where ready)::int as large, count(*) filter (where not ready)::int as moving from ${names.largeUsers}`,
  );
  const settling = moving > 0 ? `, and ${moving} on the way there` : '';
  findings.push(
    ok('size', `users with more than ${large_user_rows} memories, who are searched by index: ${large}${settling}`),
  );
  return findings;
}

function lookAtVersion(schema: string, version: number): Finding {
  const known = MIGRATIONS.length;
  if (version > known)
    return problem(
      'privileges',
      `the schema ${pg.escapeIdentifier(schema)} is at version ${version}, newer than this gateway knows (${known}); upgrade omp-gateway`,
    );
  if (version < known)
    return ok(
      'privileges',
      `the schema is at version ${version}; the gateway migrates it to ${known} at its next start`,
    );
  return ok('privileges', `the schema is at version ${version}`);
}
