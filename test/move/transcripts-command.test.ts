import { appendFileSync, cpSync, mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, it, vi } from 'vitest';
import { dataFolder, runProgram, serveHere, startGateway, startProgram, temporaryFolder } from '../process/gateway.ts';
import { eventually } from '../support/eventually.ts';
import { runHere } from './run.ts';
import { coreOf, SECRETS } from './secrets.ts';

const FILES = join(import.meta.dirname, 'files/transcripts');

let home: string;
beforeEach(() => {
  home = temporaryFolder();
  vi.stubEnv('HOME', home);
});
afterEach(() => void vi.unstubAllEnvs());

/** Puts a file into the home folder. */
function put(path: string, content: string | readonly object[]): string {
  const full = join(home, path);
  mkdirSync(join(full, '..'), { recursive: true });
  if (typeof content === 'string') cpSync(join(FILES, content), full);
  else writeFileSync(full, asLines(content));
  return full;
}
const asLines = (lines: readonly object[]) => lines.map((line) => `${JSON.stringify(line)}\n`).join('');
const prompt = (n: number, content: string, more = {}) => ({
  ...{ type: 'user', uuid: `u${n}`, sessionId: 's1', cwd: join(home, 'work/shop'), message: { role: 'user', content } },
  ...{ timestamp: new Date(Date.UTC(2026, 0, 1) + n * 1_000).toISOString(), ...more },
});
async function run(args: readonly string[], status = 0) {
  const ended = await runHere(['import', ...args], { HOME: home, OMP_SEARCH_MODE: 'keyword' });
  expect(ended.status, `${ended.stdout}${ended.stderr}`).toBe(status);
  return ended;
}
const gateway = serveHere;

it('[Decision 43] imports the sessions of each agent from its folder, and again without duplicates', async () => {
  const { url, client } = await gateway();
  const files = {
    'claude-code': ['.claude/projects/-home-ana-work-my-shop/1.jsonl', 'claude-code-2.1.331.jsonl', 4],
    codex: ['.codex/sessions/2026/11/24/rollout-1.jsonl', 'codex-0.169.0.jsonl', 4],
    gemini: ['.gemini/tmp/shop/chats/session-1.jsonl', 'gemini-cli-0.61.0.jsonl', 4],
  } as const;
  for (const [format, [path, file, count]] of Object.entries(files)) {
    put(path, file);
    const args = ['--format', format, '--user', 'ana', '--to', url];
    const first = await run(args);
    expect(first.stdout).toBe(`${count} memories stored.\n`);
    expect(first.stderr).toMatch(/Sessions in .*: 1, with messages worth keeping: 4\.\nLeft out:\n/);
    expect((await run(args)).stdout).toBe(`0 memories stored, ${count} there already.\n`);
  }
  const { items } = await client.list({ user_id: 'ana' });
  expect(items).toHaveLength(12);
  expect(new Set(items.map(({ source }) => source?.app))).toEqual(new Set(Object.keys(files)));
  // The same sessions of another user are memories of their own.
  expect((await run(['--format', 'codex', '--user', 'ben', '--to', url])).stdout).toBe('4 memories stored.\n');
});

it('[Decision 43] names a file that it does not read', async () => {
  const { url } = await gateway();
  put('.codex/sessions/rollout-1.jsonl', 'codex-0.169.0.jsonl');
  const file = put('.codex/sessions/rollout-2.jsonl.zst', 'codex-0.169.0.jsonl');
  const { stdout, stderr } = await run(['--format', 'codex', '--user', 'ana', '--to', url]);
  expect(stdout).toBe('4 memories stored.\n');
  expect(stderr).toContain(
    `files that are compressed (decompress them first), or in a form that is not known: 1\n    ${file}\n`,
  );
});

it('[Decision 43] imports into the configured store, which answers a question about them', async () => {
  put('.claude/projects/p/1.jsonl', [prompt(1, 'always use pnpm for node projects'), prompt(2, 'the door is green')]);
  const env = { HOME: home, OMP_DATA_DIR: await dataFolder(), OMP_SEARCH_MODE: 'keyword' };
  const ended = await runProgram({ args: ['import', '--format', 'claude-code', '--user', 'ana'], env });
  expect(ended.stdout, ended.stderr).toBe('2 memories stored.\n');
  const { client } = await startGateway({ env });
  const reply = await client.tell('POST', '/context', { user_id: 'ana', query: 'pnpm', token_budget: 200 });
  expect((reply.body as { text: string }).text).toContain('always use pnpm for node projects');
});

it('[Decision 43] stores no secret of any shape', async () => {
  const { url, client } = await gateway();
  const lines = SECRETS.flatMap(([name, secret], n) => [
    prompt(2 * n, `the key of ${name} is ${secret} and more`),
    prompt(2 * n + 1, '', {
      type: 'assistant',
      message: { content: [{ type: 'text', text: `I wrote ${secret}` }], stop_reason: 'end_turn' },
    }),
  ]);
  const file = put('s1.jsonl', lines);
  const { stdout, stderr } = await run([file, '--format', 'claude-code', '--user', 'ana', '--to', url, '--json']);
  expect(JSON.parse(stdout)).toMatchObject({ stored: lines.length, messages: lines.length, sessions: 1 });
  expect(JSON.parse(stdout).masked).toBeGreaterThanOrEqual(lines.length);
  expect(stderr).toContain('Secrets masked:');
  const stored = JSON.stringify((await client.ask('/export?limit=500')).body);
  expect(stored.match(/"id"/g)).toHaveLength(lines.length);
  for (const [name, secret] of SECRETS) expect(stored, name).not.toContain(coreOf(secret));
});

it('[Decision 43] follows sessions until it is stopped', async () => {
  const { url, client } = await gateway();
  const file = put('p/s1.jsonl', [prompt(1, 'the first one')]);
  const args = ['import', join(home, 'p'), '--format', 'claude-code', '--user', 'ana', '--to', url, '--watch'];
  const program = startProgram({ args, env: { HOME: home } });
  const contents = async () => (await client.list({ user_id: 'ana' })).items.map(({ content }) => content).sort();
  const becomes = (...expected: string[]) => eventually(async () => expect(await contents()).toEqual(expected));
  await becomes('the first one');
  const [half, rest] = [
    asLines([prompt(2, 'the second one')]).slice(0, 50),
    asLines([prompt(2, 'the second one')]).slice(50),
  ];
  appendFileSync(file, half);
  put('p/q/s2.jsonl', [prompt(3, 'of another session')]);
  await becomes('of another session', 'the first one');
  appendFileSync(file, rest);
  await becomes('of another session', 'the first one', 'the second one');
  program.child.kill('SIGINT');
  const { status, stderr } = await program.ended;
  expect(status).toBe(1);
  expect(stderr).toMatch(/stopped: 3 memories stored; the same command stores nothing twice\n$/);
  expect((await run([join(home, 'p'), ...args.slice(2, -1)])).stdout).toBe('0 memories stored, 3 there already.\n');
});

it('[Decision 43] only counts with --dry-run, takes the newest with --limit, and what the filters leave', async () => {
  const { url, client } = await gateway();
  const file = put(
    's1.jsonl',
    [3, 1, 4, 2].map((n) => prompt(n, `prompt number ${n}`)),
  );
  put('s2.jsonl', [prompt(5, 'of another project', { cwd: '/srv/app' })]);
  const args = [home, '--format', 'claude-code', '--user', 'ana', '--to', url];
  const newest = [...args, '--scope', 'projects/work/*', '--limit', '2'];
  const dry = await run([...newest, '--dry-run']);
  expect(dry.stdout).toBe('2 memories would be stored.\n');
  expect(dry.stderr).toContain(`Sessions in ${home}: 2, with messages worth keeping: 5.`);
  expect(JSON.parse((await run([file, ...args.slice(1), '--dry-run', '--json'])).stdout)).toMatchObject({
    memories: 4,
  });
  expect((await client.list({ user_id: 'ana' })).items).toEqual([]);
  expect((await run(newest)).stdout).toBe('2 memories stored.\n');
  const { items } = await client.list({ user_id: 'ana' });
  expect(items.map(({ content }) => content).sort()).toEqual(['prompt number 3', 'prompt number 4']);
});

it('[Decision 43] names a path that is not there', async () => {
  const args = [join(home, 'none'), '--format', 'codex', '--user', 'a', '--to', 'http://127.0.0.1:1'];
  expect((await run(args, 1)).stderr).toContain(join(home, 'none'));
});
