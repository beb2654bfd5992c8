import { parseArgs } from 'node:util';
import {
  backgroundCall,
  type Embedder,
  type Finding,
  hiddenBy,
  type Log,
  type MaintenanceContext,
  type Provider,
} from '#contract';
import { auditOptions, embeddingOptions, providerOptions } from '../config/config-options.ts';
import { loadConfig } from '../config/load.ts';
import { ConfigError, type Environment } from '../config/mistakes.ts';
import { ROOT, withKeys } from '../config/mounted-stores.ts';
import { type Config, isBuiltIn } from '../config/settings.ts';
import { compose } from '../core/compose.ts';
import { openEmbedder } from '../embedding/open.ts';
import { providerModule } from '../registry.ts';
import type { Commands } from './command.ts';
import { COMMON_OPTIONS, COMMON_USAGE, configFlags, type Flags } from './options.ts';
import { printable, runCommand, type Style, type Terminal } from './terminal.ts';

/** What `omp-gateway doctor --help` prints: at most 80 columns wide, ends with a newline. */
const DOCTOR_USAGE = `Usage: omp-gateway doctor [--json] [options]

Checks everything the gateway needs: the configuration, the embedding service,
the database with its privileges, extension, tables and indexes. Changes
nothing, and reports all problems at once, with what to do about them.

Options:
  --json              One JSON object {ok, findings} on standard output
${COMMON_USAGE}

Exit status: 0: the gateway can serve, perhaps with warnings; 1: there are
problems; 2: wrong arguments. NO_COLOR and FORCE_COLOR are supported.
`;

/**
 * `omp-gateway doctor`: checks everything the gateway needs and prints the findings on standard output. Returns the exit
 * status: 0; 1: there are problems; 2: wrong arguments.
 */
export const runDoctor = (argv: readonly string[], terminal: Terminal): Promise<number> =>
  runCommand('doctor', DOCTOR_USAGE, terminal, async () => {
    const { env, stdout } = terminal;
    const { values } = parseArgs({ args: [...argv], options: { ...COMMON_OPTIONS, json: { type: 'boolean' } } });
    if (values.help) return 'help';
    const findings = await check(configFlags(values), env);
    if (values.json) stdout.write(findingsJson(findings));
    else {
      const coloured = isColoured(env, stdout.isTTY === true);
      for (const [text, style] of findingsText(findings)) stdout.write(text, coloured ? style : undefined);
    }
    return findings.some(isProblem) ? 1 : 0;
  });

const finding = (area: Finding['area'], level: Finding['level'], message: string): Finding => ({
  area,
  level,
  // The message of an error may be a sentence.
  message: message.replace(/\.$/, ''),
});

/** Only the message: causes may quote a service, or contain a part of a URL. */
const messageOf = (error: unknown): string => (error instanceof Error ? error.message : String(error));

/** `store`: whose finding it is; absent: there is one store. */
type StoreFinding = Finding & { readonly store?: string };

async function check(flags: Flags, env: Environment): Promise<StoreFinding[]> {
  let config: Config;
  const findings: Finding[] = [];
  try {
    const loaded = loadConfig({ flags, env });
    config = loaded.config;
    findings.push(...loaded.warnings.map((warning) => finding('configuration', 'warning', warning)));
  } catch (error) {
    if (!(error instanceof ConfigError)) throw error;
    return [
      ...error.mistakes.map((mistake) => finding('configuration', 'problem', mistake)),
      finding('configuration', 'warning', 'nothing else was checked: correct this first'),
    ];
  }
  findings.push(about(config));
  if (mayStayClosed(config)) findings.push(finding('configuration', 'warning', mayNotStart(config.host)));
  const { stores } = config;
  const mounts = stores.map(({ mount }) => mount);
  findings.push(...(await checkStore(config, mounts)));
  if (stores.length === 0) return findings;
  const named: StoreFinding[] = findings.map((each) => ({ ...each, store: ROOT }));
  for (const { name, mount, required, config: own } of stores) {
    const where = `, mounted at ${mount}, ${required ? 'required' : 'optional'}`;
    for (const each of [about(own, where), ...(await checkStore(own))]) {
      // The gateway serves without an optional store.
      const level = each.level === 'problem' && !required ? 'warning' : each.level;
      named.push({ ...each, store: name, level, message: withKeys(each.message) });
    }
  }
  return named;
}

function about({ provider, mapping, search }: Config, where = ''): Finding {
  // All but the memory provider and Postgres' own tables are searched by vectors alone.
  const isOwn = provider === 'memory' || (provider === 'postgres' && mapping.preset === undefined);
  const ranked = isBuiltIn(provider) && !isOwn ? 'vector' : search.mode;
  const table = mapping.preset === undefined ? '' : `, mapped table of ${mapping.preset}`;
  return finding('configuration', 'ok', `provider ${provider}${table}, ${ranked} search${where}`);
}

/** Checks one store with its embedder. `mounts`: of other stores in it. */
async function checkStore(config: Config, mounts?: readonly string[]): Promise<Finding[]> {
  const warnings: string[] = [];
  const log: Log = { ...SILENT, warn: (_, message) => void warnings.push(message) };
  const { embedder, findings: ofEmbedding } = await checkEmbedder(config, log);
  try {
    const ofProvider = await checkProvider(config, embedder, mounts);
    // The provider lets the embedder read stored texts.
    const ofTexts = warnings.map((message) => finding('embedding', 'warning', message));
    return [...ofEmbedding, ...ofProvider, ...ofTexts];
  } finally {
    await embedder?.close();
  }
}

/** Whether the gateway starts only if a key is stored, which is not looked up here. */
const mayStayClosed = ({ host, auth, jwt }: Config): boolean =>
  auth.mode === 'auto' && auth.keys.length === 0 && !jwt.jwks_url && !/^(?:localhost|127\..*|::1)$/.test(host);
const mayNotStart = (host: string): string =>
  `OMP_HOST is ${host}, and no key is configured: the gateway starts only if one is stored (omp-gateway keys create), or with OMP_AUTH=open or OMP_AUTH=required`;

/** What the checks find, they return. */
const SILENT: Log = { info: () => {}, warn: () => {}, error: () => {} };

async function checkEmbedder(config: Config, log: Log): Promise<{ embedder?: Embedder; findings: Finding[] }> {
  if (config.search.mode === 'keyword') {
    return { findings: [finding('embedding', 'ok', 'not needed: OMP_SEARCH_MODE is keyword')] };
  }
  let embedder: Embedder | undefined;
  try {
    embedder = await openEmbedder(embeddingOptions(config), log);
    const { model, dimensions } = embedder;
    const [vector] = await embedder.embed(['memory'], 'query', backgroundCall('doctor'));
    if (vector?.length !== dimensions) throw new Error('The embedding service returns vectors of different lengths');
    return { embedder, findings: [finding('embedding', 'ok', `"${model}" answers, ${dimensions} dimensions`)] };
  } catch (error) {
    await embedder?.close();
    return { findings: [finding('embedding', 'problem', messageOf(error))] };
  }
}

/** Goes as far as possible without an embedder, which may be what fails. */
async function checkProvider(
  config: Config,
  embedder: Embedder | undefined,
  mounts: readonly string[] = [],
): Promise<Finding[]> {
  const { provider: name, search: ranking, data_dir } = config;
  const options = providerOptions(config);
  const context: MaintenanceContext = { embedder, ranking, audit: auditOptions(config), data_dir, log: SILENT, mounts };
  try {
    const { diagnose, open } = await providerModule(name);
    const findings = await diagnose?.(options, context);
    const isComplete = mounts.length === 0 || findings?.some(({ area }) => area === 'mounts');
    if (findings && (isComplete || findings.some(isProblem))) return findings;
    const provider = await open(options, context);
    try {
      await provider.ping(backgroundCall('doctor'));
      const opened = findings ?? [finding('connection', 'ok', `the provider ${name} opens and answers`)];
      return isComplete ? opened : [...opened, ...(await findHidden(provider, mounts))];
    } finally {
      await provider.close();
    }
  } catch (error) {
    return [finding('connection', 'problem', messageOf(error))];
  }
}

/** Memories that are read to find hidden ones. */
const MAX_READ = 10_000;

/** The memories that other stores hide, where the backend cannot count them. */
async function findHidden(provider: Provider, mounts: readonly string[]): Promise<Finding[]> {
  const { export: exportPart } = compose(provider, { embedder: undefined, log: SILENT });
  const unknown = finding('mounts', 'warning', 'the backend cannot tell how many memories the mounts hide');
  if (exportPart === undefined) return [unknown];
  const counts = new Map(mounts.map((mount) => [mount, 0]));
  let read = 0;
  let after: string | undefined;
  do {
    const query = { after, vectors: false, limit: 500, max_bytes: 16 * 1024 * 1024 };
    const { items, next } = await exportPart(query, backgroundCall('doctor'));
    for (const { memory } of items) {
      const mount = mounts.find((each) => memory.scope === each || memory.scope?.startsWith(`${each}/`));
      if (mount !== undefined) counts.set(mount, (counts.get(mount) as number) + 1);
    }
    read += items.length;
    after = next;
  } while (after !== undefined && read < MAX_READ);
  const found = [...counts].map(([mount, memories]) => hiddenBy(mount, memories));
  if (after === undefined) return found;
  return [...found, finding('mounts', 'warning', `only the first ${read} memories were read to find hidden ones`)];
}

type Level = Finding['level'];

const MARKS: Record<Level, string> = { ok: '✓', warning: '!', problem: '✗' };
const COLOURS: Record<Level, Style> = { ok: 'green', warning: 'yellow', problem: 'red' };
const AREA_COLUMN = 'configuration'.length;

/** One JSON object, for scripts. */
const findingsJson = (findings: readonly StoreFinding[]): string =>
  `${JSON.stringify({ ok: !findings.some(isProblem), findings }, null, 2)}\n`;

/**
 * One line per finding, what to run indented below it, and a summary in the last line. The findings of each store follow its
 * name, if there are several.
 */
export function findingsText(findings: readonly StoreFinding[]): (readonly [text: string, style?: Style])[] {
  const indent = ' '.repeat(AREA_COLUMN + 4);
  const pieces = findings.flatMap(({ area, level, message, remedies = [], store }, i): [string, Style?][] => [
    ...(store === findings[i - 1]?.store ? [] : ([[`${i === 0 ? '' : '\n'}${store}\n`, 'bold']] as [string, Style][])),
    [MARKS[level], COLOURS[level]],
    [` ${area.padEnd(AREA_COLUMN)}  ${printable(message)}\n`],
    ...remedies.flatMap(({ sql, reason }): [string, Style?][] => [
      [indent],
      [`-- ${printable(reason)}`, 'dim'],
      [`\n${indent}`],
      [printable(sql), 'bold'],
      ['\n'],
    ]),
  ]);
  return [...pieces, [summary(findings), COLOURS[worst(findings)]], ['\n']];
}

/** As in Node: FORCE_COLOR wins over NO_COLOR, and both over the kind of output. */
export function isColoured(env: Environment, isTerminal: boolean): boolean {
  const { FORCE_COLOR: force, NO_COLOR: no, TERM } = env;
  if (force !== undefined) return force !== '0' && force !== 'false';
  return !no && isTerminal && TERM !== 'dumb';
}

const isProblem = ({ level }: Finding): boolean => level === 'problem';

const worst = (findings: readonly Finding[]): Level =>
  (['problem', 'warning'] as const).find((level) => findings.some((finding) => finding.level === level)) ?? 'ok';

function summary(findings: readonly Finding[]): string {
  const count = (level: Level, word: string) => {
    const number = findings.filter((finding) => finding.level === level).length;
    return number === 0 ? [] : [`${number} ${word}${number === 1 ? '' : 's'}`];
  };
  const counts = [...count('problem', 'problem'), ...count('warning', 'warning')].join(', ');
  if (counts === '') return 'No problems found.';
  return `${counts}. ${findings.some(isProblem) ? 'The gateway cannot serve.' : 'The gateway can serve.'}`;
}

export const commands: Commands = { doctor: runDoctor };
