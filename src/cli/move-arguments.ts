import { parseArgs } from 'node:util';
import type { OnConflict } from '../move/copy.ts';
import { type Filters, momentOf } from '../move/store.ts';
import { TRANSCRIPT_FORMATS, type TranscriptFormatName } from '../move/transcript-formats.ts';
import { COMMON_OPTIONS, COMMON_USAGE } from './arguments.ts';
import { Mistake } from './terminal.ts';

export type MoveCommand =
  | 'export'
  | 'import'
  | 'migrate'
  | 'verify'
  | 'freeze'
  | 'unfreeze'
  | 'rollback'
  | 'retention'
  | 'person';

const STORES = `A STORE is
  config              the configured one of this machine (the embedded Postgres
                      belongs to one process: stop its gateway, or use its URL)
  config:FILE         that of a configuration file; the environment does not
                      count then
  config#NAME         a mounted store alone, with its own ids and scopes, also
                      after a FILE; root: the root store alone
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
  --store NAME        As --from config#NAME
  --vectors           Write the vectors too, so that they need not be computed
                      again for the same embedder
  --versions          Write the versions of each memory too
${FILTERS}
  --restart           Start over
${END}`,
  import: `Usage: omp-gateway import FILE [--to STORE] [options]
       omp-gateway import [PATH] --format AGENT --user USER [options]

Stores the memories of a file that "omp-gateway export" wrote, with their ids
and times; - is standard input. The file is checked as
a whole before anything is stored. After an interruption, the same command goes
on where it was; nothing is stored twice.

The second form reads the sessions of a coding agent: what you wrote, and its
answers, without the output of tools; what looks like a secret is masked. AGENT
is claude-code, codex or gemini; PATH is a session or a folder of them, instead
of the folder of the agent.

${STORES}

Options:
  --to STORE          Default: config
  --format FORMAT     mem0: the answers of its get_all as JSON; csv: the first
                      row names the columns. One --user is then the user of
                      memories that name none. Or an AGENT
  --column FIELD=COLUMN  Of a CSV file: which column a field is in, such as
                      content=text; may be given several times
  --skip-damaged      Of a CSV file: leave out rows with more or fewer cells than
                      the first, name them, and end with status 1
  --versions          Store the versions in the file too
  --watch             Of an AGENT: go on with what is added to the sessions,
                      until it is stopped
  --limit N           Of an AGENT: only the newest N memories
${FILTERS}
${WRITING}
  --restart           Start over
${END}`,
  migrate: `Usage: omp-gateway migrate A B [options]

Copies store A into store B, while A may still be written: after each pass the
memories that changed meanwhile are copied, until none did. Changed memories are
replaced in B. Deleted ones are not deleted there; with --follow they are.

With --follow it goes on and applies every change of A to B, until it is stopped
or --cutover moves the traffic. It reads the feed of changes of A; a store without
one (a mapped table, Pinecone, auditing off) is compared with B again and again.
After an interruption the same command goes on where it was.

--cutover follows until B is up to date, freezes A (changes answer 503, reads go
on), applies the rest, and compares both: numbers of memories, all fields, ten
queries. Then start the gateways with B. If anything differs, A takes changes
again. "omp-gateway migrate B A --follow" keeps A up to date afterwards; thaw it
first ("omp-gateway unfreeze A").

${STORES}
                      To freeze it, the key of a gateway needs admin:* too

Options:
  --follow            Go on until it is stopped; only --user limits it
  --cutover           The same until B is up to date, then freeze A and verify
  --mirror            Delete memories of B that A does not have. Needed with
                      --follow if B is not empty at the beginning
  --overlap SHARE     Least mean share of the same memories among the ten best
                      of the queries of --cutover (0 to 1, default 0.9)
  --report FILE       Where --cutover writes what it compared
                      (default omp-migrate-report.json)
  --progress FILE     Where it went on (default omp-migrate.json)
  --versions          Copy the versions of each memory too, with --follow those of
                      later changes; a purge is not followed
  --from A --to B     The same as A B
${FILTERS}
  --concurrency N     Requests at a time (1 to 32, default 4)
  --per-minute N      Write at most N memories a minute
  --restart           Start over
${END}`,
  freeze: `Usage: omp-gateway freeze [STORE] [options]

Stops all changes of memories on every gateway of a store: they answer 503 until
"omp-gateway unfreeze". Reads go on.

${STORES}
                      Its key needs the grant admin:*

Options:
${END}`,
  unfreeze: `Usage: omp-gateway unfreeze [STORE] [options]

Allows changes of memories again, whoever has frozen the store.

${STORES}
                      Its key needs the grant admin:*

Options:
${END}`,
  rollback: `Usage: omp-gateway rollback USER --since WHEN [--to STORE] [options]

Undoes what was written to the memories of a user in a time: deletes what was
added, and gives what was changed its version before back, unless somebody else
has changed it since. Prints what it does with each memory; look at it with
--dry-run first. Deletes cannot be undone: it names them. After an interruption,
the same command goes on.

${STORES}
                      Its key needs the grants write:* and delete:*

Options:
  --since WHEN        What was written at or after this time (ISO 8601)
  --until WHEN        And at or before this time (default: until now)
  --key NAME          Only what this key wrote (or the subject of a token; '':
                      callers without a key)
  --dry-run           Change nothing
  --to STORE          Default: config
${END}`,
  person: `Usage: omp-gateway person export USER [--out FILE] [options]
       omp-gateway person erase USER [options]

export writes all that is stored of a user to a file that a person can read:
memories, their versions and audit entries of every store, one JSON object a
line. What could not be read is named there, and on standard error. The file
gets its name once it is whole, and only its user may read it.

erase deletes all memories of a user in every store, and prints what it removed,
what was left when the stores were read back, and what is kept and why. There is
no way back. With --json it prints a line that "omp-gateway restore
--without-users" reads; exit status 1 also if something may be left.

${STORES}
                      Its key needs the grant read:*, for erase delete:*

Options of export:
  --out FILE          Default: standard output
  --replace           Replace a file that exists

Options:
  --from STORE        Default: config
${END}`,
  retention: `Usage: omp-gateway retention [STORE] [options]

Deletes the memories whose time is over by the rules of the configuration
("retention"), as a gateway does by itself once a day, and prints how many, by
user and scope; look at it with --dry-run first. The rules are those of the
STORE. After an interruption, the same command goes on.

${STORES}
                      Its key needs the grants read:* and delete:*

Options:
  --dry-run           Change nothing
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

const text = { type: 'string' } as const;
const several = { type: 'string', multiple: true } as const;
const flag = { type: 'boolean' } as const;
const FILTER_OPTIONS = { user: several, scope: text, tag: several, since: text } as const;
const WRITING_OPTIONS = { concurrency: text, 'per-minute': text, restart: flag } as const;
const ALL = { ...COMMON_OPTIONS, ...FILTER_OPTIONS, json: flag } as const;
const OPTIONS = {
  export: { ...ALL, from: text, store: text, vectors: flag, versions: flag, restart: flag },
  import: {
    ...{ ...ALL, ...WRITING_OPTIONS, to: text, 'on-conflict': text, 'dry-run': flag, format: text, column: several },
    ...{ versions: flag, watch: flag, limit: text, 'skip-damaged': flag },
  },
  migrate: {
    ...{ ...ALL, ...WRITING_OPTIONS, from: text, to: text, progress: text },
    ...{ follow: flag, cutover: flag, mirror: flag, overlap: text, report: text, versions: flag },
  },
  freeze: { ...COMMON_OPTIONS, json: flag },
  unfreeze: { ...COMMON_OPTIONS, json: flag },
  retention: { ...COMMON_OPTIONS, json: flag, 'dry-run': flag },
  rollback: { ...COMMON_OPTIONS, json: flag, since: text, until: text, key: text, to: text, 'dry-run': flag },
  person: { ...COMMON_OPTIONS, json: flag, out: text, replace: flag, from: text },
  verify: { ...ALL, queries: text, overlap: text },
} as const;
const POSITIONALS: Readonly<Record<MoveCommand, readonly string[]>> = {
  export: ['FILE'],
  import: ['FILE'],
  migrate: ['A', 'B'],
  freeze: ['STORE'],
  unfreeze: ['STORE'],
  rollback: ['USER'],
  person: ['export or erase', 'USER'],
  retention: ['STORE'],
  verify: ['A', 'B'],
};
/** They may be left out: the store is the configured one, or those of a migration are named by options. */
const OPTIONAL: ReadonlySet<MoveCommand> = new Set(['migrate', 'freeze', 'unfreeze', 'retention']);

type Values = Readonly<Record<string, string | boolean | readonly string[] | undefined>>;

/** A command with its arguments. */
export interface MoveRequest {
  readonly command: MoveCommand;
  readonly names: readonly string[];
  readonly values: Values;
  readonly filters: Filters;
  /** Of `rollback`. */
  readonly until: string | undefined;
  readonly concurrency: number;
  readonly perMinute: number | undefined;
  readonly onConflict: OnConflict;
  readonly queries: number;
  readonly overlap: number;
  /** The agent whose sessions are imported. */
  readonly transcripts: TranscriptFormatName | undefined;
  /** Memories at most. */
  readonly limit: number | undefined;
}

/** Undefined: the help was asked for. */
export function parsed(command: MoveCommand, argv: readonly string[]): MoveRequest | undefined {
  const { positionals: names, ...result } = parseArgs({
    args: [...argv],
    options: OPTIONS[command],
    allowPositionals: true,
  });
  const values = result.values as Values;
  if (values.help) return undefined;
  const positionals = POSITIONALS[command];
  const transcripts = command === 'import' ? transcriptFormatOf(values) : undefined;
  const none = names.length === 0 && (OPTIONAL.has(command) || transcripts !== undefined);
  if (names.length !== positionals.length && !none)
    throw new Mistake(`expected ${positionals.join(' and ') || 'no argument'}`);
  if (values.store !== undefined && String(values.from ?? 'config').startsWith('http')) {
    throw new Mistake('--store is of a configuration; of a gateway, use --scope with the mount of the store');
  }
  const [since, until] = [timeIn(values, 'since'), timeIn(values, 'until')];
  if (command === 'rollback' && since === undefined)
    throw new Mistake('rollback needs --since, the time to go back to');
  const onConflict = (values['on-conflict'] ?? 'skip') as OnConflict;
  if (!['skip', 'replace', 'fail'].includes(onConflict)) {
    throw new Mistake('--on-conflict must be skip, replace or fail');
  }
  const overlap = Number(values.overlap ?? 0.9);
  if (!(overlap >= 0 && overlap <= 1)) throw new Mistake('--overlap must be a number from 0 to 1');
  return {
    command,
    names,
    values,
    onConflict,
    overlap,
    filters: {
      users: (values.user as string[] | undefined) ?? [],
      scope: values.scope as string | undefined,
      tags: (values.tag as string[] | undefined) ?? [],
      since,
      vectors: values.vectors === true,
    },
    until,
    concurrency: whole(values, 'concurrency', 1, 32) ?? 4,
    perMinute: whole(values, 'per-minute', 1, 10_000_000),
    queries: whole(values, 'queries', 0, 1_000) ?? 20,
    transcripts,
    limit: whole(values, 'limit', 1, 10_000_000),
  };
}

function timeIn(values: Values, name: string): string | undefined {
  const time = values[name] as string | undefined;
  if (time !== undefined && Number.isNaN(momentOf(time))) throw new Mistake(`--${name} must be an ISO 8601 time`);
  return time && new Date(momentOf(time)).toISOString();
}

const AGENTS = new Intl.ListFormat('en-GB', { type: 'disjunction' }).format(Object.keys(TRANSCRIPT_FORMATS));

/** Undefined: another format. Throws if an option of one kind of format is given with the other. */
function transcriptFormatOf({ format, ...values }: Values): TranscriptFormatName | undefined {
  const isAgent = Object.keys(TRANSCRIPT_FORMATS).includes(format as string);
  if (format !== undefined && format !== 'mem0' && format !== 'csv' && !isAgent) {
    throw new Mistake(`--format must be mem0, csv, ${AGENTS}`);
  }
  if (values.versions && format !== undefined) throw new Mistake(`--versions has no effect with --format ${format}`);
  if (values['skip-damaged'] && format !== 'csv')
    throw new Mistake('--skip-damaged has no effect without --format csv');
  for (const name of isAgent ? ['column', 'restart'] : ['watch', 'limit']) {
    if (values[name] === undefined) continue;
    throw new Mistake(`--${name} has no effect ${isAgent ? `with --format ${format}` : `without --format ${AGENTS}`}`);
  }
  if (values.watch && values['dry-run']) throw new Mistake('--dry-run ends, and --watch does not');
  return isAgent ? (format as TranscriptFormatName) : undefined;
}

function whole(values: Values, name: string, min: number, max: number): number | undefined {
  const argument = values[name];
  if (argument === undefined) return undefined;
  const value = Number(argument);
  if (/^\d{1,9}$/.test(String(argument)) && value >= min && value <= max) return value;
  throw new Mistake(`--${name} must be a whole number from ${min} to ${max}`);
}
