import { COMMON_USAGE } from './arguments.ts';

export const MOVE_COMMANDS = ['export', 'import', 'migrate', 'verify'] as const;
export type MoveCommand = (typeof MOVE_COMMANDS)[number];

const STORES = `A STORE is
  config              the configured one of this machine (the embedded Postgres
                      belongs to one process: stop its gateway, or use its URL)
  config:FILE         that of a configuration file; the environment does not
                      count then
  https://...         a gateway. Its key, if it needs one: OMP_KEY, or
                      OMP_FROM_KEY and OMP_TO_KEY`;

const FILTERS = `  --user USER         Only memories of this user; may be given several times
  --scope GLOB        Only memories of these scopes, such as work/*
  --tag TAG           Only memories with this tag; several: with all of them
  --since WHEN        Only memories changed at or after this time (ISO 8601)`;

const WRITING = `  --on-conflict HOW   For ids that are stored already with other fields: skip
                      (default), replace, or fail
  --concurrency N     Requests at a time (1 to 32, default 4)
  --per-minute N      Write at most N memories a minute
  --dry-run           Only count; change nothing`;

const END = `  --json              Print the outcome as JSON
${COMMON_USAGE}

Exit status: 0: done; 1: it failed, was stopped, or something was rejected;
2: wrong arguments. Progress goes to standard error.
`;

/** What `omp-gateway COMMAND --help` prints: at most 80 columns wide. */
export const MOVE_USAGES: Readonly<Record<MoveCommand, string>> = {
  export: `Usage: omp-gateway export FILE [--from STORE] [options]

Writes memories to a file, with all fields, ids and times: a header, one memory
a line as JSON, and a last line with a checksum. A name that ends in .gz is
compressed; - is standard output. After an interruption, the same command goes
on where it was.

${STORES}

Options:
  --from STORE        Default: config
  --vectors           Write the vectors too, so that they need not be computed
                      again for the same embedder
${FILTERS}
  --restart           Start over
${END}`,
  import: `Usage: omp-gateway import FILE [--to STORE] [options]

Stores the memories of a file that "omp-gateway export" wrote, with their ids
and times and without audit entries; - is standard input. The file is checked as
a whole before anything is stored. After an interruption, the same command goes
on where it was; nothing is stored twice.

${STORES}

Options:
  --to STORE          Default: config
  --format FORMAT     mem0: the answers of its get_all as JSON; csv: the first
                      row names the columns. One --user is then the user of
                      memories that name none
  --column FIELD=COLUMN  Of a CSV file: which column a field is in, such as
                      content=text; may be given several times
${FILTERS}
${WRITING}
  --restart           Start over
${END}`,
  migrate: `Usage: omp-gateway migrate --from STORE --to STORE [options]

Copies one store into another, while the first may still be written: after each
pass the memories that changed meanwhile are copied, until none did. Then stop
writing to the first one and run the command once more: it goes on where it was.
Changed memories are replaced in the target. Deleted ones are not deleted there:
"omp-gateway verify" names them.

${STORES}

Options:
  --progress FILE     Where it went on (default omp-migrate.json)
${FILTERS}
  --concurrency N     Requests at a time (1 to 32, default 4)
  --per-minute N      Write at most N memories a minute
  --restart           Start over
${END}`,
  verify: `Usage: omp-gateway verify A B [options]

Compares all fields of all memories of two stores or files, the number of
memories of each user, and the ten best memories of some queries. Names what
differs.

${STORES}
  FILE                anything else: a file that "omp-gateway export" wrote

Options:
  --queries N         Queries to compare (0 to 1000, default 20)
  --overlap SHARE     Least mean share of the same memories among the ten best
                      (0 to 1, default 0.9)
${FILTERS}
${END}`,
};
