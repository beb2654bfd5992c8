import { writeFileSync } from 'node:fs';
import { parseArgs } from 'node:util';
import { PROFILES, type Profile } from '../conformance/cases/index.ts';
import { DENIED_SCOPE, type Send } from '../conformance/kit.ts';
import { countsOf, toBadge, toJson, toJunit, toText } from '../conformance/report.ts';
import { type Run, runAll } from '../conformance/run.ts';
import { version } from '../package.ts';
import type { Commands } from './command.ts';
import { Mistake, report, runCommand, type Terminal, untilSignal } from './terminal.ts';

/** What `omp-gateway conformance --help` prints: at most 80 columns wide, ends with a newline. */
const CONFORMANCE_USAGE = `Usage: omp-gateway conformance --url URL [options]

Checks any implementation of the Open Memory Protocol against the specification,
clause by clause. What its /capabilities does not declare is skipped; what it
declares must hold. Works on users with random names, and deletes what it adds.

Options:
  --url URL           The implementation (OMP_URL)
  --key-env NAME      Environment variable with its key (default OMP_KEY). The
                      key must reach every user and scope.
  --narrow-key-env NAME
                      Variable with a key that may do nothing in the scope
                      ${DENIED_SCOPE}: it must get 403
  --read-only         Only checks that add, change and delete nothing
  --profile NAME      One of ${PROFILES.slice(0, 5).join(', ')},
                      ${PROFILES.slice(5).join(', ')}; may be given several times
  --report FILE       Every result with clauses, request and answer, as JSON
  --junit FILE        JUnit XML, for CI
  --badge FILE        JSON of a shields.io endpoint badge
  -h, --help          Print this and exit

Exit status: 0: nothing failed, perhaps with warnings; 1: something failed, or
the run was stopped; 2: wrong arguments.
`;

const OPTIONS = {
  url: { type: 'string' },
  'key-env': { type: 'string' },
  'narrow-key-env': { type: 'string' },
  'read-only': { type: 'boolean' },
  profile: { type: 'string', multiple: true },
  report: { type: 'string' },
  junit: { type: 'string' },
  badge: { type: 'string' },
  help: { type: 'boolean', short: 'h' },
} as const;

interface Options {
  readonly url: string;
  readonly key: string | undefined;
  readonly narrow: string | undefined;
  readonly readOnly: boolean;
  readonly profiles: readonly Profile[];
  readonly files: Readonly<Partial<Record<'report' | 'junit' | 'badge', string>>>;
}

/** Throws `Mistake`. */
function parse(argv: readonly string[], env: Terminal['env']): Options | 'help' {
  const { values } = parseArgs({ args: [...argv], options: OPTIONS });
  if (values.help) return 'help';
  const url = values.url ?? env.OMP_URL;
  if (!url || !/^https?:\/\//.test(url))
    throw new Mistake('--url must be the http:// or https:// URL of an implementation');
  const keyIn = (name: string | undefined): string | undefined => {
    if (name === undefined) return undefined;
    const key = env[name];
    if (!key) throw new Mistake(`the variable ${name} has no key`);
    return key;
  };
  const profiles = (values.profile ?? []).map((name) => {
    const profile = PROFILES.find((one) => one === name);
    if (profile === undefined) throw new Mistake(`--profile '${name}' must be one of ${PROFILES.join(', ')}`);
    return profile;
  });
  return {
    url: url.replace(/\/$/, ''),
    key: values['key-env'] === undefined ? env.OMP_KEY || undefined : keyIn(values['key-env']),
    narrow: keyIn(values['narrow-key-env']),
    readOnly: values['read-only'] ?? false,
    profiles,
    files: values,
  };
}

/** The longest that one request may take. */
const REQUEST_MS = 60_000;

/** Over the network, with the keys of the run. */
const sendOver =
  ({ url, key, narrow }: Pick<Options, 'url' | 'key' | 'narrow'>): Send =>
  async (path, init, as) => {
    const credential = { key, narrow, 'wrong key': 'not-a-key-of-this-service', anonymous: undefined }[as];
    // Each on its own connection: a proxy may close an idle one just when a request arrives, and a write must not be repeated.
    const headers = {
      ...init.headers,
      connection: 'close',
      ...(credential !== undefined && { authorization: `Bearer ${credential}` }),
    };
    // A redirect would carry the key to another address.
    const request = { ...init, headers, redirect: 'error', signal: AbortSignal.timeout(REQUEST_MS) } as const;
    return fetch(url + path, request).catch((cause: unknown) => {
      throw new Error(`${url} does not answer`, { cause });
    });
  };

/**
 * `omp-gateway conformance`: results go to standard output. Returns the exit status: 0; 1: something failed, or the run was
 * stopped; 2: wrong arguments.
 */
export const runConformance = (argv: readonly string[], terminal: Terminal): Promise<number> =>
  runCommand('conformance', CONFORMANCE_USAGE, terminal, async () => {
    const { stdout, env } = terminal;
    const options = parse(argv, env);
    if (options === 'help') return options;
    const { url, key, narrow, readOnly, profiles, files } = options;
    const keys = { key: key !== undefined, narrow: narrow !== undefined };
    return untilSignal(async (signal) => {
      const onResult = (result: Run['results'][number]) => stdout.write(toText(result));
      const run = await runAll({ send: sendOver(options), keys, readOnly, profiles, signal, onResult });
      const { passed, failed, warning, skipped } = countsOf(run.results);
      stdout.write(`\n${passed} passed, ${failed} failed, ${warning} warnings, ${skipped} skipped\n`);
      const subject = { url, read_only: readOnly, kit: `omp-gateway ${version()}` };
      if (files.report !== undefined) writeFileSync(files.report, toJson(run, subject));
      if (files.junit !== undefined) writeFileSync(files.junit, toJunit(run));
      if (files.badge !== undefined) writeFileSync(files.badge, toBadge(run));
      if (run.left.length > 0) report(terminal, `could not delete ${run.left.length} memories: ${run.left.join(', ')}`);
      if (signal.aborted) report(terminal, 'stopped before the end; what was added is deleted');
      return failed > 0 || signal.aborted ? 1 : 0;
    });
  });

export const commands: Commands = { conformance: runConformance };
