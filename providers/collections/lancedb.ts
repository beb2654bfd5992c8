import { existsSync } from 'node:fs';
import { mkdir } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import type { Connection, Table } from '@lancedb/lancedb';
import { z } from 'zod';
import {
  type Call,
  type Collection,
  type CollectionContext,
  createKeyedMutex,
  type Description,
  defineCollection,
  type Failure,
  type Filter,
  type Finding,
  loadPackage,
  type Match,
  type PageRequest,
  type Point,
  type PointChange,
  type QueryRequest,
  type ScanRequest,
  type Selection,
  type Traits,
} from '#provider';
import { LANCEDB, mappingOptions } from './mapped/presets.ts';
import {
  after,
  anyOf,
  condition,
  type Layout,
  layoutOf,
  pointsIn,
  rowOf,
  schemaOf,
  settersOf,
} from './points/lancedb.ts';

/** The options of a table. `src/config/collection-settings.ts` derives the settings from them. */
export const Options = z.strictObject({
  /** Unset: a folder in the data folder. No address of a server or a bucket: those were not tried. */
  folder: z.optional(z.string().regex(/^(?!\w{1,16}:\/\/)[^\0]{1,1024}$/)),
  table: z
    .string()
    .regex(/^\w[\w.-]{0,62}$/)
    .default('omp_memories'),
  ...mappingOptions(LANCEDB),
});

const TITLE = 'LanceDB';

/** LanceDB: a folder, read and written in the process. Vectors are compared exactly, those of one user at a time. */
export default defineCollection({
  specVersion: 2,
  name: 'lancedb',
  title: TITLE,
  options: Options,
  presets: LANCEDB,
  async open({ folder, table, preset }, { data_dir, log }) {
    const [client, arrow] = await Promise.all([
      loadPackage(() => import('@lancedb/lancedb'), '@lancedb/lancedb@0.31'),
      loadPackage(() => import('apache-arrow'), 'apache-arrow@18.1'),
    ]);
    const path = resolve(folder ?? join(data_dir, 'lancedb'));
    if (preset !== undefined && !existsSync(path))
      throw new Error(
        `there is no folder ${path}: OMP_LANCEDB_FOLDER is the one in which the application keeps the table`,
      );
    try {
      await mkdir(path, { recursive: true });
    } catch (cause) {
      throw new Error('the folder of OMP_LANCEDB_FOLDER cannot be made: it must be a folder, and writable', { cause });
    }
    // 0: what other processes wrote is seen at once.
    const connection = await client.connect(path, {
      readConsistencyInterval: 0,
      // Else the engine writes a list of the tables, `__manifest`, into a folder that it only opens.
      namespaceClientProperties: { manifest_enabled: 'false' },
    });
    return new LanceTable({ client, arrow, connection, name: table, isMapped: preset !== undefined, log });
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
  nested: true,
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
  /** Whether another application fills it. Then nothing but rows is changed: no index, no old version. */
  isMapped: boolean;
  log: CollectionContext['log'];
}>;

class LanceTable implements Collection {
  readonly traits: Traits;
  readonly #opened: Opened;
  #table: Table | undefined;
  #layout: Layout | undefined;
  /** One write after the other: each makes a version of the table, and those at once would begin again. */
  readonly #turn = createKeyedMutex();
  #writes = 0;
  #due = MIN_WRITES;

  constructor(opened: Opened) {
    this.#opened = opened;
    // A search by the cosine leaves out vectors of zeros. A column of others may hold a text or a list.
    this.traits = opened.isMapped ? { ...TRAITS, exact: false, filters: ['anyOf'], shared_ids: true } : TRAITS;
  }

  async describe(): Promise<Description | undefined> {
    const { connection, name, arrow, isMapped } = this.#opened;
    try {
      this.#table ??= await connection.openTable(name);
    } catch (error) {
      if (messageOf(error).includes('was not found')) return undefined;
      throw error;
    }
    const [schema, points] = [await this.#table.schema(), await this.#table.countRows()];
    this.#layout = layoutOf(arrow, schema);
    const { dimensions, vectors, hasIds } = this.#layout;
    const indexed = (await this.#table.listIndices()).flatMap((index) => index.columns);
    const known = { dimensions, empty: points === 0, points, indexed };
    if (isMapped) {
      const mistake = vectors.length === 1 ? undefined : 'its rows have several vectors, or none';
      return { ...known, mistake: hasIds ? mistake : 'its rows have no "id", a text: none could be read again' };
    }
    const isOurs = String(schema) === String(schemaOf(arrow, dimensions));
    const mistake = `the table ${name} was not made by the gateway; name another one by OMP_LANCEDB_TABLE`;
    return {
      ...known,
      mistake: isOurs ? undefined : mistake,
      unindexed: INDEXED.filter((column) => !indexed.includes(column)),
    };
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
    const rows = points.map((point) => rowOf(this.#known, point));
    await this.#write((table) => merge(table).whenMatchedUpdateAll().whenNotMatchedInsertAll().execute(rows), call);
  }

  async replace(point: Point, updated: number, call: Call): Promise<boolean> {
    const where = `target.updated = ${updated}`;
    const replaced = (table: Table) =>
      merge(table)
        .whenMatchedUpdateAll({ where })
        .execute([rowOf(this.#known, point)]);
    return (await this.#write(replaced, call)).numUpdatedRows > 0;
  }

  async remove(ids: readonly string[], call: Call) {
    await this.#write((table) => table.delete(anyOf('id', ids)), call);
  }

  async removeIf(id: string, updated: number, call: Call): Promise<boolean> {
    const where = `${anyOf('id', [id])} AND \`updated\` = ${updated}`;
    return (await this.#write((table) => table.delete(where), call)).numDeletedRows > 0;
  }

  async change(change: PointChange, call: Call): Promise<boolean> {
    const where = anyOf('id', [change.id]);
    const changed = await this.#write(async (table) => {
      // The whole object of a field is written: as it is now.
      const layout = layoutOf(this.#opened.arrow, await table.schema());
      return table.update({ where, valuesSql: settersOf(layout, change) });
    }, call);
    return changed.rowsUpdated > 0;
  }

  fetch = (ids: readonly string[], select: Selection) =>
    pointsIn(this.#ready.query().where(anyOf('id', ids)), this.#known, select);

  async page({ filter, after: last = '', limit, select }: PageRequest) {
    const where = filter ? `${after(last)} AND ${condition(filter)}` : after(last);
    const query = this.#ready.query().where(where).orderBy({ columnName: 'id' }).limit(limit);
    const points = await pointsIn(query, this.#known, select);
    return { points, next: points.length < limit ? undefined : points.at(-1)?.id };
  }

  async query({ vector, filter, limit, select }: QueryRequest): Promise<Match[]> {
    const [column] = this.#known.vectors;
    const nearest = this.#ready.query().nearestTo(vector).distanceType('cosine').bypassVectorIndex();
    const found = nearest.column(String(column)).where(condition(filter)).limit(limit);
    return pointsIn(found, this.#known, select, ['_distance']);
  }

  scan = ({ filter, limit, select }: ScanRequest) =>
    pointsIn(this.#ready.query().where(condition(filter)).limit(limit), this.#known, select);

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
  get #known(): Layout {
    if (this.#layout === undefined) throw new Error('the table was not found');
    return this.#layout;
  }

  async #write<Result>(work: (table: Table) => Promise<Result>, call: Call): Promise<Result> {
    const result = await this.#turn('', async () => {
      call.throwIfAborted();
      return work(this.#ready);
    });
    if (!this.#opened.isMapped && ++this.#writes >= this.#due) void this.#putTogether();
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

const merge = (table: Table) => table.mergeInsert('id');

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
  return FAILURES.find(([words]) => words.test(messageOf(error)))?.[1];
}
