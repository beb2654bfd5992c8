import { randomBytes } from 'node:crypto';
import pg from 'pg';
import { afterAll, afterEach, beforeAll, beforeEach, expect } from 'vitest';
import { type AuditOptions, type Embedder, OmpError, type RankingOptions, type VersionOptions } from '#contract';
import { type Engine, startEngine } from '../../providers/postgres/embedded/engine.ts';
import { namesInUse } from '../../providers/postgres/startup/compatibility-check.ts';
import { MIGRATIONS, tablesMade } from '../../providers/postgres/startup/migrations.ts';
import { type Names, toNames } from '../../providers/postgres/tables/names.ts';
import { hashingEmbedder } from '../support/hashing-embedder.ts';
import { IS_CITUS, SERVER_OPTIONS, SERVER_URL } from '../support/postgres-server.ts';
import { openStoreOf, type Store, type WritableStore } from '../support/stores.ts';
import { makeDataDir, RECORDED, recordingLog, UNHURRIED_POSTGRES, VERSIONED } from '../support/subject.ts';

export { call, listOf, memoryOf, refTo, searchFor } from '../support/requests.ts';

export const randomName = (): string => `omp_test_${randomBytes(6).toString('hex')}`;

export interface OpenOptions {
  readonly url?: string;
  readonly schema?: string;
  readonly mode?: RankingOptions['mode'];
  readonly embedder?: Embedder;
  readonly log?: ReturnType<typeof recordingLog>;
  /** Defaults to keeping entries for ever; null: nothing is recorded. */
  readonly audit?: AuditOptions | null;
  readonly versions?: VersionOptions;
  readonly options?: object;
}

/** A database to look into from behind, with a schema that goes away when it closes. */
export interface TestDatabase {
  readonly url: string;
  readonly schema: string;
  /** Names of the tables in `schema`, with their buckets once a provider was opened. */
  readonly names: Names;
  sql<Row extends pg.QueryResultRow>(text: string, values?: readonly unknown[]): Promise<Row[]>;
  /** The provider as the registry opens it, without anything around it. Closed with the store. */
  open(options?: OpenOptions): Promise<WritableStore>;
  close(): Promise<void>;
}

/** One for all test files of a process: starting it takes seconds. It ends with the process, its folder with the run. */
let shared: Promise<Engine> | undefined;
const startShared = async (): Promise<Engine> =>
  startEngine(await makeDataDir(process.env.TEST_RUN_FOLDER), recordingLog());

/** A PostgreSQL server where there is one, else the embedded engine, reached through its socket as a server would be. */
export async function openStore(schema = randomName()): Promise<TestDatabase> {
  if (SERVER_URL === '') shared ??= startShared();
  const engine = await shared;
  const url = engine
    ? `postgres://postgres@localhost/postgres?host=${encodeURIComponent(engine.config.host as string)}`
    : SERVER_URL;
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  await client.query('create extension if not exists vector');
  const { rows } = await client.query<{ schema: string }>(
    `select n.nspname as schema from pg_extension e join pg_namespace n on n.oid = e.extnamespace where e.extname = 'vector'`,
  );
  const providers: Store[] = [];
  const initial = toNames(schema, rows[0]?.schema ?? '');
  let names = initial;
  return {
    url,
    schema,
    get names() {
      return names;
    },
    sql: async <Row extends pg.QueryResultRow>(text: string, values: readonly unknown[] = []) =>
      (await client.query<Row>(text, [...values])).rows,
    async open({
      mode = 'hybrid',
      embedder = hashingEmbedder(),
      log = recordingLog(),
      audit = RECORDED,
      versions = VERSIONED,
      options,
      ...more
    } = {}) {
      const provider = (await openStoreOf(
        'postgres',
        // The engine takes few connections, and has one session for them all.
        {
          ...(engine ? { connections: 1 } : SERVER_OPTIONS),
          url: more.url ?? url,
          schema: more.schema ?? schema,
          ...UNHURRIED_POSTGRES,
          ...options,
        },
        {
          embedder: mode === 'keyword' ? undefined : embedder,
          ranking: { mode, keyword_weight: 0.5 },
          audit: audit ?? undefined,
          versions,
          data_dir: '/nowhere',
          log,
        },
      )) as WritableStore;
      if (IS_CITUS) names = await namesInUse(client, initial, true);
      providers.push(provider);
      return provider;
    },
    async close() {
      for (const provider of providers) await provider.close();
      await client.query(`drop schema if exists ${pg.escapeIdentifier(schema)} cascade`);
      await client.end();
    },
  };
}

/** A store for each test of the file, or of the `describe` that calls this. */
export function storeForEach(): TestDatabase {
  const store = {} as TestDatabase;
  beforeEach(async () => void Object.assign(store, await openStore()));
  afterEach(() => store.close());
  return store;
}

/** One store for all tests of the file. */
export function storeForAll(): TestDatabase {
  const store = {} as TestDatabase;
  beforeAll(async () => void Object.assign(store, await openStore()));
  afterAll(() => store.close());
  return store;
}

/** The error of a promise that rejects with an `OmpError`. */
export async function failure(pending: Promise<unknown>): Promise<OmpError> {
  const error = await pending.then(
    () => undefined,
    (reason: unknown) => reason,
  );
  expect(error).toBeInstanceOf(OmpError);
  return error as OmpError;
}

const POLL_MS = 20;
/** Far longer than any machine takes: only what never happens fails. */
const MOST_POLLS = 300_000 / POLL_MS;

/** Waits until the condition holds. Counts instead of measuring time, so it also works while a test holds the clock. */
export async function until(condition: () => Promise<boolean>): Promise<void> {
  for (let polls = 0; polls < MOST_POLLS; polls++) {
    if (await condition()) return;
    await new Promise((resolve) => setTimeout(resolve, POLL_MS));
  }
  throw new Error(`never happened: ${condition}`);
}

/** The tables that a schema of this version does not have yet. */
export const tablesSince = (version: number, names: Names): (string | undefined)[] =>
  tablesMade(names, version, MIGRATIONS.length).map(([, table]) => table);
