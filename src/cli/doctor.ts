import { type Embedder, type Finding, gatewayCall, type Log, type MaintenanceContext } from '#contract';
import { auditOptions } from '../config/access-options.ts';
import { embeddingOptions } from '../config/embedding-options.ts';
import { ConfigError, type Environment } from '../config/given.ts';
import { loadConfig } from '../config/load.ts';
import { providerOptions } from '../config/provider-options.ts';
import type { Config } from '../config/schema.ts';
import { openEmbedder } from '../embedding/open.ts';
import { diagnose, openProvider } from '../registry.ts';
import { DOCTOR_USAGE, parseDoctorArguments } from './doctor-arguments.ts';
import { findingsJson, findingsText, isColoured, isProblem } from './doctor-output.ts';
import type { Terminal } from './keys.ts';

/** A terminal that may tell that it is one. */
export interface DoctorTerminal extends Terminal {
  readonly stdout: Terminal['stdout'] & { readonly isTTY?: boolean };
}

/**
 * `omp-gateway doctor`: looks at everything that serving takes and tells on standard output what it found. Returns the
 * exit status: 0, 1 when there are problems, 2 when the arguments make no sense.
 */
export async function runDoctor(argv: readonly string[], { env, stdout, stderr }: DoctorTerminal): Promise<number> {
  const asked = parseDoctorArguments(argv);
  if (asked.action === 'help') stdout.write(DOCTOR_USAGE);
  else if (asked.action === 'mistake') {
    stderr.write(`omp-gateway: ${asked.message}\n`);
    return 2;
  } else {
    const findings = await look(asked.flags, env);
    stdout.write(asked.json ? findingsJson(findings) : findingsText(findings, isColoured(env, stdout.isTTY === true)));
    return findings.some(isProblem) ? 1 : 0;
  }
  return 0;
}

const finding = (area: Finding['area'], level: Finding['level'], message: string): Finding => ({
  area,
  level,
  // Messages of errors may be sentences.
  message: message.replace(/\.$/, ''),
});

/** The message alone: what caused it may quote a service, or hold a part of a URL. */
const messageOf = (error: unknown): string => (error instanceof Error ? error.message : String(error));

async function look(flags: Readonly<Record<string, string>>, env: Environment): Promise<Finding[]> {
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
      finding('configuration', 'warning', 'nothing else was looked at: this has to be right first'),
    ];
  }
  const { provider, mapping, search } = config;
  // What others fill, and Pinecone, is searched by vectors alone.
  const ranked = mapping.preset !== undefined || provider === 'pinecone' ? 'vector' : search.mode;
  const table = mapping.preset === undefined ? '' : `, in front of a table laid out as ${mapping.preset}`;
  findings.push(finding('configuration', 'ok', `provider ${provider}${table}, ${ranked} search`));

  const { embedder, findings: ofEmbedding } = await tryEmbedder(config);
  try {
    return [...findings, ...ofEmbedding, ...(await lookAtProvider(config, embedder))];
  } finally {
    await embedder?.close();
  }
}

/** What it would log, it finds. */
const SILENT: Log = { info: () => {}, warn: () => {}, error: () => {} };

async function tryEmbedder(config: Config): Promise<{ embedder?: Embedder; findings: Finding[] }> {
  if (config.search.mode === 'keyword') {
    return { findings: [finding('embedding', 'ok', 'none is needed: OMP_SEARCH_MODE is keyword')] };
  }
  let embedder: Embedder | undefined;
  try {
    embedder = await openEmbedder(embeddingOptions(config), SILENT);
    const { model, dimensions } = embedder;
    const [vector] = await embedder.embed(['memory'], 'query', gatewayCall('doctor'));
    if (vector?.length !== dimensions) throw new Error('The embedding service answers vectors of changing length');
    return { embedder, findings: [finding('embedding', 'ok', `"${model}" answers, ${dimensions} dimensions`)] };
  } catch (error) {
    await embedder?.close();
    return { findings: [finding('embedding', 'problem', messageOf(error))] };
  }
}

/** Without an embedder as far as that goes: it may be what does not work. */
async function lookAtProvider(config: Config, embedder: Embedder | undefined): Promise<Finding[]> {
  const { provider: name, search: ranking, data_dir } = config;
  const options = providerOptions(config);
  const context: MaintenanceContext = { embedder, ranking, audit: auditOptions(config), data_dir, log: SILENT };
  try {
    const findings = await diagnose(name, options, context);
    if (findings) return findings;
    const provider = await openProvider(name, options, context);
    try {
      await provider.ping(gatewayCall('doctor'));
    } finally {
      await provider.close();
    }
    return [finding('connection', 'ok', `the provider ${name} opens and answers`)];
  } catch (error) {
    return [finding('connection', 'problem', messageOf(error))];
  }
}
