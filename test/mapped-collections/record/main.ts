import { execFileSync, spawn } from 'node:child_process';
import { createHash } from 'node:crypto';
import { once } from 'node:events';
import { copyFileSync, existsSync } from 'node:fs';
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { connect } from 'node:net';
import { tmpdir } from 'node:os';
import { extname, join } from 'node:path';
import { createInterface } from 'node:readline';
import type { Readable } from 'node:stream';
import { text } from 'node:stream/consumers';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { openChroma } from '../../chroma/start.ts';
import { embeddingsServer, sendJson } from '../../embedding/embeddings-server.ts';
import { vectorOf } from '../../mapped/documented.ts';
import { freePort } from '../../process/postgres-cluster.ts';
import { hashingEmbedder } from '../../support/hashing-embedder.ts';
import { openSubject } from '../../support/subject.ts';
import { type DatabaseName, type Fixture, GIVEN, GIVEN_TO_TABLES, type Given } from '../fixture.ts';
import { installCompiled, RUNS_OF_COMPILED } from './compiled.ts';
import { openPostgres, RUNS_ON_POSTGRES, SEARCHES_OF_TABLES } from './postgres.ts';
import { type Recorded, readCollection } from './read.ts';
import { type Ask, together } from './together.ts';

/*
 * Records the fixtures again: `npx tsx --conditions=source test/mapped-collections/record/main.ts [part of a name …]`. Each library is installed in its
 * version into a folder below the system's for temporary files, fills an empty database as its own quick start does, and what it left there is read
 * by the database's own client. Needs Python 3.11, Java 17 with Maven, Go 1.24, Rust 1.95, TEST_QDRANT_BIN, TEST_MILVUS_LITE, and TEST_GLIBC where
 * `docs/testing.md` says so.
 */

interface Run {
  /** The program beside this file. */
  readonly program: string;
  /** As pip or npm takes them: the library first. */
  readonly packages: readonly string[];
  readonly options?: object;
}

const LANGCHAIN_PY = ['langchain-openai==1.7.4', 'langchain-core==1.8.3'];
const LANGCHAIN_JS = ['@langchain/core@1.4.0', '@langchain/openai@1.6.0'];
/** What n8n 2.41.1 depends on. */
const N8N = ['@langchain/core@1.2.8', '@langchain/openai@1.4.4'];
const LLAMAINDEX_PY = ['llama-index-core==0.14.25', 'llama-index-embeddings-openai==0.7.0'];
const LLAMAINDEX_JS = ['llamaindex@0.12.1', '@llamaindex/openai@0.4.22'];

/** By the name of the fixture: database, library, language, and a version or a variant where there are several. */
const RUNS: Readonly<Record<string, Run>> = {
  'qdrant-langchain-python': {
    program: 'langchain.py',
    packages: ['langchain-qdrant==1.1.0', 'qdrant-client==1.20.0', ...LANGCHAIN_PY],
  },
  'qdrant-langchain-javascript': {
    program: 'langchain.mjs',
    packages: ['@langchain/qdrant@1.0.3', '@qdrant/js-client-rest@1.18.0', ...LANGCHAIN_JS],
  },
  'qdrant-n8n-javascript': {
    program: 'langchain.mjs',
    packages: ['@langchain/qdrant@1.0.1', '@qdrant/js-client-rest@1.18.0', ...N8N],
    options: { n8n: true },
  },
  'qdrant-mem0-python': { program: 'mem0.py', packages: ['mem0ai==2.2.1', 'qdrant-client==1.20.0'] },
  'qdrant-mem0-javascript': {
    program: 'mem0.mjs',
    packages: ['mem0ai@3.3.1', '@qdrant/js-client-rest@1.18.0', 'openai@6.49.0'],
  },
  'qdrant-llamaindex-python': {
    program: 'llamaindex.py',
    packages: ['llama-index-vector-stores-qdrant==0.10.4', 'qdrant-client==1.20.0', ...LLAMAINDEX_PY],
  },
  'qdrant-llamaindex-javascript': {
    program: 'llamaindex.mjs',
    packages: ['@llamaindex/qdrant@0.1.33', ...LLAMAINDEX_JS],
  },
  'qdrant-mastra-javascript': {
    program: 'mastra.mjs',
    packages: ['@mastra/qdrant@1.0.1', '@mastra/core@1.71.0', '@qdrant/js-client-rest@1.18.0'],
  },
  'chroma-langchain-python': {
    program: 'langchain.py',
    packages: ['langchain-chroma==1.1.0', 'chromadb==1.5.9', ...LANGCHAIN_PY],
  },
  'chroma-langchain-javascript': {
    program: 'langchain.mjs',
    packages: ['@langchain/community@1.1.29', 'chromadb@3.5.0', ...LANGCHAIN_JS],
  },
  'chroma-n8n-javascript': {
    program: 'langchain.mjs',
    packages: ['@langchain/community@1.1.27', 'chromadb@3.5.0', ...N8N],
    options: { n8n: true },
  },
  'chroma-mem0-python': { program: 'mem0.py', packages: ['mem0ai==2.2.1', 'chromadb==1.5.9'] },
  'chroma-llamaindex-python': {
    program: 'llamaindex.py',
    packages: ['llama-index-vector-stores-chroma==0.6.0', 'chromadb==1.5.9', ...LLAMAINDEX_PY],
  },
  'chroma-llamaindex-javascript': {
    program: 'llamaindex.mjs',
    packages: ['@llamaindex/chroma@0.0.37', ...LLAMAINDEX_JS],
  },
  'chroma-mastra-javascript': {
    program: 'mastra.mjs',
    packages: ['@mastra/chroma@1.1.3', '@mastra/core@1.71.0', 'chromadb@3.5.0'],
  },
  'milvus-langchain-python': {
    program: 'langchain.py',
    packages: ['langchain-milvus==0.4.0', 'pymilvus==3.0.2', ...LANGCHAIN_PY],
  },
  'milvus-langchain-python-dynamic': {
    program: 'langchain.py',
    packages: ['langchain-milvus==0.4.0', 'pymilvus==3.0.2', ...LANGCHAIN_PY],
    options: { enable_dynamic_field: true },
  },
  'milvus-langchain-javascript': {
    program: 'langchain.mjs',
    packages: ['@langchain/community@1.1.29', '@zilliz/milvus2-sdk-node@3.0.6', ...LANGCHAIN_JS],
  },
  'milvus-llamaindex-python': {
    program: 'llamaindex.py',
    packages: ['llama-index-vector-stores-milvus==1.2.0', 'pymilvus==2.6.17', ...LLAMAINDEX_PY],
  },
  'lancedb-langchain-python': {
    program: 'langchain.py',
    packages: ['langchain-community==0.4.2', 'lancedb==0.40.0', 'pandas==3.1.1', ...LANGCHAIN_PY],
  },
  'lancedb-langchain-javascript': {
    program: 'langchain.mjs',
    packages: ['@langchain/community@1.1.29', '@lancedb/lancedb@0.31.0', 'apache-arrow@18.1.0', ...LANGCHAIN_JS],
  },
  'lancedb-llamaindex-python': {
    program: 'llamaindex.py',
    packages: ['llama-index-vector-stores-lancedb==0.6.0', 'lancedb==0.40.0', 'pandas==3.1.1', ...LLAMAINDEX_PY],
  },
  ...RUNS_ON_POSTGRES,
  ...RUNS_OF_COMPILED,
};

/** Presets of those that may be written. */
const PRESETS: Readonly<Record<string, string>> = {
  ...{ 'qdrant-langchain-python': 'langchain', 'qdrant-langchain-javascript': 'langchain-js' },
  ...{ 'qdrant-n8n-javascript': 'n8n', 'qdrant-mastra-javascript': 'mastra', 'chroma-mastra-javascript': 'mastra' },
  ...{ 'chroma-langchain-python': 'langchain', 'chroma-langchain-javascript': 'langchain' },
  ...{ 'chroma-n8n-javascript': 'langchain', 'milvus-langchain-python': 'langchain' },
  ...{ 'milvus-langchain-python-dynamic': 'langchain', 'lancedb-langchain-python': 'langchain' },
};
const SEARCHES = [
  { user_id: 'ana', text: 'what does she drink' },
  { user_id: 'ana', text: 'lives in Lisbon' },
  { user_id: 'ben', text: 'an instrument, such as the cello' },
];

/** `--together`: not to record, but to let a gateway and the library write the same table of Postgres. */
const TOGETHER = process.argv.includes('--together');

const HERE = fileURLToPath(new URL('./', import.meta.url));
const CACHE = join(tmpdir(), 'omp-recorded-libraries');

/** Installs the packages once, and returns what runs a program with them. */
function install({ program, packages }: Run): { command: string; args: string[] } {
  const folder = join(CACHE, createHash('sha256').update(packages.join()).digest('hex').slice(0, 12));
  if (/\.(?:java|go|rs)$/.test(program)) return installCompiled(HERE, program, packages, folder);
  const run = (command: string, ...args: readonly string[]) =>
    execFileSync(command, args, { stdio: ['ignore', 'ignore', 'inherit'], cwd: CACHE });
  const python = program.endsWith('.py');
  const uv = join(CACHE, 'uv/bin/uv');
  if (python && !existsSync(uv)) run('python3', '-m', 'pip', 'install', '--quiet', '--target', 'uv', 'uv==0.13.9');
  if (!existsSync(folder)) {
    if (python) {
      run(uv, 'venv', '--quiet', folder);
      run(uv, 'pip', 'install', '--quiet', '--python', join(folder, 'bin/python'), ...packages);
    } else {
      const quiet = ['--silent', '--no-audit', '--no-fund', '--legacy-peer-deps', '--ignore-scripts'];
      run('npm', 'install', ...quiet, '--prefix', folder, ...packages);
    }
  }
  // A program of JavaScript finds what it imports from its own folder, and one of Python must not have the name of a library.
  const copy = join(folder, `program${extname(program)}`);
  copyFileSync(join(HERE, program), copy);
  return { command: python ? join(folder, 'bin/python') : process.execPath, args: [copy] };
}

/** Versions by package. */
const versionsOf = (packages: readonly string[]) =>
  Object.fromEntries(packages.map((each) => /^(.+?)(?:==|@)([^@]+)$/.exec(each)?.slice(1) as [string, string]));

/** An empty database, until it is closed. */
async function openDatabase(database: DatabaseName): Promise<{ url: string; close(): Promise<void> }> {
  if (database === 'chroma') return openChroma();
  if (database === 'postgres') return openPostgres();
  const folder = await mkdtemp(join(tmpdir(), 'omp-recorded-'));
  const remove = () => rm(folder, { recursive: true, force: true });
  if (database === 'lancedb') return { url: folder, close: remove };
  const [port, other] = [String(await freePort()), String(await freePort())];
  const { TEST_QDRANT_BIN = '', TEST_MILVUS_LITE = '' } = process.env;
  const server =
    database === 'qdrant'
      ? spawn(TEST_QDRANT_BIN, {
          cwd: folder,
          stdio: 'ignore',
          env: {
            QDRANT__SERVICE__HTTP_PORT: port,
            QDRANT__SERVICE__GRPC_PORT: other,
            QDRANT__SERVICE__HOST: '127.0.0.1',
          },
        })
      : spawn(TEST_MILVUS_LITE, ['server', '--data-dir', folder, '--port', port], { stdio: 'ignore' });
  const listens = () =>
    new Promise<boolean>((resolve) => {
      const socket = connect(Number(port), '127.0.0.1', () => resolve(true)).on('error', () => resolve(false));
      socket.unref();
    });
  while (!(await listens())) await sleep(100);
  return {
    url: `http://127.0.0.1:${port}`,
    async close() {
      server.kill('SIGKILL');
      await once(server, 'exit');
      await remove();
    },
  };
}

/** An embedding service with OpenAI's interface. */
async function openEmbeddings() {
  const server = await embeddingsServer();
  server.answer = async ({ model, input, encoding_format }, response) => {
    const data = [];
    for (const [index, each] of [input].flat().entries()) {
      const vector = await vectorOf(each, 8);
      const embedding = encoding_format === 'base64' ? Buffer.from(vector.buffer).toString('base64') : [...vector];
      data.push({ object: 'embedding', index, embedding });
    }
    sendJson(response, 200, { object: 'list', model, data, usage: { prompt_tokens: 1, total_tokens: 1 } });
  };
  return server;
}

/** Metadata with the user. */
const ownedBy = ({ user_id, metadata }: Given) => ({ ...(user_id !== undefined && { user_id }), ...metadata });

/** What a library is given that refused that: every key of the first one, with its type. */
const plainOf = ({ user_id = '', metadata: { topic, stars } }: Given) => ({
  ...{ user_id, topic: topic ?? '', stars: Math.trunc(Number(stars ?? 0)) },
});

async function record(name: string, run: Run): Promise<void> {
  const [database, library, language] = name.split('-') as [DatabaseName, string, Fixture['language']];
  const { command, args } = install(run);
  const [db, embeddings] = [await openDatabase(database), await openEmbeddings()];
  const home = await mkdtemp(join(tmpdir(), 'omp-record-'));
  try {
    const child = spawn(command, args, {
      stdio: ['pipe', 'pipe', 'inherit'],
      cwd: home,
      env: {
        ...{ PATH: process.env.PATH, HOME: home, MEM0_DIR: home, MEM0_TELEMETRY: 'False' },
        ...{ OPENAI_API_KEY: 'none', OPENAI_BASE_URL: embeddings.base_url, OPENAI_API_BASE: embeddings.base_url },
        ...{ DATABASE: database, LIBRARY: library, DATABASE_URL: db.url, OPTIONS: JSON.stringify(run.options ?? {}) },
      },
    });
    // LanceDB cannot filter by a key of an object that a row lacks (findings/lancedb-missing-key-fails-filters.sh).
    const memories = [...(database === 'postgres' ? GIVEN_TO_TABLES : GIVEN).values()].map((given) => ({
      ...given,
      attempts: [...(database === 'lancedb' ? [] : [ownedBy(given)]), plainOf(given)],
    }));
    const searches = database === 'postgres' ? SEARCHES_OF_TABLES : SEARCHES;
    child.stdin.write(`${JSON.stringify({ memories, searches })}\n`);
    if (!TOGETHER) child.stdin.end();
    const ended = once(child, 'close');
    const answers = jsonLines(child.stdout);
    const said = (await answers.next()).value as Recorded | undefined;
    if (said === undefined) throw new Error(`${name}: the program ended with ${(await ended)[0]}`);
    const collection = said.collection ?? 'notes';
    if (TOGETHER) {
      const ask: Ask = async (...command) => {
        child.stdin.write(`${JSON.stringify([command[0], command.slice(1)])}\n`);
        const { answer, error } = (await answers.next()).value as { answer?: unknown; error?: string };
        if (error !== undefined) throw new Error(error);
        return answer;
      };
      console.log(name, await together({ url: db.url, base_url: embeddings.base_url, collection }, ask));
      child.stdin.end();
      await ended;
      return;
    }
    await ended;
    const fixture = {
      ...{ database, library, language, versions: versionsOf(run.packages), collection, ...said },
      ...(await readCollection(database, db.url, collection, said.ids)),
    };
    await writeFile(join(HERE, '../fixtures', `${name}.json`), format(fixture));
    console.log(`${name}: ${fixture.points.length} points`);
  } finally {
    await Promise.all([db.close(), embeddings.close(), rm(home, { recursive: true })]);
  }
}

/** What a program says, in lines of JSON. Libraries print other lines. */
async function* jsonLines(output: Readable): AsyncGenerator<unknown, undefined> {
  for await (const line of createInterface({ input: output })) if (line.startsWith('{')) yield JSON.parse(line);
}

/** What a program of a library says, run on a database. */
async function said(name: string, run: Run, url: string, given: object): Promise<Recorded & Reread> {
  const { command, args } = install(run);
  const [embeddings, home] = [await openEmbeddings(), await mkdtemp(join(tmpdir(), 'omp-record-'))];
  try {
    const child = spawn(command, args, {
      stdio: ['pipe', 'pipe', 'inherit'],
      cwd: home,
      env: {
        ...{ PATH: process.env.PATH, HOME: home, MEM0_DIR: home, MEM0_TELEMETRY: 'False' },
        ...{ OPENAI_API_KEY: 'none', OPENAI_BASE_URL: embeddings.base_url, OPENAI_API_BASE: embeddings.base_url },
        ...{ DATABASE: databaseOf(name), DATABASE_URL: url },
        OPTIONS: JSON.stringify(run.options ?? {}),
      },
    });
    child.stdin.end(`${JSON.stringify(given)}\n`);
    const [output, [status]] = await Promise.all([text(child.stdout), once(child, 'close')]);
    if (status !== 0) throw new Error(`${name}: the program ended with ${status}\n${output}`);
    return JSON.parse(output.trim().split('\n').at(-1) as string);
  } finally {
    await Promise.all([embeddings.close(), rm(home, { recursive: true })]);
  }
}
const databaseOf = (name: string) => name.split('-')[0] as DatabaseName;

/** What every library is given. */
const givenOn = (database: DatabaseName) => ({
  // LanceDB cannot filter by a key of an object that a row lacks (findings/lancedb-missing-key-fails-filters.sh).
  memories: [...(database === 'postgres' ? GIVEN_TO_TABLES : GIVEN).values()].map((given) => ({
    ...given,
    attempts: [...(database === 'lancedb' ? [] : [ownedBy(given)]), plainOf(given)],
  })),
  searches: SEARCHES,
});

/** What a program says that reads, removes and adds in a collection that is there (`reread`). */
interface Reread {
  /** Contents that it finds for ana. */
  readonly read: readonly string[];
}

/** Prints what the library reads of what the gateway wrote in its collection, and the gateway of what the library wrote. */
async function readBothWays(name: string, run: Run): Promise<void> {
  const preset = PRESETS[name];
  if (preset === undefined) return;
  const database = databaseOf(name);
  const db = await openDatabase(database);
  try {
    const { ids } = await said(name, run, db.url, givenOn(database));
    const place = database === 'lancedb' ? { folder: db.url, table: 'notes' } : { url: db.url, collection: 'notes' };
    const options = { ...place, preset, writable: true };
    const { client, close } = await openSubject({
      provider: database,
      options,
      mode: 'vector',
      embedder: hashingEmbedder(8),
    });
    const added = await client.tell('POST', '/memories', { user_id: 'ana', content: 'plays chess on Sundays' });
    const changed = await client.tell('PATCH', client.byId(ids.peanuts as string), {
      content: 'is allergic to walnuts',
    });
    const deleted = await client.tell('DELETE', client.byId(ids.tea as string));
    const given = { ...givenOn(database), reread: { user_id: 'ana', remove: ids.lisbon, text: 'sings in a choir' } };
    const { read } = await said(name, run, db.url, given);
    const { items } = await client.list({ user_id: 'ana' });
    await close();
    const now = items.map(({ content }) => content).sort();
    const expected = [
      ...(added.status === 201 ? ['plays chess on Sundays'] : []),
      ...['is allergic to walnuts', 'lives in Lisbon', GIVEN.get('lines')?.text ?? '', GIVEN.get('ferry')?.text ?? ''],
    ].sort();
    const after = [...expected.filter((each) => each !== 'lives in Lisbon'), 'sings in a choir'].sort();
    const verdict = (found: readonly string[], right: readonly string[]) =>
      JSON.stringify([...found].sort()) === JSON.stringify(right) ? 'right' : `WRONG ${JSON.stringify(found)}`;
    console.log(
      `${name}: statuses ${added.status}, ${changed.status}, ${deleted.status}; the library reads ${verdict(read, expected)}; the gateway reads ${verdict(now, after)}`,
    );
  } finally {
    await db.close();
  }
}

/** JSON with a line for each point and each search. */
function format({ points, searches, ...rest }: Recorded & { readonly points: readonly unknown[] }): string {
  const lines = (name: string, all: readonly unknown[]) =>
    `"${name}": [\n${all.map((each) => `    ${JSON.stringify(each)}`).join(',\n')}\n  ]`;
  const head = Object.entries(rest).map(([name, value]) => `"${name}": ${JSON.stringify(value)}`);
  return `{\n  ${[...head, lines('searches', searches), lines('points', points)].join(',\n  ')}\n}\n`;
}

await mkdir(CACHE, { recursive: true });
const wanted = process.argv.slice(2).filter((part) => !part.startsWith('--'));
const isBothWays = process.argv.includes('--both-ways');
for (const [name, run] of Object.entries(RUNS)) {
  if (wanted.length === 0 || wanted.some((part) => name.includes(part)))
    await (isBothWays ? readBothWays(name, run) : record(name, run));
}
