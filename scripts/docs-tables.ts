import { readFileSync } from 'node:fs';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import pg from 'pg';
import { type Embedder, ERROR_CODES, type Provider, type ProviderContext } from '#contract';
import { PRESET_NAMES as INDEX_PRESET_NAMES, PRESETS as INDEX_PRESETS } from '../providers/pinecone/mapped/presets.ts';
import { startEngine } from '../providers/postgres/embedded/engine.ts';
import { PRESET_NAMES as TABLE_PRESET_NAMES, PRESETS as TABLE_PRESETS } from '../providers/postgres/mapped/presets.ts';
import { settingsTables } from '../src/config/documents.ts';
import type { ProviderName } from '../src/config/settings.ts';
import { clauseId, SECTIONS } from '../src/conformance/clauses.ts';
import { compose } from '../src/core/compose.ts';
import { DEFAULT_TOOLS, TOOL_NAMES } from '../src/mcp/names.ts';
import { TOOLS } from '../src/mcp/tools.ts';
import { openProvider } from '../src/registry.ts';
import { describe } from '../src/verbs/capabilities.ts';
import { VERB_TABLE } from '../src/verbs/index.ts';
import { demandsInWords, type Verb } from '../src/verbs/verb.ts';
import { startPinecone } from '../test/pinecone-server/start.ts';
import { startQdrant } from '../test/qdrant-server/start.ts';
import { codesTable, messagesOf } from './error-tables.ts';

/** The generated tables of each document; a table stands between `<!-- NAME:begin -->` and `<!-- NAME:end -->`. */
export const TABLES: Readonly<Record<string, Readonly<Record<string, () => string | Promise<string>>>>> = {
  'README.md': { capabilities: () => capabilityTable(DECISIVE) },
  'docs/concepts.md': { capabilities: () => capabilityTable() },
  'docs/configuration.md': { settings: settingsTables },
  'docs/security/grants.md': { demands: demandTable },
  'docs/protocol/rules.md': { rules: ruleTables },
  'docs/errors.md': {
    codes: codesTable,
    ...Object.fromEntries(ERROR_CODES.map((code) => [code, () => messagesOf(code)])),
  },
  'docs/integrations/mcp.md': { tools: toolTable },
  'docs/integrations/python.md': { calls: pythonCalls },
  'docs/integrations/README.md': { tables: mappedTables, indexes: mappedIndexes },
};

/** The text of `file` with its generated tables brought up to date. */
export async function withTables(file: string, text: string): Promise<string> {
  let result = text;
  for (const [name, make] of Object.entries(TABLES[file] ?? {})) {
    const [begin, end] = [`<!-- ${name}:begin -->`, `<!-- ${name}:end -->`];
    const [from, to] = [result.indexOf(begin), result.indexOf(end)];
    if (from < 0 || to < from) throw new Error(`${file} has no place for the table "${name}"`);
    result = `${result.slice(0, from + begin.length)}\n${(await make()).trim()}\n${result.slice(to)}`;
  }
  return result;
}

const row = (cells: readonly string[]): string => `| ${cells.map((cell) => cell.replaceAll('|', '\\|')).join(' | ')} |`;
const table = (head: readonly string[], rows: readonly (readonly string[])[]): string =>
  [row(head), row(head.map(() => '---')), ...rows.map(row)].join('\n');
const code = (text: string | undefined): string => (text === undefined ? '' : `\`${text}\``);

/** The heading of a page in `docs/integrations`. */
const titleOf = (page: string): string => {
  const text = readFileSync(new URL(`../docs/integrations/${page}.md`, import.meta.url), 'utf8');
  return /^# (.+)$/m.exec(text)?.[1] ?? page;
};
const writable = (readOnly: string | undefined): string => (readOnly === undefined ? 'yes' : 'no');
const times = (...references: readonly (string | undefined)[]): string =>
  references
    .filter((each) => each !== undefined)
    .map(code)
    .join(', ');

/** By the name of the library; `custom` comes last. */
function byLibrary<Name extends string>(names: readonly Name[], page: (name: Name) => string) {
  return names
    .map((name) => ({ name, title: titleOf(page(name)), link: `[${titleOf(page(name))}](${page(name)}.md)` }))
    .sort((a, b) => Number(a.name === 'custom') - Number(b.name === 'custom') || a.title.localeCompare(b.title, 'en'));
}

function mappedTables(): string {
  const rows = byLibrary(TABLE_PRESET_NAMES, (name) => name).map(({ name, link }) => {
    const { fields, read_only } = TABLE_PRESETS[name];
    return [link, code(name), code(fields.user_id), times(fields.created_at, fields.updated_at), writable(read_only)];
  });
  return table(['Library', 'Preset', 'Owner, unless configured', 'Times', 'Writable'], rows);
}

function mappedIndexes(): string {
  const rows = byLibrary(INDEX_PRESET_NAMES, (name) => `pinecone-${name}`).map(({ name, link }) => {
    const { text, user, created, updated, read_only } = INDEX_PRESETS[name];
    return [link, code(name), code(text), code(user), times(created, updated), writable(read_only)];
  });
  return table(['Library', 'Preset', 'Text', 'Owner, unless configured', 'Times', 'Writable'], rows);
}

/** Only its presence is of interest: it decides what search a provider declares. */
const embedder: Embedder = {
  model: 'none',
  dimensions: 1,
  embed: async (texts) => texts.map(() => new Float32Array(1)),
  close: async () => {},
};

function demandTable(): string {
  const rows = Object.values<Verb>(VERB_TABLE).flatMap((verb) => {
    const words = demandsInWords(verb);
    return words === undefined ? [] : [[code(`${verb.method} ${verb.path}`), words]];
  });
  return table(['Route', 'Needs'], rows);
}

function toolTable(): string {
  const rows = TOOL_NAMES.map((name) => {
    const { description, withVersions = '', hints } = TOOLS[name];
    const words = [
      ...(hints.readOnlyHint ? ['read-only'] : []),
      ...(hints.destructiveHint ? ['destructive'] : []),
      ...(hints.idempotentHint ? ['idempotent'] : []),
      ...(DEFAULT_TOOLS.some((one) => one === name) ? [] : ['off by default']),
    ];
    return [code(name), description + withVersions, words.join(', ')];
  });
  return table(['Tool', 'What agents are told', 'Hints'], rows);
}

/** The methods of the Python client, with the first sentence of each. */
function pythonCalls(): string {
  const text = readFileSync(new URL('../clients/python/omp_gateway_client.py', import.meta.url), 'utf8');
  const [, client = ''] = /^class MemoryClient:\n([\s\S]+?)^\S/m.exec(text) ?? [];
  const rows = [
    ...client.matchAll(/^ {4}def ([a-z]\w*)\([\s\S]*?\) -> (.+):\n {8}"""([\s\S]+?)(?:[.:]\s|\.?""")/gm),
  ].map(([, name, answer = '', about = '']) => [
    code(name),
    about.replaceAll(/\s+/g, ' ') + (answer.startsWith('Iterator') ? '; an iterator' : ''),
  ]);
  return table(['Call', 'What it does'], rows);
}

function ruleTables(): string {
  const tables = Object.entries(SECTIONS).map(([section, rows]) => {
    const rules = Object.entries(rows).map(([row, text]) => [code(clauseId(section, row)), text]);
    return `## ${section}\n\n${table(['Id', 'Rule'], rules)}`;
  });
  return tables.join('\n\n');
}

/** The rows that decide a choice of backend. */
const DECISIVE = ['verbs', ...['keyword_search', 'scopes', 'max_content_length', 'idempotency'].map(feature)];

let capabilities: Promise<string[][]> | undefined;

/** What each backend declares, in all rows or in those of these names. */
async function capabilityTable(names?: readonly string[]): Promise<string> {
  capabilities ??= readCapabilities();
  const [head = [], ...rows] = await capabilities;
  return table(
    head,
    rows.filter(([name = '']) => names?.includes(name) ?? true),
  );
}

async function readCapabilities(): Promise<string[][]> {
  const data_dir = await mkdtemp(join(tmpdir(), 'omp-readme-'));
  const quiet = { info: () => {}, warn: () => {}, error: () => {} };
  const ranking = { mode: 'hybrid', keyword_weight: 0.5 } as const;
  const audit = { retention_days: null };
  const context: ProviderContext = { embedder, ranking, audit, data_dir, log: quiet };
  const pinecone = await startPinecone({ dimension: embedder.dimensions });
  const index = { api_key: 'none', index_host: pinecone.url };
  const qdrant = await startQdrant();
  const engine = await startEngine(join(data_dir, 'existing'), quiet);
  const url = `postgres://postgres@localhost/postgres?host=${encodeURIComponent(engine.config.host as string)}`;
  const providers: [string, Provider][] = [];
  const open = async (label: string, name: ProviderName, options: object) =>
    void providers.push([label, await openProvider(name, options, context)]);
  try {
    // However busy the machine is.
    const connect_timeout_ms = 600_000;
    await open('postgres', 'postgres', { connect_timeout_ms });
    await makeMem0Table(url);
    const mapping = { preset: 'mem0', table: 'memories' };
    await open('postgres, `OMP_MAPPING_PRESET=mem0`', 'postgres', { url, connections: 1, connect_timeout_ms, mapping });
    await open('pinecone', 'pinecone', index);
    await open('pinecone, `OMP_PINECONE_PRESET=mem0`', 'pinecone', { ...index, preset: 'mem0' });
    await open('qdrant', 'qdrant', { url: qdrant.url });
    await open('lancedb', 'lancedb', {});
    await open('libsql', 'libsql', {});
    await open('memory', 'memory', {});
    const documents = providers.map(([label, provider]) => ({
      label,
      ...describe(compose(provider, { embedder: undefined, log: quiet }), null),
    }));
    const cells = (name: string, cell: (document: (typeof documents)[number]) => unknown) => [
      name,
      ...documents.map((document) => toText(cell(document))),
    ];
    const keys = <Section extends object>(section: (document: (typeof documents)[number]) => Section) =>
      Object.keys(section(documents[0] as (typeof documents)[number])) as (keyof Section & string)[];
    return [
      cells('', ({ label }) => label),
      cells('verbs', ({ verbs }) => verbs.join(', ')),
      ...keys(({ features }) => features).map((key) => cells(feature(key), ({ features }) => features[key])),
      ...keys(({ limits }) => limits).map((key) => cells(`\`limits.${key}\``, ({ limits }) => limits[key])),
    ];
  } finally {
    for (const [, provider] of providers) await provider.close();
    await engine.close();
    await pinecone.close();
    await qdrant.close();
    await rm(data_dir, { recursive: true, force: true });
  }
}

function feature(key: string): string {
  return `\`features.${key}\``;
}

/** As mem0 makes it. */
async function makeMem0Table(connectionString: string): Promise<void> {
  const client = new pg.Client({ connectionString });
  await client.connect();
  await client.query(
    `create extension vector; create table memories (id uuid primary key, vector vector(${embedder.dimensions}), payload jsonb)`,
  );
  await client.end();
}

const toText = (value: unknown): string =>
  value === true ? 'yes' : value === false ? 'no' : value === null ? 'none' : String(value);
