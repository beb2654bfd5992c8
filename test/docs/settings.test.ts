import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { CONFIG_FILE, coerce, defaultText, SECTIONS, SETTINGS, settingFor } from '../../src/config/schema-reader.ts';
import { documents, ROOT, read } from './markdown.ts';

const below = (folder: string, name: RegExp): string[] =>
  readdirSync(join(ROOT, folder), { recursive: true, encoding: 'utf8' })
    .filter((file) => name.test(file))
    .map((file) => `${folder}/${file}`);

/** Everything an operator reads. */
const DOCUMENTS = [
  ...documents(),
  ...['omp-gateway.example.yaml', 'Dockerfile', 'docker-compose.yml'],
  ...below('deploy', /\.(md|ya?ml|json)$/),
].sort();
/** Without the settings that were removed, the methods of a provider, and the files of code that a page shows. */
const textOf = (file: string) =>
  read(file)
    .replace(/^### Removed\n.*?(?=^##)/ms, '')
    .replace(/^## What is heavy\n.*?(?=^## )/ms, '')
    .replaceAll(/^```js \S+\n.*?^```$/gms, '');
const texts = new Map(DOCUMENTS.map((file) => [file, textOf(file)]));

const BY_NAME = new Map(SETTINGS.map((setting) => [setting.env, setting]));
const VARIABLES = new Set([
  CONFIG_FILE.env,
  ...SETTINGS.flatMap(({ env, secret }) => (secret ? [env, `${env}_FILE`] : [env])),
]);

/** Names in capitals that are no settings of the gateway, with their reader. */
const READ_BY_OTHERS: Readonly<Record<string, RegExp>> = {
  'the exporter of traces': /^OTEL_EXPORTER_OTLP_(HEADERS|TIMEOUT|COMPRESSION|CERTIFICATE)$/,
  'the tests':
    /^TEST_(FULL|DATABASE_URL|DISTRIBUTED|POSTGRES_BIN|CHAOS_SEED|PINECONE_API_KEY|PINECONE_INDEX_HOST|SCREENSHOTS|CHROMIUM|CONTAINERS_FOLDER|GLIBC|MILVUS_LITE|QDRANT_BIN|SQLD|WEAVIATE_BIN)$/,
  'the server of Weaviate':
    /^(ASYNC_INDEXING|AUTHENTICATION_ANONYMOUS_ACCESS_ENABLED|CLUSTER_HOSTNAME|DISABLE_TELEMETRY|DISK_USE_READONLY_PERCENTAGE|PERSISTENCE_DATA_PATH|QUERY_MAXIMUM_RESULTS)$/,
  'docker compose': /^(COMPOSE_PROFILES|POSTGRES_PASSWORD|POSTGRES_SHARED_BUFFERS|GRAFANA_PASSWORD|GATEWAY_MEMORY)$/,
  'an example of a reference in the file':
    /^(REDIS_PASSWORD|HANDBOOK_URL|CRM_INDEX_HOST|WEBHOOK_SECRET|TURSO_AUTH_TOKEN|CHROMA_TOKEN)$/,
  'other containers':
    /^(POSTGRES_(USER|DB)|GF_[A-Z_]+|INDEX_TYPE|VECTOR_TYPE|ETCD_(AUTO|QUOTA|SNAPSHOT)_[A-Z_]+|ETCD_ENDPOINTS|MINIO_(ADDRESS|REGION)|SQLD_NODE)$/,
  'an error of a libSQL server': /^(RESPONSE_TOO_LARGE|TRANSACTION_TIMEOUT|SERVER_ERROR|ARGS_INVALID|SQLITE_TOOBIG)$/,
  'Node and the builder of the image': /^(NODE_ENV|NODE_OPTIONS|NODE_IMAGE|NODE_EXTRA_CA_CERTS)$/,
  'the chat in docs/integrations/client.md': /^(GATEWAY_(URL|KEY)|MODEL_(URL|KEY))$/,
  'the SDK in docs/integrations/anthropic-memory-tool.md': /^ANTHROPIC_API_KEY$/,
  "mem0's client": /^MEM0_TELEMETRY$/,
  'omp-gateway migrate and verify': /^OMP_(FROM|TO)_KEY$/,
  'omp-gateway import of sessions': /^GEMINI_CLI_HOME$/,
  'omp-gateway mcp and hooks': /^(OMP_(URL|KEY|USER_ID)|CLAUDE_CONFIG_DIR|(CODEX|QWEN|COPILOT)_HOME|XDG_STATE_HOME)$/,
  'Claude Code': /^ENABLE_TOOL_SEARCH$/,
  'options of LangChain4j and Spring AI': /^(COLUMN_PER_KEY|EUCLIDEAN_DISTANCE)$/,
  'nothing: Kubernetes derives it from a Service': /^OMP_GATEWAY_PORT$/,
  'nothing: a constant of the source': /^(ANALYSER_VERSION|ERASED_USE|IDEMPOTENCY_TTL_MS)$/,
};
const foreign = Object.values(READ_BY_OTHERS);

/** A name in capitals with an underscore, not the beginning of one (`OMP_PINECONE_*`). */
const NAME = /(?<![\w$])[A-Z][A-Z0-9]*(?:_[A-Z0-9]+)+(?![\w*])/g;
/** Types of events, not settings of the memory provider. */
const EVENT = /^memory\.(add|update|delete|import|erase)$/;
const FILE_ENDING = /^(ts|js|md|json|ya?ml|sql|db)$/;

describe.each(DOCUMENTS)('%s', (file) => {
  const text = texts.get(file) ?? '';

  it('names variables that exist', () => {
    const unknown = (text.match(NAME) ?? []).filter(
      (name) => !VARIABLES.has(name) && !foreign.some((pattern) => pattern.test(name)),
    );
    expect(unknown).toEqual([]);
  });

  it('names keys that exist', () => {
    const keys = [...text.matchAll(/(?<![\w./-])([a-z_]+)\.([a-z_]+)(?![\w/(-]|\.\w)/g)].filter(
      ([, section = '', name = '']) => SECTIONS.has(section) && !FILE_ENDING.test(name),
    );
    expect(keys.map(([key]) => key).filter((key) => settingFor(key) === undefined && !EVENT.test(key))).toEqual([]);
  });

  it('gives settings values that they accept', () => {
    const given = [...text.matchAll(/\b([A-Z][A-Z0-9_]+)(?:=|: )"?([\w./-]+)(?![\w$…])/g)];
    const refused = given.filter(([, name = '', value = '']) => {
      const setting = BY_NAME.get(name);
      if (!setting || setting.type === 'json' || setting.type === 'list' || /^[a-z]$/.test(value)) return false;
      return setting.allowed.startsWith('one of') || setting.type !== 'string'
        ? !setting.schema.safeParse(coerce(setting.type, value)).success
        : false;
    });
    expect(refused.map(([written]) => written)).toEqual([]);
  });

  it('states the real defaults', () => {
    const told = [
      ...text.matchAll(/`([A-Z][A-Z0-9_]+)`(?: \(default `?([\w.,/-]+?)`?[),;]|, `?([\w.,/-]+)`? by default)/g),
    ];
    const wrong = told.filter(([, name = '', first, second]) => {
      const setting = BY_NAME.get(name);
      return setting === undefined || defaultText(setting) !== (first ?? second)?.replaceAll(',', '');
    });
    expect(wrong.map(([written]) => written)).toEqual([]);
  });
});

it('documents state defaults, and every exception above is used', () => {
  const all = [...texts.values()].join('\n');
  expect(all.match(/`[A-Z_]+` \(default /g)?.length).toBeGreaterThan(10);
  for (const [reader, pattern] of Object.entries(READ_BY_OTHERS))
    expect(
      (all.match(NAME) ?? []).some((name) => pattern.test(name)),
      reader,
    ).toBe(true);
});
