import { mkdir } from 'node:fs/promises';
import { join } from 'node:path';
import type { InValue, Row } from '@libsql/client';
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
  type Point,
  type Selection,
  type Traits,
} from '#provider';
import { type Connect, codeOf, DIED, openStatements, type Statements } from './statements/libsql.ts';

/** No database in memory, which keeps nothing, no user, whom the client refuses, and no token, which `auth_token` keeps secret. */
const ADDRESS = /^(?!file::memory:|\S*[?&](?:authToken=|mode=memory))(?:file:\S+|(?:libsql|https?):\/\/[^\s@]+)$/;
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
    const connect: Connect = (more) =>
      createClient({ url: address, ...(auth_token !== undefined && { authToken: auth_token }), ...more });
    try {
      return openTable(openStatements(address, connect), table);
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

/** A row has at most 5 MB there, and a write that takes longer than five seconds is given up for another one. */
const ON_SERVER = { max_batch_bytes: 8 * 1024 * 1024, max_point_bytes: 4_900_000 };

/** What the kit asks by: lists, last writes, conversations, exports of a user and of all, users, whose summaries read no rows. */
const INDEXES = {
  list: '"user_id", "created", "memory_id"',
  changed: '"user_id", "updated"',
  conversation: '"user_id", "conversation", "created", "memory_id"',
  user_export: '"user_id", "place", "memory_id"',
  export: '"place", "memory_id"',
  users: '"user_place", "memory_id", "user_id", "scope", "updated"',
} as const;

/** So many vectors are compared within a millisecond. */
const FEW = 500;
const quoted = (name: string): string => `"${name}"`;
/** The vector, and before it what is short: who reads that does not touch the pages of long texts. */
const [SHORT, LONG] = [true, false].map((filtered) => FIELDS.filter((field) => field.filtered === filtered));
const TYPES: Readonly<Record<Field['type'], string>> = { text: 'TEXT', number: 'INTEGER', texts: 'TEXT' };
const typed = (fields: readonly Field[] = []) => fields.map(({ name, type }) => `"${name}" ${TYPES[type]} NOT NULL`);
const COLUMNS = [...FIELDS.map(({ name }) => name), 'vector'].map(quoted);
const MARKS = COLUMNS.map(() => '?').join(', ');
/** At most `max_batch` of them. */
const within = (ids: readonly string[]): string => `"id" IN (${ids.map(() => '?').join(', ')})`;

function openTable(statements: Statements, name: string): Collection {
  const table = quoted(name);
  const { isFile, rows: rowsOf, write } = statements;
  /** Of a statement that reads all that a user has. If that is little it is not left to a thread, where it would wait for those of others. */
  const allOf = async (filter: Filter, text: string, args: readonly InValue[], call: Call): Promise<readonly Row[]> => {
    const [first] = filter.op === 'and' ? filter.filters : [filter];
    const isOfUser = isFile && first?.op === 'equals' && first.field === 'user_id';
    const more = `SELECT 1 FROM ${table} WHERE "user_id" = ? LIMIT 1 OFFSET ${FEW}`;
    const isLong = !isOfUser || (await rowsOf(more, [first.value], call)).length > 0;
    return isLong ? statements.longRows(text, args, call) : rowsOf(text, args, call);
  };

  return {
    traits: isFile ? TRAITS : { ...TRAITS, ...ON_SERVER },

    async describe(call) {
      const rows = await rowsOf('SELECT name, sql FROM sqlite_master WHERE tbl_name = ?', [name], call);
      const created = rows.find((row) => row.name === name)?.sql;
      if (created === undefined) return undefined;
      const [, dimensions] = /"vector" F32_BLOB\((\d{1,6})\)/.exec(String(created)) ?? [];
      const unindexed = Object.keys(INDEXES).filter((key) => !rows.some((row) => row.name === `${name}_${key}`));
      const mistake = dimensions
        ? undefined
        : `the table ${name} is not the gateway's; name another by OMP_LIBSQL_TABLE`;
      const [first] = await rowsOf(`SELECT 1 FROM ${table} LIMIT 1`, [], call);
      return { dimensions: Number(dimensions), empty: first === undefined, mistake, unindexed };
    },

    async prepare({ dimensions }, call) {
      const vector = `"vector" F32_BLOB(${dimensions}) NOT NULL`;
      const columns = ['"id" TEXT PRIMARY KEY NOT NULL', ...typed(SHORT), vector, ...typed(LONG)];
      const indexes = Object.entries(INDEXES).map(
        ([key, on]) => `CREATE INDEX IF NOT EXISTS "${name}_${key}" ON ${table} (${on})`,
      );
      await statements.prepare(call);
      await write([`CREATE TABLE IF NOT EXISTS ${table} (${columns.join(', ')})`, ...indexes], call);
    },

    async upsert(points, call) {
      const set = COLUMNS.map((column) => `${column} = excluded.${column}`).join(', ');
      const into = `INSERT INTO ${table} ("id", ${COLUMNS.join(', ')}) VALUES (?, ${MARKS})`;
      const sql = `${into} ON CONFLICT ("id") DO UPDATE SET ${set}`;
      const statements = points.map((point) => ({ sql, args: [point.id, ...valuesOf(point)] }));
      await write(statements, call);
    },

    async replace(point, updated, call) {
      const sql = `UPDATE ${table} SET (${COLUMNS.join(', ')}) = (${MARKS}) WHERE "id" = ? AND "updated" = ?`;
      return (await write([{ sql, args: [...valuesOf(point), point.id, updated] }], call)) > 0;
    },

    async removeIf(id, updated, call) {
      const sql = `DELETE FROM ${table} WHERE "id" = ? AND "updated" = ?`;
      return (await write([{ sql, args: [id, updated] }], call)) > 0;
    },

    async remove(ids, call) {
      await write([{ sql: `DELETE FROM ${table} WHERE ${within(ids)}`, args: [...ids] }], call);
    },

    async fetch(ids, select, call) {
      const sql = `SELECT ${selected(select)} FROM ${table} WHERE ${within(ids)}`;
      return (await rowsOf(sql, ids, call)).map(pointOf);
    },

    /** SQLite reads the other columns, and the pages of long texts, only of what is among the nearest so far. */
    async query({ vector, filter, limit, select }, call) {
      const { sql: where, args } = condition(filter);
      const measured = `vector_distance_cos("vector", ?) AS measure, ${selected(select)}`;
      const sql = `SELECT ${measured} FROM ${table} WHERE ${where} ORDER BY measure LIMIT ?`;
      const rows = await allOf(filter, sql, [bytesOf(vector), ...args, limit], call);
      return rows.map((row) => ({ ...pointOf(row), measure: Number(row.measure) }));
    },

    async scan({ filter, order, after, limit, select }, call) {
      const { sql: where, args } = condition(filter);
      const [direction, beyond] = order?.descending ? ['DESC', '<'] : ['ASC', '>'];
      const by = order && quoted(order.by);
      const from = by && after ? ` AND (${by}, "memory_id") ${beyond} (?, ?)` : '';
      const sorted = by ? ` ORDER BY ${by} ${direction}, "memory_id" ${direction}` : '';
      const sql = `SELECT ${selected(select)} FROM ${table} WHERE ${where}${from}${sorted} LIMIT ?`;
      const place = from && after ? [after.value, after.memory_id] : [];
      const values = [...args, ...place, limit];
      const isShort = order !== undefined && isIndexed(filter, order.by);
      return (await (isShort ? rowsOf(sql, values, call) : allOf(filter, sql, values, call))).map(pointOf);
    },

    async count(filter, call) {
      const { sql, args } = condition(filter);
      const [row] = await allOf(filter, `SELECT count(*) AS count FROM ${table} WHERE ${sql}`, args, call);
      return Number(row?.count);
    },

    ping: async (call) => void (await rowsOf('SELECT 1', [], call)),
    close: () => statements.close(),
  };
}

/** A copy: of a part of a buffer, a thread would get all. */
const bytesOf = (vector: Float32Array) => new Uint8Array(vector.slice().buffer);
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
  return { id: String(id), fields, ...(vector instanceof ArrayBuffer && { vector: new Float32Array(vector) }) };
}

const read = (value: unknown, type: Field['type']): FieldValue =>
  type === 'number' ? Number(value) : type === 'text' ? String(value) : JSON.parse(String(value));

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

/** Whether an index leads to what an ordered scan returns, so that it reads no more. */
const isIndexed = (filter: Filter, by: string): boolean =>
  filter.op === 'and'
    ? filter.filters.every((part) => isIndexed(part, by))
    : (filter.op === 'equals' || filter.op === 'range') && ['user_id', 'conversation', by].includes(filter.field);

const NONSENSE = `${TITLE}, or what stands before it, answered what cannot be read`;
const UNREADABLE: Failure = { message: NONSENSE, retry: 'reads', down: true };

/** By the code of SQLite, or of a server. A transaction that fails leaves nothing. */
const FAILURES: Readonly<Record<string, Failure>> = {
  [DIED]: { message: 'the thread of the libSQL file died', retry: 'reads', down: true, loggable: true },
  SQLITE_BUSY: { message: 'another process keeps writing to the libSQL file', retry: 'safe' },
  SQLITE_FULL: { message: 'the disk of the libSQL database is full', down: true, loggable: true },
  SQLITE_IOERR: { message: 'the libSQL file cannot be read or written', retry: 'reads', down: true, loggable: true },
  SQLITE_READONLY: { message: 'the gateway may not write to the libSQL database', loggable: true },
  SQLITE_NOTADB: { message: 'the file is no libSQL database', loggable: true },
  SQLITE_CORRUPT: { message: 'the libSQL file is damaged', down: true, loggable: true },
  SQLITE_TOOBIG: { code: 'payload_too_large', message: 'this is too large for libSQL' },
  RESPONSE_TOO_LARGE: { code: 'payload_too_large', message: 'the libSQL server has no room for the answer now' },
  TRANSACTION_TIMEOUT: { message: 'the write took the libSQL server too long, and was undone', retry: 'safe' },
  BLOCKED: { message: 'the libSQL server blocks the database, as its operator wants', loggable: true },
  HRANA_PROTO_ERROR: UNREADABLE,
};

function failure(error: unknown): Failure | undefined {
  const { status } = (error instanceof Error ? (error.cause ?? error) : {}) as { readonly status?: unknown };
  if (error instanceof SyntaxError) return UNREADABLE;
  if (status === 404) return { message: `${TITLE} has no such database` };
  const ofServer = typeof status === 'number' ? failureOfStatus(TITLE, status) : failureOfConnection(TITLE, error);
  return FAILURES[codeOf(error)] ?? ofServer;
}
