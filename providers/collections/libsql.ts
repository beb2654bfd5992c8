import { mkdir } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Client, InStatement, InValue, Row } from '@libsql/client';
import { z } from 'zod';
import {
  type Call,
  type Collection,
  defineCollection,
  type Failure,
  FIELDS,
  type Field,
  type FieldValue,
  type Filter,
  type FoundPoint,
  failureOfConnection,
  failureOfStatus,
  loadPackage,
  type Match,
  type Point,
  type QueryRequest,
  type ScanRequest,
  type Selection,
  type Traits,
} from '#provider';

/** No database in memory, which keeps nothing, no user, whom the client refuses, and no token, which `auth_token` keeps secret. */
const ADDRESS = /^(?!file::memory:|\S*[?&](?:authToken=|mode=memory))(?:file:\S+|(?:libsql|https?|wss?):\/\/[^\s@]+)$/;
/** The options of a database. `src/config/collection-settings.ts` derives the settings from them. */
export const Options = z.strictObject({
  /** Unset: a file in the data folder. */
  url: z.optional(z.string().regex(ADDRESS)),
  auth_token: z.optional(z.string().regex(/^[\x21-\x7e]+$/)),
  table: z
    .string()
    .regex(/^[A-Za-z_]\w{0,62}$/)
    .default('omp_memories'),
});

const TITLE = 'libSQL';
/** libSQL: a file in the process, or a database of Turso or of a libSQL server. Vectors are compared exactly, those of one user at a time. */
export default defineCollection({
  specVersion: 2,
  name: 'libsql',
  title: TITLE,
  options: Options,
  async open({ url, auth_token, table }, { data_dir }) {
    const { createClient } = await loadPackage(() => import('@libsql/client'), '@libsql/client@0.18');
    if (url === undefined) await mkdir(data_dir, { recursive: true });
    const address = url ?? `file:${join(data_dir, 'memories.db')}`;
    try {
      // One connection: with several, one of the process would wait for another of the process, without letting it go on.
      const client = createClient({
        url: address,
        concurrency: 1,
        ...(auth_token !== undefined && { authToken: auth_token }),
      });
      return new Table(client, table);
    } catch (error) {
      // The client names the path alone.
      if (!String(error).includes('ConnectionFailed')) throw error;
      throw new Error('the file of OMP_LIBSQL_URL cannot be opened: its folder must exist, and be writable', {
        cause: error,
      });
    }
  },
  failure,
});

const TRAITS: Traits = {
  measure: 'cosine distance',
  exact: true,
  filters: ['anyOf', 'allOf', 'prefix', 'not'],
  order: 'position',
  ids: 'text',
  max_batch: 500,
  max_batch_bytes: 32 * 1024 * 1024,
  max_point_bytes: null,
  max_limit: 100_000,
};

/** What the kit asks by: lists, last writes, conversations, exports of a user and of all, users, whose summaries read no rows. */
const INDEXES = {
  list: '"user_id", "created", "memory_id"',
  changed: '"user_id", "updated"',
  conversation: '"user_id", "conversation", "created", "memory_id"',
  user_export: '"user_id", "place", "memory_id"',
  export: '"place", "memory_id"',
  users: '"user_place", "memory_id", "user_id", "scope", "updated"',
} as const;

/** Reading through a map of the file, a search takes a third of the time. */
const PRAGMAS = ['journal_mode = WAL', 'mmap_size = 4294967296'];
const quoted = (name: string): string => `"${name}"`;
/** The vector, and before it what is short: who reads that does not touch the pages of long texts. */
const [SHORT, LONG] = [true, false].map((filtered) => FIELDS.filter((field) => field.filtered === filtered));
const TYPES: Readonly<Record<Field['type'], string>> = { text: 'TEXT', number: 'INTEGER', texts: 'TEXT' };
const typed = (fields: readonly Field[] = []) => fields.map(({ name, type }) => `"${name}" ${TYPES[type]} NOT NULL`);
const COLUMNS = [...FIELDS.map(({ name }) => name), 'vector'].map(quoted);
const MARKS = COLUMNS.map(() => '?').join(', ');
/** At most `max_batch` of them. */
const within = (ids: readonly string[]): string => `"id" IN (${ids.map(() => '?').join(', ')})`;

class Table implements Collection {
  readonly traits = TRAITS;
  readonly #client: Client;
  readonly #name: string;
  readonly #table: string;

  constructor(client: Client, name: string) {
    this.#client = client;
    this.#name = name;
    this.#table = quoted(name);
  }

  async describe(call: Call) {
    const rows = await this.#rows('SELECT name, sql FROM sqlite_master WHERE tbl_name = ?', [this.#name], call);
    const created = rows.find(({ name }) => name === this.#name)?.sql;
    if (created === undefined) return undefined;
    const [, dimensions] = /"vector" F32_BLOB\((\d{1,6})\)/.exec(String(created)) ?? [];
    const unindexed = Object.keys(INDEXES).filter((key) => !rows.some(({ name }) => name === `${this.#name}_${key}`));
    const mistake = dimensions
      ? undefined
      : `the table ${this.#name} is not the gateway's; name another by OMP_LIBSQL_TABLE`;
    const [first] = await this.#rows(`SELECT 1 FROM ${this.#table} LIMIT 1`, [], call);
    return { dimensions: Number(dimensions), empty: first === undefined, mistake, unindexed };
  }

  async prepare({ dimensions }: { readonly dimensions: number }, call: Call) {
    const vector = `"vector" F32_BLOB(${dimensions}) NOT NULL`;
    const columns = ['"id" TEXT PRIMARY KEY NOT NULL', ...typed(SHORT), vector, ...typed(LONG)];
    const indexes = Object.entries(INDEXES).map(
      ([key, on]) => `CREATE INDEX IF NOT EXISTS "${this.#name}_${key}" ON ${this.#table} (${on})`,
    );
    for (const pragma of this.#client.protocol === 'file' ? PRAGMAS : [])
      await this.#rows(`PRAGMA ${pragma}`, [], call);
    await this.#write([`CREATE TABLE IF NOT EXISTS ${this.#table} (${columns.join(', ')})`, ...indexes], call);
  }

  async upsert(points: readonly Point[], call: Call) {
    const set = COLUMNS.map((name) => `${name} = excluded.${name}`).join(', ');
    const into = `INSERT INTO ${this.#table} ("id", ${COLUMNS.join(', ')}) VALUES (?, ${MARKS})`;
    const sql = `${into} ON CONFLICT ("id") DO UPDATE SET ${set}`;
    await this.#write(
      points.map((point) => ({ sql, args: [point.id, ...valuesOf(point)] })),
      call,
    );
  }

  async replace(point: Point, updated: number, call: Call): Promise<boolean> {
    const sql = `UPDATE ${this.#table} SET (${COLUMNS.join(', ')}) = (${MARKS}) WHERE "id" = ? AND "updated" = ?`;
    return (await this.#write([{ sql, args: [...valuesOf(point), point.id, updated] }], call)) > 0;
  }

  async removeIf(id: string, updated: number, call: Call): Promise<boolean> {
    const sql = `DELETE FROM ${this.#table} WHERE "id" = ? AND "updated" = ?`;
    return (await this.#write([{ sql, args: [id, updated] }], call)) > 0;
  }

  async remove(ids: readonly string[], call: Call) {
    await this.#write([{ sql: `DELETE FROM ${this.#table} WHERE ${within(ids)}`, args: [...ids] }], call);
  }

  async fetch(ids: readonly string[], select: Selection, call: Call) {
    const sql = `SELECT ${selected(select)} FROM ${this.#table} WHERE ${within(ids)}`;
    return (await this.#rows(sql, ids, call)).map(pointOf);
  }

  /** SQLite reads the other columns, and the pages of long texts, only of what is among the nearest so far. */
  async query({ vector, filter, limit, select }: QueryRequest, call: Call): Promise<Match[]> {
    const { sql: where, args } = condition(filter);
    const measured = `vector_distance_cos("vector", ?) AS measure, ${selected(select)}`;
    const sql = `SELECT ${measured} FROM ${this.#table} WHERE ${where} ORDER BY measure LIMIT ?`;
    const rows = await this.#rows(sql, [bytesOf(vector), ...args, limit], call);
    return rows.map((row) => ({ ...pointOf(row), measure: Number(row.measure) }));
  }

  async scan({ filter, order, after, limit, select }: ScanRequest, call: Call) {
    const { sql: where, args } = condition(filter);
    const [direction, beyond] = order?.descending ? ['DESC', '<'] : ['ASC', '>'];
    const by = order && quoted(order.by);
    const from = by && after ? ` AND (${by}, "memory_id") ${beyond} (?, ?)` : '';
    const sorted = by ? ` ORDER BY ${by} ${direction}, "memory_id" ${direction}` : '';
    const sql = `SELECT ${selected(select)} FROM ${this.#table} WHERE ${where}${from}${sorted} LIMIT ?`;
    return (
      await this.#rows(sql, [...args, ...(from && after ? [after.value, after.memory_id] : []), limit], call)
    ).map(pointOf);
  }

  async count(filter: Filter, call: Call): Promise<number> {
    const { sql, args } = condition(filter);
    const [row] = await this.#rows(`SELECT count(*) AS count FROM ${this.#table} WHERE ${sql}`, args, call);
    return Number(row?.count);
  }

  ping = async (call: Call) => void (await this.#rows('SELECT 1', [], call));
  close = async () => this.#client.close();

  async #rows(sql: string, args: readonly InValue[], call: Call): Promise<Row[]> {
    return (await patiently(() => this.#client.execute({ sql, args: [...args] }), call)).rows;
  }

  /** All in one transaction. Returns how many rows the last one changed. */
  async #write(statements: readonly InStatement[], call: Call): Promise<number> {
    const results = await patiently(() => this.#client.batch([...statements], 'write'), call);
    return results.at(-1)?.rowsAffected ?? 0;
  }
}

const bytesOf = ({ buffer, byteOffset, byteLength }: Float32Array) => new Uint8Array(buffer, byteOffset, byteLength);
const stored = (value: FieldValue = ''): InValue => (typeof value === 'object' ? JSON.stringify(value) : value);
const valuesOf = ({ fields, vector }: Point) => [...FIELDS.map(({ name }) => stored(fields[name])), bytesOf(vector)];

function selected({ fields, vector }: Selection): string {
  const names = FIELDS.flatMap(({ name }) => (fields === undefined || fields.includes(name) ? name : []));
  return ['id', ...names, ...(vector ? ['vector'] : [])].map(quoted).join(', ');
}

function pointOf(row: Row): FoundPoint {
  const fields: Record<string, FieldValue> = {};
  for (const { name, type } of FIELDS) {
    const value = row[name];
    if (value !== undefined) fields[name] = read(value, type);
  }
  const { id, vector } = row;
  return {
    id: String(id),
    fields,
    ...(vector instanceof ArrayBuffer && { vector: new Float32Array(vector) }),
  };
}

const read = (value: unknown, type: Field['type']): FieldValue =>
  type === 'number' ? Number(value) : type === 'text' ? String(value) : JSON.parse(String(value));

/** How long a statement waits for another process, and between two attempts, in milliseconds. */
const [MAX_WAIT_MS, PAUSE_MS] = [5_000, 10];

/** Another process may be writing to the file. SQLite itself would wait without letting this process go on. */
async function patiently<Result>(work: () => Promise<Result>, call: Call): Promise<Result> {
  for (let waited = 0; ; waited += PAUSE_MS) {
    call.throwIfAborted();
    try {
      return await work();
    } catch (error) {
      if (codeOf(error) !== 'SQLITE_BUSY' || waited >= MAX_WAIT_MS) throw error;
      await sleep(PAUSE_MS);
    }
  }
}

type Sql = { readonly sql: string; readonly args: readonly InValue[] };
const sql = (text: string, ...args: InValue[]): Sql => ({ sql: text, args });
const joined = (parts: readonly Sql[]): Sql => ({
  sql: `(${parts.map((part) => part.sql).join(' AND ')})`,
  args: parts.flatMap(({ args }) => args),
});

function condition(filter: Filter): Sql {
  if (filter.op === 'and') return joined(filter.filters.map(condition));
  if (filter.op === 'not') {
    const held = condition(filter.filter);
    return { ...held, sql: `NOT ${held.sql}` };
  }
  const column = quoted(filter.field);
  switch (filter.op) {
    case 'equals':
      return sql(`(${column} = ?)`, filter.value);
    case 'anyOf':
      return sql(`(${column} IN (SELECT value FROM json_each(?)))`, JSON.stringify(filter.values));
    case 'allOf':
      return joined(filter.values.map((value) => sql(`? IN (SELECT value FROM json_each(${column}))`, value)));
    case 'prefix':
      return sql(`(substr(${column}, 1, length(?)) = ?)`, filter.value, filter.value);
    case 'range': {
      const { from = Number.MIN_SAFE_INTEGER, to = Number.MAX_SAFE_INTEGER } = filter;
      return sql(`(${column} BETWEEN ? AND ?)`, from, to);
    }
  }
}

const codeOf = (error: unknown): string => String((error as Partial<NodeJS.ErrnoException>).code);

/** By the code of SQLite. A transaction that fails leaves nothing. */
const FAILURES: Readonly<Record<string, Failure>> = {
  SQLITE_BUSY: { message: 'another process keeps writing to the libSQL file', retry: 'safe' },
  SQLITE_FULL: { message: 'the disk of the libSQL database is full', down: true, loggable: true },
  SQLITE_IOERR: { message: 'the libSQL file cannot be read or written', retry: 'reads', down: true, loggable: true },
  SQLITE_READONLY: { message: 'the gateway may not write to the libSQL database', loggable: true },
  SQLITE_NOTADB: { message: 'the file is no libSQL database', loggable: true },
  SQLITE_CORRUPT: { message: 'the libSQL file is damaged', down: true, loggable: true },
  SQLITE_TOOBIG: { code: 'payload_too_large', message: 'this is too large for libSQL' },
  SQLITE_AUTH: { message: 'libSQL does not allow this to the token of the gateway' },
};

function failure(error: unknown): Failure | undefined {
  const { status } = (error instanceof Error ? (error.cause ?? error) : {}) as { readonly status?: unknown };
  const ofServer = typeof status === 'number' ? failureOfStatus(TITLE, status) : failureOfConnection(TITLE, error);
  return FAILURES[codeOf(error)] ?? ofServer;
}
