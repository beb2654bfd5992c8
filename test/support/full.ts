/** Whether `npm run test:full` runs: more rounds, more stores, and these files. */
export const FULL = process.env.TEST_FULL !== undefined;

/**
 * Options of Node for a short life: V8 neither optimises the embedded Postgres, nor checks parts of it that never run, which pays off only
 * after many requests. The full run starts what users start.
 */
export const SHORT_LIVED: readonly string[] = FULL ? [] : ['--liftoff-only', '--wasm-lazy-validation'];

/** Ends only what hangs; no test has a limit of its own. Tests of a minute took longer where other processes kept every core busy. */
export const LIMIT_MS = 900_000;
/** How long a test waits for an event, so that it says what it waits for before the limit ends it. */
export const PATIENCE_MS = LIMIT_MS * 0.8;

const names: Readonly<Record<string, string>> = {
  access: 'matrix-pinecone sensitivity',
  differential: 'sensitivity',
  mapped: 'fuzz',
  mcp: 'official-tools',
  move: 'under-load',
  package: 'image providers-page',
  pinecone: 'paging-10000 try-pinecone',
  postgres: 'ingestion-faults large-users reembed search-cost',
  providers: 'chroma chroma-mapped lancedb-mapped',
  process: 'crash fuzz ingestion metrics outage reembed rolling-restart unused-packages',
};

/**
 * The files that only the full run has: they take minutes, and check once more, on another store or with more rounds,
 * what a file of the quick run decides: of `move/under-load`, `move/follow` (kills, freezing) and `move/walk-through` (load, with a ledger). Only
 * `package/providers-page` checks the code of docs/providers.md.
 */
export const FULL_ONLY = Object.entries(names).flatMap(([folder, files]) =>
  files.split(' ').map((file) => `test/${folder}/${file}.test.ts`),
);
