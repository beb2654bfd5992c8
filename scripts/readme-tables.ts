import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import pg from 'pg';
import type { Embedder, Provider, ProviderContext } from '#contract';
import { startEngine } from '../providers/postgres/embedded/engine.ts';
import { settingsTables } from '../src/config/documents.ts';
import type { ProviderName } from '../src/config/schema.ts';
import { compose } from '../src/core/compose.ts';
import { describe } from '../src/core/describe.ts';
import { openProvider } from '../src/registry.ts';
import { startPinecone } from '../test/pinecone-server/start.ts';

/** The README with its generated tables brought up to date: each stands between `<!-- NAME:begin -->` and `<!-- NAME:end -->`. */
export async function withTables(readme: string): Promise<string> {
  const tables = { settings: settingsTables(), capabilities: await capabilityTable() };
  return Object.entries(tables).reduce((text, [name, table]) => {
    const [begin, end] = [`<!-- ${name}:begin -->`, `<!-- ${name}:end -->`];
    const from = text.indexOf(begin);
    const to = text.indexOf(end);
    if (from < 0 || to < from) throw new Error(`README.md has no place for the table "${name}"`);
    return `${text.slice(0, from + begin.length)}\n${table.trim()}\n${text.slice(to)}`;
  }, readme);
}

/** Only its presence is of interest: it decides what search a provider declares. */
const embedder: Embedder = {
  model: 'none',
  dimensions: 1,
  embed: async (texts) => texts.map(() => new Float32Array(1)),
  close: async () => {},
};

async function capabilityTable(): Promise<string> {
  const data_dir = await mkdtemp(join(tmpdir(), 'omp-readme-'));
  const quiet = { info: () => {}, warn: () => {}, error: () => {} };
  const ranking = { mode: 'hybrid', keyword_weight: 0.5 } as const;
  const audit = { retention_days: null };
  const context: ProviderContext = { embedder, ranking, audit, data_dir, log: quiet };
  const pinecone = await startPinecone({ dimension: embedder.dimensions });
  const index = { api_key: 'none', index_host: pinecone.url };
  const engine = await startEngine(join(data_dir, 'existing'), quiet);
  const url = `postgres://postgres@localhost/postgres?host=${encodeURIComponent(engine.config.host as string)}`;
  const providers: [string, Provider][] = [];
  const open = async (label: string, name: ProviderName, options: object) =>
    void providers.push([label, await openProvider(name, options, context)]);
  try {
    await open('postgres', 'postgres', {});
    await makeMem0Table(url);
    const mapping = { preset: 'mem0', table: 'memories' };
    await open('postgres, `OMP_MAPPING_PRESET=mem0`', 'postgres', { url, connections: 1, mapping });
    await open('pinecone', 'pinecone', index);
    await open('pinecone, `OMP_PINECONE_PRESET=mem0`', 'pinecone', { ...index, preset: 'mem0' });
    await open('memory', 'memory', {});
    await open('memory, `OMP_MEMORY_SCOPES=none`', 'memory', { scopes: 'none' });
    const documents = providers.map(([label, provider]) => ({ label, ...describe(compose(provider), null) }));
    const row = (name: string, cell: (document: (typeof documents)[number]) => unknown) =>
      `| ${[name, ...documents.map((document) => toText(cell(document)))].join(' | ')} |`;
    const keys = <Section extends object>(section: (document: (typeof documents)[number]) => Section) =>
      Object.keys(section(documents[0] as (typeof documents)[number])) as (keyof Section & string)[];
    return [
      row('', ({ label }) => label),
      `|${' --- |'.repeat(documents.length + 1)}`,
      row('verbs', ({ verbs }) => verbs.join(', ')),
      ...keys(({ features }) => features).map((key) => row(`\`features.${key}\``, ({ features }) => features[key])),
      ...keys(({ limits }) => limits).map((key) => row(`\`limits.${key}\``, ({ limits }) => limits[key])),
    ].join('\n');
  } finally {
    for (const [, provider] of providers) await provider.close();
    await engine.close();
    await pinecone.close();
    await rm(data_dir, { recursive: true, force: true });
  }
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
