import { mkdir } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import type { Connection, Query, Table, VectorQuery } from '@lancedb/lancedb';
import { z } from 'zod';
import {
  type Call,
  type Collection,
  type CollectionContext,
  createKeyedMutex,
  defineCollection,
  type Failure,
  FIELDS,
  type Field,
  type FieldValue,
  type Filter,
  type Finding,
  loadPackage,
  type Match,
  type Point,
  type QueryRequest,
  type ScanRequest,
  type Selection,
  type Traits,
} from '#provider';

/** The options of a table. `src/config/collection-settings.ts` derives the settings from them. */
export const Options = z.strictObject({
  /** Unset: a folder in the data folder. No address of a server or a bucket: those were not tried. */
  folder: z.optional(z.string().regex(/^(?!\w{1,16}:\/\/)[^\0]{1,1024}$/)),
  table: z
    .string()
    .regex(/^[A-Za-z_]\w{0,62}$/)
    .default('omp_memories'),
});

const TITLE = 'LanceDB';

/** LanceDB: a folder, read and written in the process. Vectors are compared exactly, those of one user at a time. */
export default defineCollection({
  specVersion: 2,
  name: 'lancedb',
  title: TITLE,
  options: Options,
  async open({ folder, table }, { data_dir, log }) {
    const [client, arrow] = await Promise.all([
      loadPackage(() => import('@lancedb/lancedb'), '@lancedb/lancedb@0.31'),
      loadPackage(() => import('apache-arrow'), 'apache-arrow@18.1'),
    ]);
    const path = resolve(folder ?? join(data_dir, 'lancedb'));
    try {
      await mkdir(path, { recursive: true });
    } catch (cause) {
      throw new Error('the folder of OMP_LANCEDB_FOLDER cannot be made: it must be a folder, and writable', { cause });
    }
    // 0: what other processes wrote is seen at once.
    const connection = await client.connect(path, { readConsistencyInterval: 0 });
    return new LanceTable({ client, arrow, connection, name: table, log });
  },
  failure,
  diagnose: (collection) => (collection as LanceTable).findings(),
});

const TRAITS: Traits = {
  measure: 'cosine distance',
  exact: true,
  filters: ['anyOf', 'allOf', 'prefix', 'not'],
  // It can, and then reads that column of all that match for each page.
  order: 'none',
  ids: 'text',
  max_batch: 500,
  max_batch_bytes: 32 * 1024 * 1024,
  max_point_bytes: null,
  max_limit: 100_000,
};

/** Each costs time in every write, and saves more in reads. */
const INDEXED = ['id', 'user_id', 'created', 'place', 'user_place'];

/** Every write adds a file, and a read opens all. After this many they are put together, which also drops what was deleted. */
const MIN_WRITES = 50;
/** Putting together takes longer the more there is: about this many milliseconds for each write. */
const MS_FOR_A_WRITE = 20;
/** Files that nothing needs any more are kept for reads that began before. */
const KEPT_MS = 10 * 60_000;

type Opened = Readonly<{
  client: typeof import('@lancedb/lancedb');
  arrow: typeof import('apache-arrow');
  connection: Connection;
  name: string;
  log: CollectionContext['log'];
}>;

class LanceTable implements Collection {
  readonly traits = TRAITS;
  readonly #opened: Opened;
  #table: Table | undefined;
  /** One write after the other: each makes a version of the table, and those at once would begin again. */
  readonly #turn = createKeyedMutex();
  #writes = 0;
  #due = MIN_WRITES;

  constructor(opened: Opened) {
    this.#opened = opened;
  }

  async describe() {
    const { connection, name, arrow } = this.#opened;
    try {
      this.#table ??= await connection.openTable(name);
    } catch (error) {
      if (messageOf(error).includes('was not found')) return undefined;
      throw error;
    }
    const [schema, rows] = [await this.#table.schema(), await this.#table.countRows()];
    const vector = schema.fields.find((field) => field.name === 'vector')?.type;
    const dimensions = vector && arrow.DataType.isFixedSizeList(vector) ? vector.listSize : 0;
    const isOurs = String(schema) === String(schemaOf(arrow, dimensions));
    const mistake = isOurs ? undefined : `the table ${name} is not the gateway's; name another by OMP_LANCEDB_TABLE`;
    const indexed = (await this.#table.listIndices()).flatMap((index) => index.columns);
    return { dimensions, empty: rows === 0, mistake, unindexed: INDEXED.filter((column) => !indexed.includes(column)) };
  }

  async prepare({ dimensions }: { readonly dimensions: number }) {
    const { client, arrow, connection, name } = this.#opened;
    this.#table = await connection.createEmptyTable(name, schemaOf(arrow, dimensions), { existOk: true });
    for (;;) {
      const [column] = (await this.describe())?.unindexed ?? [];
      if (column === undefined) break;
      await this.#table.createIndex(column, { config: client.Index.btree() }).catch((error) => {
        // Another gateway was faster.
        if (!/already exists|conflict/.test(messageOf(error))) throw error;
      });
    }
    void this.#putTogether();
  }

  async upsert(points: readonly Point[], call: Call) {
    const rows = points.map(rowOf);
    await this.#write((table) => merge(table).whenMatchedUpdateAll().whenNotMatchedInsertAll().execute(rows), call);
  }

  async replace(point: Point, updated: number, call: Call): Promise<boolean> {
    const where = `target.updated = ${updated}`;
    const replaced = (table: Table) =>
      merge(table)
        .whenMatchedUpdateAll({ where })
        .execute([rowOf(point)]);
    return (await this.#write(replaced, call)).numUpdatedRows > 0;
  }

  async remove(ids: readonly string[], call: Call) {
    await this.#write((table) => table.delete(anyOf('id', ids)), call);
  }

  async removeIf(id: string, updated: number, call: Call): Promise<boolean> {
    const where = `${anyOf('id', [id])} AND \`updated\` = ${updated}`;
    return (await this.#write((table) => table.delete(where), call)).numDeletedRows > 0;
  }

  fetch = (ids: readonly string[], select: Selection) => pointsIn(this.#ready.query().where(anyOf('id', ids)), select);

  async query({ vector, filter, limit, select }: QueryRequest): Promise<Match[]> {
    const nearest = this.#ready.query().nearestTo(vector).distanceType('cosine').bypassVectorIndex();
    return pointsIn(nearest.where(condition(filter)).limit(limit), select, ['_distance']);
  }

  scan = ({ filter, limit, select }: ScanRequest) =>
    pointsIn(this.#ready.query().where(condition(filter)).limit(limit), select);

  count = (filter: Filter) => this.#ready.countRows(condition(filter));

  async ping() {
    await this.#opened.connection.tableNames({ limit: 1 });
    await this.#table?.countRows(anyOf('id', ['.']));
  }

  async close() {
    await this.#turn('', async () => {
      this.#table?.close();
      this.#opened.connection.close();
    });
  }

  findings = async (): Promise<Finding[]> => {
    const { numRows, fragmentStats } = await this.#ready.stats();
    const isSlow = fragmentStats.numFragments > 10 * MIN_WRITES;
    const message = `${numRows} points in ${fragmentStats.numFragments} parts`;
    const help = isSlow ? ', which makes reads slow: the next start puts them together' : '';
    return [{ area: 'size', level: isSlow ? 'warning' : 'ok', message: message + help }];
  };

  get #ready(): Table {
    if (this.#table === undefined) throw new Error('the table was not found');
    return this.#table;
  }

  async #write<Result>(work: (table: Table) => Promise<Result>, call: Call): Promise<Result> {
    const result = await this.#turn('', async () => {
      call.throwIfAborted();
      return work(this.#ready);
    });
    if (++this.#writes >= this.#due) void this.#putTogether();
    return result;
  }

  /** Never fails: what was written stays readable, and the next writes try again. */
  async #putTogether(): Promise<void> {
    this.#writes = 0;
    await this.#turn('', async () => {
      const start = performance.now();
      try {
        await this.#table?.optimize({ cleanupOlderThan: new Date(Date.now() - KEPT_MS) });
      } catch (error) {
        // Nearly always another gateway was quicker. The text may quote a record.
        this.#opened.log.debug?.({ error: (error as Error).name }, `${TITLE} did not put its files together`);
      }
      this.#due = Math.max(MIN_WRITES, (performance.now() - start) / MS_FOR_A_WRITE);
    });
  }
}

/** With it, two gateways that store a new id at once make one point of it. */
const KEY = new Map([['lance-schema:unenforced-primary-key', 'true']]);

function schemaOf({ Field, FixedSizeList, Float32, Float64, List, Schema, Utf8 }: Opened['arrow'], dimensions: number) {
  const types = {
    text: new Utf8(),
    number: new Float64(),
    texts: new List(new Field('item', new Utf8(), false)),
  } as const satisfies Record<Field['type'], unknown>;
  return new Schema([
    new Field('id', types.text, false, KEY),
    ...FIELDS.map(({ name, type }) => new Field(name, types[type], false)),
    new Field('vector', new FixedSizeList(dimensions, new Field('item', new Float32(), true)), false),
  ]);
}

const merge = (table: Table) => table.mergeInsert('id');
const rowOf = ({ id, fields, vector }: Point) => ({ id, ...fields, vector });

/** Reads what is selected. `more`: the measure of a search. */
async function pointsIn(query: Query | VectorQuery, { fields, vector }: Selection, more: '_distance'[] = []) {
  const names = FIELDS.flatMap(({ name }) => (fields === undefined || fields.includes(name) ? name : []));
  const rows = await query.select(['id', ...names, ...(vector ? ['vector'] : []), ...more]).toArrow();
  const [ids, vectors, measures, ...columns] = ['id', 'vector', '_distance', ...names].map((name) =>
    rows.getChild(name),
  );
  return Array.from(
    { length: rows.numRows },
    (_, at): Match => ({
      id: String(ids?.get(at)),
      fields: Object.fromEntries(names.map((name, column) => [name, plain(columns[column]?.get(at))])),
      ...(vectors && { vector: Float32Array.from(vectors.get(at)) }),
      measure: Number(measures?.get(at)),
    }),
  );
}
const plain = (cell: unknown) => (typeof cell === 'object' ? [...(cell as Iterable<string>)] : cell) as FieldValue;

/** Double quotes would make a text of it. */
const quoted = (name: string): string => `\`${name}\``;
const literal = (value: string | number): string =>
  typeof value === 'number' ? String(value) : `'${value.replaceAll("'", "''")}'`;
const anyOf = (field: string, values: readonly string[]): string =>
  `${quoted(field)} IN (${values.map(literal).join(', ')})`;

function condition(filter: Filter): string {
  if (filter.op === 'and') return `(${filter.filters.map(condition).join(' AND ')})`;
  if (filter.op === 'not') return `(NOT ${condition(filter.filter)})`;
  const column = quoted(filter.field);
  switch (filter.op) {
    case 'equals':
      return `(${column} = ${literal(filter.value)})`;
    case 'anyOf':
      return `(${anyOf(filter.field, filter.values)})`;
    case 'allOf':
      return `(${filter.values.map((value) => `array_has(${column}, ${literal(value)})`).join(' AND ')})`;
    case 'prefix':
      return `(starts_with(${column}, ${literal(filter.value)}))`;
    case 'range':
      return `(${column} BETWEEN ${filter.from ?? Number.MIN_SAFE_INTEGER} AND ${filter.to ?? Number.MAX_SAFE_INTEGER})`;
  }
}

const messageOf = (error: unknown): string => (error instanceof Error ? error.message.slice(0, 4_000) : '');

/** The engine has no codes: by its words. A write that fails leaves nothing. */
const FAILURES: readonly (readonly [RegExp, Failure])[] = [
  [/conflict|concurrent/i, { message: 'other gateways keep writing to the LanceDB table', retry: 'safe' }],
  [/no space left/i, { message: 'the disk of the LanceDB folder is full', down: true }],
  [/permission denied|read-only/i, { message: 'the gateway may not write to the LanceDB folder' }],
  [/not found/i, { message: 'the LanceDB table, or a file of it, is gone', down: true }],
  [/os error|\bIO\b/, { message: 'the LanceDB folder cannot be read or written', retry: 'reads', down: true }],
];

function failure(error: unknown): Failure | undefined {
  const message = messageOf(error);
  return FAILURES.find(([words]) => words.test(message))?.[1];
}
