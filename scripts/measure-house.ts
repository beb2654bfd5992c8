/**
 * Prints the size of the code that is written by hand, and how many of our files and functions a request passes: `npm run house`; with `list`, which ones.
 * A request counts what V8 runs on the main thread, of the built files of the gateway, between sending it and reading its answer, after one like it.
 */
import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { mkdtemp, rm } from 'node:fs/promises';
import type { Profiler } from 'node:inspector';
import { Session } from 'node:inspector/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { CLIENT_TYPES } from './client-types.ts';

const root = new URL('../', import.meta.url);
const git = (...args: readonly string[]) =>
  execFileSync('git', ['-C', root.pathname, ...args], { encoding: 'utf8' })
    .split('\n')
    .filter(Boolean);
const linesOf = (file: string) => readFileSync(new URL(file, root), 'utf8').split('\n').length - 1;

const CODE = /\.(ts|tsx|js|mjs|py|css)$/;
const PARTS = {
  'src and providers': /^(src|providers)\//,
  'all source outside tests': /^(src|providers|clients|console|scripts|bench|eval|examples|site)\//,
  tests: /^test\/|\/test[_-]|\.test\./,
};

function printSizes(): void {
  const files = git('ls-files').filter((file) => CODE.test(file) && file !== CLIENT_TYPES);
  for (const [name, pattern] of Object.entries(PARTS)) {
    const part = files.filter((file) => pattern.test(file) && (name === 'tests' || !PARTS.tests.test(file)));
    const sized = part.map((file) => ({ file, lines: linesOf(file) })).sort((a, b) => b.lines - a.lines);
    const total = sized.reduce((sum, { lines }) => sum + lines, 0);
    const [largest] = sized;
    console.log(`${name}: ${total} lines in ${part.length} files, at most ${largest?.lines} (${largest?.file})`);
  }
}

interface Asked {
  readonly name: string;
  send(url: string): Promise<Response>;
}

const body = (content: object, headers = {}) => ({
  method: 'POST',
  headers: { 'Content-Type': 'application/json', ...headers },
  body: JSON.stringify(content),
});
const TOOL = { name: 'search_memories', arguments: { query: 'coffee' } };
const MCP = { Accept: 'application/json, text/event-stream', 'X-User-Id': 'u' };
const REQUESTS: readonly Asked[] = [
  {
    name: 'POST /memories',
    send: (url) => fetch(`${url}/memories`, body({ user_id: 'u', content: `coffee ${performance.now()}` })),
  },
  { name: 'GET /memories/search', send: (url) => fetch(`${url}/memories/search?user_id=u&q=coffee`) },
  { name: 'GET /memories', send: (url) => fetch(`${url}/memories?user_id=u`) },
  {
    name: 'search by MCP',
    send: (url) => fetch(`${url}/mcp`, body({ jsonrpc: '2.0', id: 1, method: 'tools/call', params: TOOL }, MCP)),
  },
];

/** The built modules, without their types: only what is built runs as it does for a user. */
const built = (file: string) => import(new URL(`dist/src/${file}`, root).href);

const ATTEMPTS = 5;
/** `npm run house list` */
const LISTED = process.argv.includes('list');

interface Passed {
  readonly file: string;
  readonly functions: readonly string[];
}

function passedIn(result: readonly Profiler.ScriptCoverage[]): readonly Passed[] {
  const dist = new URL('dist/', root).href;
  const own = result.filter(({ url }) => url.startsWith(dist));
  return own.flatMap(({ url, functions }) => {
    // The top level of a file begins where the file does.
    const passed = functions.filter(({ ranges: [range] }) => range && range.startOffset > 0 && range.count > 0);
    const names = passed.map(({ functionName }) => functionName || '()');
    return names.length > 0 ? [{ file: url.slice(dist.length), functions: names }] : [];
  });
}

const functionsIn = (passed: readonly Passed[]): number => passed.flatMap(({ functions }) => functions).length;

async function printWays(configured: string, settings: object): Promise<void> {
  const data_dir = await mkdtemp(join(tmpdir(), 'omp-house-'));
  const [{ loadConfig }, { createLog }, { serve }] = await Promise.all([
    built('config/load.js'),
    built('log.js'),
    built('serve.js'),
  ]);
  const env = { OMP_DATA_DIR: data_dir, OMP_PORT: '0', OMP_LOG_LEVEL: 'error', ...settings };
  const gateway = await serve(loadConfig({ flags: {}, env }).config, createLog('error'));
  const url = `http://127.0.0.1:${gateway.port}`;
  const session = new Session();
  session.connect();
  await session.post('Profiler.enable');
  try {
    for (const { name, send } of REQUESTS) {
      for (let warm = 0; warm < 2; warm++) await requireOk(await send(url));
      let least: readonly Passed[] | undefined;
      // What a timer ran meanwhile, such as the one that writes audit entries, is no part of the way.
      for (let attempt = 0; attempt < ATTEMPTS; attempt++) {
        await session.post('Profiler.startPreciseCoverage', { callCount: true, detailed: false });
        await requireOk(await send(url));
        const { result } = await session.post('Profiler.takePreciseCoverage');
        await session.post('Profiler.stopPreciseCoverage');
        const passed = passedIn(result);
        if (!least || functionsIn(passed) < functionsIn(least)) least = passed;
      }
      const all = least as readonly Passed[];
      console.log(`${name}, ${configured}: ${all.length} files, ${functionsIn(all)} functions`);
      if (LISTED) for (const { file, functions } of all) console.log(`  ${file}: ${functions.join(' ')}`);
    }
  } finally {
    session.disconnect();
    await gateway.close();
    await rm(data_dir, { recursive: true, force: true });
  }
}

async function requireOk(response: Response): Promise<void> {
  const text = await response.text();
  if (!response.ok || text.includes('"isError":true')) throw new Error(`${response.status} ${text}`);
}

printSizes();
await printWays('embedded Postgres', {});
const stores = { a: { mount: 'a', provider: 'memory' }, b: { mount: 'b', provider: 'memory' } };
await printWays('a root and two mounts', { OMP_PROVIDER: 'memory', OMP_STORES: JSON.stringify(stores) });
