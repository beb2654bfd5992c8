import type { Embedder, EmbedderIdentity, Finding } from '#contract';
import { ANALYSER_VERSION } from '#ranking';
import { called, mismatch, WITHOUT_VECTOR, withoutVector } from '../adopt.ts';
import { conditions } from '../conditions.ts';
import { INGESTION } from '../migrate.ts';
import type { Names } from '../names.ts';
import { isSame, type Store } from '../store-row.ts';
import { ok, problem, warning } from './findings.ts';
import type { Read } from './reading.ts';
import { compareVectors } from './vectors.ts';

interface StoreRow {
  readonly analyser_version: number;
  readonly embedding_model: string | null;
  readonly dimensions: number | null;
  readonly embedding_column?: string;
  readonly columns_made?: number;
  readonly next_model?: string | null;
  readonly next_dimensions?: number | null;
  readonly next_column?: string | null;
}

/** What the data was made with, also where a schema of an older version has no columns yet for all of it. */
export async function readStore(read: Read, names: Names): Promise<Store | undefined> {
  const [{ row } = {}] = await read<{ row?: StoreRow }>(`select to_jsonb(s) as row from ${names.store} s`);
  if (!row) return undefined;
  const next = identity(row.next_model, row.next_dimensions);
  return {
    analyser_version: row.analyser_version,
    made_by: identity(row.embedding_model, row.dimensions),
    column: row.embedding_column ?? 'embedding',
    columns_made: row.columns_made ?? 1,
    next: next && { ...next, column: row.next_column ?? '' },
  };
}

const identity = (model: string | null | undefined, dimensions: number | null | undefined): EmbedderIdentity | null =>
  model == null || dimensions == null ? null : { model, dimensions };

/** Whether this gateway's analyser and embedder fit what is stored. */
export async function lookAtStore(
  read: Read,
  names: Names,
  { store, version, embedder }: { store: Store; version: number; embedder: Embedder | undefined },
): Promise<Finding[]> {
  const findings: Finding[] = [];
  const { analyser_version, made_by, next } = store;
  if (analyser_version !== ANALYSER_VERSION) {
    findings.push(
      problem(
        'embedding',
        `the stored keywords were made by text analyser ${analyser_version}, this gateway has ${ANALYSER_VERSION}; use the omp-gateway that made them`,
      ),
    );
  }
  if (embedder && (made_by || next) && !isSame(made_by, embedder)) {
    findings.push(problem('embedding', mismatch(store, embedder)));
  } else {
    findings.push(ok('embedding', `the stored vectors were made by ${made_by ? called(made_by) : 'nobody yet'}`));
    if (embedder && made_by) {
      const where = conditions();
      where.and(`${names.embedding} is not null`);
      const stored = { from: names.memories, content: 'content', vector: names.embedding, where };
      findings.push(...(await compareVectors(read, embedder, stored)));
    }
  }
  if (next) {
    findings.push(
      warning(
        'embedding',
        `embedding everything anew for ${called(next)} was begun and is not finished; "omp-gateway reembed" goes on with it`,
      ),
    );
  }
  if (!embedder) return findings;
  const before = `select 1 from ${names.memories} where ${names.embedding} is null limit 1`;
  const missing = await read(version < INGESTION ? before : withoutVector(names));
  if (missing.length > 0) findings.push(problem('embedding', WITHOUT_VECTOR));
  return findings;
}
