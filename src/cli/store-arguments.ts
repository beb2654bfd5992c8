import { parseArgs } from 'node:util';
import type { OnConflict } from '../move/copy.ts';
import { type Filters, momentOf } from '../move/store.ts';
import { TRANSCRIPT_FORMATS, type TranscriptFormatName } from '../move/transcript-formats.ts';
import { COMMON_OPTIONS, COMMON_USAGE, type Options } from './options.ts';
import { Mistake } from './terminal.ts';

/** How a command names a store, in its usage. */
export const STORES = `A STORE is
  config              the configured one of this machine (the embedded Postgres
                      belongs to one process: stop its gateway, or use its URL)
  config:FILE         that of a configuration file; the environment does not
                      count then
  config#NAME         a mounted store alone, with its own ids and scopes, also
                      after a FILE; root: the root store alone
  https://...         a gateway. Its key, if it needs one: OMP_KEY, or
                      OMP_FROM_KEY and OMP_TO_KEY`;

/** The usage of `FILTER_OPTIONS`. */
export const FILTERS = `  --user USER         Only memories of this user; may be given several times
  --scope GLOB        Only memories of these scopes, such as work/*
  --tag TAG           Only memories with this tag; several: with all of them
  --since WHEN        Only memories changed at or after this time (ISO 8601)`;

/** The usage of `WRITING_OPTIONS`, and of two more of `import`. */
export const WRITING = `  --on-conflict HOW   For ids that are stored already with other fields: skip
                      (default), replace, or fail
  --concurrency N     Requests at a time (1 to 32, default 4)
  --per-minute N      Write at most N memories a minute
  --dry-run           Only count; change nothing`;

/** The end of each usage. */
export const END = `  --json              Print the outcome as JSON
${COMMON_USAGE}

Exit status: 0: done; 1: it failed, was stopped, or something was rejected;
2: wrong arguments. Progress goes to standard error.
`;

export const text = { type: 'string' } as const;
export const several = { type: 'string', multiple: true } as const;
export const flag = { type: 'boolean' } as const;
export const FILTER_OPTIONS = { user: several, scope: text, tag: several, since: text } as const;
export const WRITING_OPTIONS = { concurrency: text, 'per-minute': text, restart: flag } as const;

/** What the arguments of a command may be. */
export interface StoreArguments {
  /** Besides those of every command. */
  readonly options: Options;
  /** What each argument is called. */
  readonly positionals: readonly string[];
  /** They may be left out: the store is the configured one, or those of a migration are named by options. */
  readonly optional?: true;
}

type Values = Readonly<Record<string, string | boolean | readonly string[] | undefined>>;

/** A command with its arguments. */
export interface StoreRequest {
  /** The word that selected it. */
  readonly command: string;
  readonly names: readonly string[];
  readonly values: Values;
  readonly filters: Filters;
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
export function parsed(
  command: string,
  { options, positionals, optional }: StoreArguments,
  argv: readonly string[],
): StoreRequest | undefined {
  const { positionals: names, ...result } = parseArgs({
    args: [...argv],
    options: { ...COMMON_OPTIONS, json: flag, ...options },
    allowPositionals: true,
  });
  const values = result.values as Values;
  if (values.help) return undefined;
  const transcripts = 'format' in options ? transcriptFormatOf(values) : undefined;
  const none = names.length === 0 && (optional || transcripts !== undefined);
  if (names.length !== positionals.length && !none)
    throw new Mistake(`expected ${positionals.join(' and ') || 'no argument'}`);
  if (values.store !== undefined && String(values.from ?? 'config').startsWith('http')) {
    throw new Mistake('--store is of a configuration; of a gateway, use --scope with the mount of the store');
  }
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
      since: timeIn(values, 'since'),
      vectors: values.vectors === true,
    },
    concurrency: whole(values, 'concurrency', 1, 32) ?? 4,
    perMinute: whole(values, 'per-minute', 1, 10_000_000),
    queries: whole(values, 'queries', 0, 1_000) ?? 20,
    transcripts,
    limit: whole(values, 'limit', 1, 10_000_000),
  };
}

/** The time that an option gives, in UTC. */
export function timeIn(values: Values, name: string): string | undefined {
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
