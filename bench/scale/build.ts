import type pg from 'pg';
import { encodeTime } from 'ulid';
import { analyse, toUnitHalf } from '#ranking';
import { withBucket } from '../../providers/postgres/scaling/placement.ts';
import { toHalfvec, toKeys } from '../../providers/postgres/sql/values.ts';
import type { Names } from '../../providers/postgres/tables/names.ts';
import { bigintArray, bool, copyInto, type Fields, int2, text, textArray, timestamp } from './copy.ts';
import { type Draft, draftOf, ownersInTime, type User } from './population.ts';
import { randomFrom } from './random.ts';

export interface BuildOptions {
  readonly client: pg.Client;
  /** Empty tables, created by the migrations. */
  readonly names: Names;
  readonly users: readonly User[];
  readonly clauses: Clauses;
  /** Users with more memories enter the vector and keyword indexes. */
  readonly largeUserRows: number;
}

/** The sentences that memories are made of. */
export interface Clauses {
  readonly texts: readonly string[];
  readonly vectors: readonly Float32Array[];
  readonly terms: readonly (readonly string[])[];
}

const START = Date.UTC(2024, 10, 1);
const TWO_YEARS_MS = 2 * 365 * 86_400_000;
/** The weight of a memory's second half. */
const SECOND = 0.7;
/** Length of the noise. */
const NOISE = 0.4;

const COLUMNS = [
  ...[
    'bucket',
    'id',
    'user_id',
    'content',
    'scope',
    'tags',
    'created_at',
    'updated_at',
    'keywords',
    'embedding',
    'large',
  ],
];

/**
 * Fills the tables: rows by COPY in order of time, then indexes, then large users as after their move, statistics and
 * visibility as after a vacuum. A million memories take minutes, most of them for the vector index.
 */
export async function build({ client, names, users, clauses, largeUserRows }: BuildOptions): Promise<void> {
  const indexes = await client.query<{ name: string; definition: string }>(
    `select c.oid::regclass::text as name, pg_get_indexdef(c.oid) as definition
     from pg_index i join pg_class c on c.oid = i.indexrelid where i.indrelid = $1::regclass and not i.indisprimary`,
    [names.memories],
  );
  for (const { name } of indexes.rows) await client.query(`drop index ${name}`);
  await copyInto(client, `${names.memories} (${COLUMNS.join(', ')})`, rowsOf(users, clauses, largeUserRows, names));
  const large = users.filter(({ memories }) => memories > largeUserRows).map(({ id }) => id);
  for (const id of large)
    await client.query(`insert into ${names.largeUsers} (bucket, user_id, ready) values ($1, $2, true)`, [
      names.placement.bucketOf(id),
      id,
    ]);
  await client.query(`set maintenance_work_mem = '3GB'; set max_parallel_maintenance_workers = 2`);
  for (const { definition } of indexes.rows) await client.query(definition);
  await client.query(`vacuum analyze ${names.memories}`);
  await client.query(`vacuum analyze ${names.largeUsers}`);
}

function* rowsOf(users: readonly User[], clauses: Clauses, largeUserRows: number, names: Names): Iterable<Fields> {
  const owners = ownersInTime(users);
  const made = new Uint32Array(users.length);
  for (const [i, owner] of owners.entries()) {
    const user = users[owner] as User;
    const n = made[owner] as number;
    made[owner] = n + 1;
    const draft = draftOf(user, n, clauses.texts);
    const time = START + Math.floor((i / owners.length) * TWO_YEARS_MS);
    const bucket = names.placement.bucketOf(user.id);
    yield [
      int2(bucket),
      text(withBucket(`mem_${encodeTime(time, 10)}${String(i).padStart(16, '0')}`, bucket)),
      text(user.id),
      text(draft.content),
      draft.scope === null ? null : text(draft.scope),
      textArray(draft.tags),
      timestamp(time),
      timestamp(time),
      bigintArray(toKeys(user.id, termsOf(draft, clauses))),
      toHalfvec(vectorOf(draft, clauses)),
      bool(user.memories > largeUserRows),
    ];
  }
}

/** The result of `analyse` for the whole text. */
const termsOf = ({ parts: [first, second], detail }: Draft, { terms }: Clauses): string[] => [
  ...new Set([
    ...(terms[first] as string[]),
    ...(terms[second] as string[]),
    ...(detail === null ? [] : analyse(detail)),
  ]),
];

/** The bundled model averages words: a text of two clauses lies between them. Noise stands for everything else. */
function vectorOf({ parts: [first, second], seed }: Draft, { vectors }: Clauses): Float32Array {
  const [a, b] = [vectors[first], vectors[second]] as [Float32Array, Float32Array];
  const random = randomFrom(seed ^ 0x5bd1e995);
  // Even numbers within ±1 have the variance 1/3.
  const noise = NOISE / Math.sqrt(a.length / 3);
  return toUnitHalf(a.map((x, i) => x + SECOND * (b[i] as number) + noise * (2 * random() - 1)));
}
