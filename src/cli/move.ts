import type { Commands } from './command.ts';
import { runExport } from './move-export.ts';
import { runImport } from './move-import.ts';
import { runMigrate } from './move-migrate.ts';
import { runTranscripts } from './move-transcripts.ts';
import { runVerify } from './move-verify.ts';
import {
  END,
  FILTER_OPTIONS,
  FILTERS,
  flag,
  STORES,
  several,
  text,
  WRITING,
  WRITING_OPTIONS,
} from './store-arguments.ts';
import { storeCommand } from './store-command.ts';

/** The commands that move memories, and compare them. */
export const commands: Commands = {
  export: storeCommand({
    usage: `Usage: omp-gateway export FILE [--from STORE] [options]

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
    options: { ...FILTER_OPTIONS, from: text, store: text, vectors: flag, versions: flag, restart: flag },
    positionals: ['FILE'],
    run: runExport,
  }),
  import: storeCommand({
    usage: `Usage: omp-gateway import FILE [--to STORE] [options]
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
    options: {
      ...{ ...FILTER_OPTIONS, ...WRITING_OPTIONS, to: text, 'on-conflict': text, 'dry-run': flag, format: text },
      ...{ column: several, versions: flag, watch: flag, limit: text, 'skip-damaged': flag },
    },
    positionals: ['FILE'],
    run: (request, run) =>
      request.transcripts ? runTranscripts(request.transcripts, request, run) : runImport(request, run),
  }),
  migrate: storeCommand({
    usage: `Usage: omp-gateway migrate A B [options]

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
    options: {
      ...{ ...FILTER_OPTIONS, ...WRITING_OPTIONS, from: text, to: text, progress: text },
      ...{ follow: flag, cutover: flag, mirror: flag, overlap: text, report: text, versions: flag },
    },
    positionals: ['A', 'B'],
    optional: true,
    run: runMigrate,
  }),
  verify: storeCommand({
    usage: `Usage: omp-gateway verify A B [options]

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
    options: { ...FILTER_OPTIONS, queries: text, overlap: text },
    positionals: ['A', 'B'],
    run: runVerify,
  }),
};
