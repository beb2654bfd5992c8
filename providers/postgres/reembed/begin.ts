import type pg from 'pg';
import type { EmbedderIdentity } from '#contract';
import { called } from '../adopt.ts';
import { type Names, withVectorsIn } from '../names.ts';
import { isSame, lockStore, type Store } from '../store-row.ts';
import { setStorage, vectorIndexes } from '../vector-column.ts';
import { type Locking, withLocks } from './with-locks.ts';

/** Where vectors are missing, and whether that is the column in use, which needs no switch. Null: nothing was begun. */
export interface Target {
  readonly column: string;
  readonly inUse: boolean;
}

/** What there is to do for this embedder. Throws when something else was begun, unless that is to be given up. */
export function targetOf({ made_by, column, next }: Store, to: EmbedderIdentity, restart: boolean): Target | null {
  if (next && !restart && !isSame(next, to)) {
    throw new Error(
      `embedding everything anew for ${called(next)} was begun and is not finished, the configured embedder is ${called(to)}; configure the first one to finish that, or give it up with --restart`,
    );
  }
  if (isSame(made_by, to)) return { column, inUse: true };
  return next && !restart ? { column: next.column, inUse: false } : null;
}

/** Goes on with what was begun, or begins. */
export async function begin(
  locking: Locking,
  names: Names,
  { to, restart }: { readonly to: EmbedderIdentity; readonly restart: boolean },
): Promise<Target & { readonly from: EmbedderIdentity | null }> {
  const { client } = locking;
  const begun = await withLocks(locking, async () => {
    const store = await lockStore(client, names);
    const known = targetOf(store, to, restart);
    if (restart && store.next) await giveUp(client, names, store);
    return { ...(known ?? (await addColumn(client, names, { store, to }))), from: store.made_by };
  });
  if (!begun) throw new Error('nothing was begun');
  return begun;
}

const FORGET = 'forget_next_vector';

/**
 * Gateways go on with the vectors in use. A content they change takes its next vector away, whatever version they are:
 * the trigger is the database's. What they add has none yet.
 */
async function addColumn(
  client: pg.Client,
  names: Names,
  { store, to }: { readonly store: Store; readonly to: EmbedderIdentity },
): Promise<Target> {
  const made = store.columns_made + 1;
  const column = `embedding_${made}`;
  const next = withVectorsIn(column, names);
  await client.query(`alter table ${names.memories} add column ${next.embedding} ${names.halfvec}(${to.dimensions})`);
  await setStorage(client, next, to.dimensions, store.made_by?.dimensions);
  await client.query(`
    create function ${names.schema}.${FORGET}() returns trigger language plpgsql as
      $$ begin new.${next.embedding} := null; return new; end $$;
    create trigger ${FORGET} before update of content on ${names.memories} for each row
      when (new.content is distinct from old.content) execute function ${names.schema}.${FORGET}();
  `);
  await client.query(
    `update ${names.store} set columns_made = $1, next_model = $2, next_dimensions = $3, next_column = $4`,
    [made, to.model, to.dimensions, column],
  );
  return { column, inUse: false };
}

async function giveUp(client: pg.Client, names: Names, { made_by, next }: Store): Promise<void> {
  if (!next) return;
  await dropTrigger(client, names);
  await client.query(`alter table ${names.memories} drop column ${withVectorsIn(next.column, names).embedding}`);
  if (made_by) await setStorage(client, names, made_by.dimensions);
  await client.query(`update ${names.store} set next_model = null, next_dimensions = null, next_column = null`);
}

export const dropTrigger = (client: pg.Client, names: Names) =>
  client.query(`drop trigger ${FORGET} on ${names.memories}; drop function ${names.schema}.${FORGET}()`);

/** What an index is called until its column is in use. */
export const nextName = (name: string): string => `${name}_next`;

/**
 * Makes the indexes over the new column while that is empty, so that the switch finds them ready. On a server nobody
 * waits for it; one that was interrupted leaves an index that is not valid, which is made again.
 */
export async function makeIndexes(
  client: pg.Client,
  names: Names,
  { dimensions, concurrently }: { readonly dimensions: number; readonly concurrently: boolean },
): Promise<void> {
  for (const { name, on } of vectorIndexes(names, dimensions)) {
    const next = nextName(name);
    const { rows } = await client.query<{ indisvalid: boolean }>(
      'select indisvalid from pg_index where indexrelid = to_regclass($1)',
      [`${names.schema}.${next}`],
    );
    if (rows[0]?.indisvalid) continue;
    if (rows[0]) await client.query(`drop index ${names.schema}.${next}`);
    await client.query(`create index ${concurrently ? 'concurrently' : ''} ${next} on ${names.memories} ${on}`);
  }
}
