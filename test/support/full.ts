/** Whether `npm run test:full` runs: more rounds, more stores, and these files. */
export const FULL = process.env.TEST_FULL !== undefined;

const names: Readonly<Record<string, string>> = {
  access: 'matrix-pinecone sensitivity',
  differential: 'sensitivity',
  mapped: 'fuzz',
  mcp: 'official-tools',
  package: 'image',
  pinecone: 'paging-10000 try-pinecone',
  postgres: 'ingestion-faults large-users reembed search-cost',
  process: 'crash fuzz ingestion metrics outage reembed rolling-restart unused-packages',
};

/**
 * The files that only the full run has: they take minutes, and check once more, on another store or with more rounds,
 * what a file of the quick run decides.
 */
export const FULL_ONLY = Object.entries(names).flatMap(([folder, files]) =>
  files.split(' ').map((file) => `test/${folder}/${file}.test.ts`),
);
