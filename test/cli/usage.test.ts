import { mkdtempSync, readdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, expect, it } from 'vitest';
import { COMMAND_NAMES, loadCommand } from '../../src/cli/commands.ts';
import { commandHere } from '../support/command.ts';

const unopened = () => Promise.reject(new Error('the store was opened'));

/** What may be written, and is not. */
const folder = mkdtempSync(join(tmpdir(), 'omp-u-'));
afterAll(() => rmSync(folder, { recursive: true }));

const run = ([name = '', ...argv]: readonly string[]) =>
  commandHere(async (terminal) => (await loadCommand(name))(argv, terminal, unopened, name), {
    HOME: folder,
    OMP_DATA_DIR: folder,
  });

/** Columns of the widest line, where a terminal of 80 is too narrow. */
const WIDE: Readonly<Record<string, number>> = { import: 81, migrate: 83 };

it.each(COMMAND_NAMES)('%s --help and -h print its usage, which fits a terminal', async (name) => {
  const { status, stdout, stderr } = await run([name, '--help']);
  expect({ status, stderr }).toEqual({ status: 0, stderr: '' });
  expect(stdout).toMatch(new RegExp(`^Usage: [^]*omp-gateway ${name}\\b`));
  expect(stdout.split('\n').filter((line) => line.length > (WIDE[name] ?? 80))).toEqual([]);
  expect(await run([name, '-h'])).toEqual({ status, stdout, stderr });
});

it.each(['keys create', 'keys list', 'keys revoke', 'hooks install'])(
  '%s --help is that of the command',
  async (line) => {
    const [name = '', verb = ''] = line.split(' ');
    expect(await run([name, verb, '--help'])).toEqual(await run([name, '--help']));
  },
);

const READ = '--grant read:*';
const CODEX = '--format codex --user a';

/** A command line, in which `''` is an empty word, and what is said about it. */
it.each<[line: string, message: string]>([
  ...COMMAND_NAMES.map((name): [string, string] => [`${name} --frobnicate`, name === 'hooks' ? '' : '--frob']),
  ['backup', 'backup needs one file'],
  ['restore', 'restore needs one file'],
  ['conformance', '--url'],
  ['conformance --url localhost:8080', '--url'],
  ['conformance --url http://x --profile cores', 'core, list'],
  ['conformance --url http://x --key-env NONE', 'NONE'],
  ['doctor now', 'now'],
  ['doctor --provider', '--provider'],
  ['doctor --port 1', '--port'],
  ['hooks', 'needs a command'],
  ['hooks instal', 'Unknown command'],
  ['hooks install emacs --user a', 'one of claude-code, codex, gemini, qwen, copilot, cursor'],
  ['hooks status emacs', 'one of claude-code'],
  ['hooks status codex --capture', '--capture'],
  ['hooks install codex --user a b', "Unexpected argument 'b'"],
  ['hooks install codex --user a --budget 0', '--budget must be'],
  ['hooks install codex --user a --deadline 49', '--deadline must be'],
  ['hooks install codex --user a --key k', '--key'],
  ['hooks install codex --project --key-file k', 'takes the key from OMP_KEY'],
  ['hooks uninstall codex --capture', '--capture'],
  ['keys', 'needs a command'],
  ['keys delete one', "'keys delete'"],
  [`keys create ${READ}`, 'one name'],
  [`keys create one two ${READ}`, 'one name'],
  [`keys create '' ${READ}`, 'The name'],
  ['keys create one', "--grant 'read:coding/*'"],
  ['keys create one --grant read', "--grant 'read'"],
  [`keys create one ${READ} --grant admin:x`, "--grant 'admin:x'"],
  [`keys create one ${READ} --user ''`, "--user ''"],
  [`keys create one ${READ} --expires soon`, "--expires 'soon'"],
  [`keys create one ${READ} --expires 0d`, "--expires '0d'"],
  [`keys create one ${READ} --expires 2001-01-01`, "--expires '2001-01-01'"],
  [`keys create one ${READ} --print --provider memory`, '--provider has no effect'],
  [`keys create one ${READ} --json`, '--json'],
  // Decision 54.
  ['keys create one --grant admin:* --untrusted', 'admin:* does nothing for an untrusted key'],
  ['keys create one --grant admin:* --untrusted --print', 'admin:* does nothing for an untrusted key'],
  ['keys list one', 'one'],
  ['keys list --grant x', '--grant'],
  ['keys revoke', 'one name or id'],
  ['keys revoke one two', 'one name or id'],
  ['mcp --key x', "Unknown option '--key'"],
  ['reembed --batch 0', '--batch'],
  ['reembed --batch 1001', '--batch'],
  ['reembed --per-minute fast', '--per-minute'],
  ['reembed now', 'now'],
  ['webhooks', 'needs a command'],
  ['webhooks frobnicate', "Unknown command 'webhooks frobnicate'"],
  ['webhooks create', 'needs one URL'],
  ['webhooks delete wh_1 wh_2', 'needs one id'],
  ['webhooks list wh_1', 'wh_1'],
  ['webhooks resume wh_1 --from-then', '--from-then'],
  ['export', 'expected FILE'],
  ['export a --from nowhere', 'is no store'],
  // Decision 48.
  [
    'export a --from https://memory.example.com --store notes',
    '--store is of a configuration; of a gateway, use --scope',
  ],
  ['import a --on-conflict merge', 'skip, replace or fail'],
  ['import a --concurrency 0', 'from 1 to 32'],
  ['import --format codex', 'needs one --user'],
  [`import ${CODEX} --user b`, 'needs one --user'],
  ['import --format cursor --user a', '--format must be mem0, csv, claude-code, codex or gemini'],
  [`import ${CODEX} --restart`, '--restart has no effect with --format codex'],
  [`import ${CODEX} --column a=b`, '--column has no effect with --format codex'],
  ['import x.json --watch', '--watch has no effect without --format claude-code, codex or gemini'],
  ['import x.json --format mem0 --limit 2', '--limit has no effect without'],
  [`import ${CODEX} --watch --dry-run`, '--dry-run ends, and --watch does not'],
  [`import ${CODEX} --limit 0`, '--limit must be a whole number'],
  ['import --format csv --user a', 'expected FILE'],
  ['migrate --from config', '--from and --to'],
  ['migrate http://a', 'expected A and B'],
  ['migrate http://a http://b --follow --scope a/*', '--follow moves all memories'],
  ['migrate http://a http://b --follow --tag t', '--follow moves all memories'],
  ['migrate http://a http://b --follow --since 2026-01-01', '--follow moves all memories'],
  ['freeze nowhere', 'is no store'],
  ['verify a', 'expected A and B'],
  ['verify a b --since yesterday', 'ISO 8601'],
  ['person export', 'expected export or erase and USER'],
  ['person forget ana', 'expected export or erase, not forget'],
  ['person erase ana --out x', '--out and --replace are for person export'],
  ['rollback ana', 'needs --since'],
  ['rollback', 'expected USER'],
  ['rollback ana --since yesterday', '--since must be an ISO 8601 time'],
  ['rollback ana --since 2026-01-01 --until now', '--until must be an ISO 8601 time'],
])('%s is a mistake, which says %s, and does nothing', async (line, message) => {
  const argv = line.split(' ').map((word) => (word === "''" ? '' : word));
  const refused = await run(argv);
  expect(refused).toMatchObject({ status: 2, stdout: '' });
  expect(refused.stderr).toContain(message);
  expect(refused.stderr).toContain(`Try 'omp-gateway ${argv[0]} --help'.`);
  expect(readdirSync(folder)).toEqual([]);
});

it('mcp takes no address that is none', async () => {
  const refused = await run(['mcp', '--url', 'localhost']);
  expect(refused).toEqual({ status: 1, stdout: '', stderr: expect.stringContaining('--url must be an http') });
});
