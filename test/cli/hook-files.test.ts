import {
  chmodSync,
  existsSync,
  lstatSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { Readable } from 'node:stream';
import jsonc from 'jsonc-parser';
import { beforeEach, describe, expect, it, onTestFinished } from 'vitest';
import { HOOK_CLIENTS, type HookClientName } from '../../src/cli/hook-clients.ts';
import { runHooks } from '../../src/cli/hooks.ts';
import { commandHere } from '../support/command.ts';

let home: string;
beforeEach(() => {
  home = mkdtempSync(join(tmpdir(), 'omp-h-'));
  onTestFinished(() => rmSync(home, { recursive: true, force: true }));
});

const hooks = (...argv: readonly string[]) =>
  commandHere((terminal) => runHooks(argv, { ...terminal, stdin: Readable.from([]), cwd: () => home }), { HOME: home });

/** The hooks of a file: event, command, timeout. */
function hooksIn(text: string): [event: string, command: string, timeout: number][] {
  const { hooks } = jsonc.parse(text) as { hooks: Record<string, object[]> };
  return Object.entries(hooks).flatMap(([event, list]) =>
    list.flatMap((group) => {
      const { hooks: inner = [group] } = group as { hooks?: object[] };
      return inner.map((hook) => {
        const { command, timeout } = hook as { command: string; timeout: number };
        return [event, command, timeout] as [string, string, number];
      });
    }),
  );
}

/** What may stand in a file before. */
type Before = readonly [what: string, text: string];
const GROUPED = (event: string): Before[] => [
  ['nothing but an object', '{}'],
  ['blanks', ' \n'],
  ['nothing', ''],
  ['other settings, without a final newline', '{"model":"x"}'],
  ['tabs, CRLF and comments', '{\r\n\t// keep\r\n\t"model": "x", /* and this */\r\n}\r\n'],
  ['empty hooks', '{\n  "hooks": {}\n}\n'],
  ['an empty list', `{\n    "hooks": {\n        "${event}": []\n    }\n}\n`],
  [
    'hooks of others',
    `{\n  "hooks": {\n    "${event}": [\n      { "matcher": "startup", "hooks": [{ "type": "command", "command": "date" }] }, // mine\n    ],\n    "Stop": [{"hooks":[]}]\n  },\n  "z": 1\n}\n`,
  ],
];

const CLIENTS: {
  name: string;
  file: string;
  projectFile?: string;
  events: string[];
  clientTimeout: number;
  files: Before[];
}[] = [
  {
    name: 'claude-code',
    file: '.claude/settings.json',
    events: ['SessionStart', 'UserPromptSubmit'],
    clientTimeout: 6,
    files: GROUPED('UserPromptSubmit'),
  },
  {
    name: 'codex',
    file: '.codex/hooks.json',
    events: ['SessionStart', 'UserPromptSubmit'],
    clientTimeout: 6,
    files: GROUPED('SessionStart'),
  },
  {
    name: 'gemini',
    file: '.gemini/settings.json',
    events: ['SessionStart', 'BeforeAgent'],
    clientTimeout: 6000,
    files: GROUPED('BeforeAgent'),
  },
  {
    name: 'qwen',
    file: '.qwen/settings.json',
    events: ['SessionStart', 'UserPromptSubmit'],
    clientTimeout: 6,
    files: GROUPED('SessionStart'),
  },
  {
    name: 'copilot',
    file: '.copilot/settings.json',
    projectFile: '.github/hooks/omp-gateway.json',
    events: ['sessionStart', 'userPromptSubmitted'],
    clientTimeout: 6,
    files: [
      ['nothing', ''],
      ['other settings', '{ "trusted_folders": ["/srv"], "hooks": {} }'],
      ['hooks of others', '{\n  "hooks": {\n    "sessionStart": [{ "type": "command", "command": "date" }]\n  }\n}\n'],
    ],
  },
  {
    name: 'cursor',
    file: '.cursor/hooks.json',
    events: ['sessionStart'],
    clientTimeout: 6,
    files: [
      ['nothing', ''],
      ['a version', '{ "version": 1, "hooks": {} }'],
      ['hooks of others', '{\n  "version": 1,\n  "hooks": {\n    "sessionStart": [{ "command": "date" }]\n  }\n}\n'],
    ],
  },
];

describe.each(CLIENTS)('hooks of $name', ({ name, file, projectFile = file, events, clientTimeout, files }) => {
  const path = () => join(home, file);
  const text = () => readFileSync(path(), 'utf8');
  const write = (contents: string) => {
    mkdirSync(dirname(path()), { recursive: true });
    writeFileSync(path(), contents);
  };
  const install = (...options: string[]) => hooks('install', name, '--user', 'ana', ...options);

  it('creates a file and deletes it again', async () => {
    expect((await install()).status).toBe(0);
    expect(hooksIn(text())).toEqual(
      events.map((event) => [event, expect.stringMatching(` hooks run ${name} ${event} --user ana$`), clientTimeout]),
    );
    if (name === 'cursor') expect(JSON.parse(text())).toMatchObject({ version: 1 });
    expect((await hooks('uninstall', name)).status).toBe(0);
    expect(existsSync(path())).toBe(false);
  });

  it.each(files)('%s: adds to it, changes nothing when repeated, and restores every byte', async (_, before) => {
    write(before);
    expect((await install()).status).toBe(0);
    const installed = text();
    const others = before.includes('"date"') ? ['date'] : [];
    expect(hooksIn(installed).map(([, command]) => command.replace(/^.* (?=hooks run)/, ''))).toEqual(
      expect.arrayContaining([...others, ...events.map((event) => `hooks run ${name} ${event} --user ana`)]),
    );
    for (const comment of before.match(/\/\/ \w+|\/\*.*?\*\//g) ?? []) expect(installed).toContain(comment);
    expect(installed.includes('\r\n')).toBe(before.includes('\r\n'));
    if (before.includes('\r\n')) expect(installed).not.toMatch(/[^\r]\n/);
    expect((await install()).stderr).toContain('nothing was changed');
    expect(text()).toBe(installed);
    expect((await hooks('uninstall', name)).status).toBe(0);
    expect(text()).toBe(before);
  });

  it('other options replace our hooks, and the file is restored all the same', async () => {
    const [, before] = files.at(-1) as readonly [string, string];
    write(before);
    await install();
    await install('--budget', '200', '--deadline', '1500');
    const ours = hooksIn(text()).filter(([, command]) => command.includes(' hooks run '));
    expect(ours).toHaveLength(events.length);
    for (const [, command, seconds] of ours) {
      expect(command).toMatch(/ --user ana --budget 200 --deadline 1500$/);
      expect(seconds).toBe((clientTimeout * 7) / 6);
    }
    await hooks('uninstall', name);
    expect(text()).toBe(before);
  });

  it('keeps what was changed after the installation', async () => {
    write(files.at(-1)?.[1] as string);
    await install();
    const theirs = jsonc.applyEdits(text(), jsonc.modify(text(), ['added'], 'later', {}));
    write(theirs);
    await hooks('uninstall', name);
    expect(text()).not.toContain('hooks run');
    expect(jsonc.parse(text())).toEqual({ ...jsonc.parse(files.at(-1)?.[1] as string), added: 'later' });
  });

  it.each([
    ['a broken file', '{ "hooks": {', /not valid JSON \(line 1\)/],
    ['a list', '[]', /must hold an object/],
    ['a text', '"x"', /must hold an object/],
    ['hooks that are a list', '{"hooks": []}', /must hold an object/],
    ['an event that is no list', `{"hooks": {"${events[0]}": {}}}`, /must be a list/],
  ])('%s is refused and stays', async (_, before, message) => {
    write(before);
    const refused = await install();
    expect(refused).toMatchObject({ status: 1, stdout: '' });
    expect(refused.stderr).toMatch(message);
    expect(text()).toBe(before);
    expect(existsSync(join(home, '.local'))).toBe(false);
  });

  it('--dry-run prints the file and writes nothing', async () => {
    const shown = await install('--dry-run');
    expect(existsSync(path())).toBe(false);
    expect(existsSync(join(home, '.local'))).toBe(false);
    await install();
    expect(shown.stdout).toBe(text());
    const planned = await hooks('uninstall', name, '--dry-run');
    expect(planned.stderr).toContain('would be deleted');
    expect(existsSync(path())).toBe(true);
  });

  it('--project needs no user and no path of this machine', async () => {
    expect((await hooks('install', name, '--project', '--capture')).status).toBe(0);
    const prompt = name === 'cursor' ? 'beforeSubmitPrompt' : events[1];
    const written = readFileSync(join(home, projectFile), 'utf8');
    expect(hooksIn(written).map(([event, command]) => [event, command])).toEqual(
      [events[0], prompt].map((event) => [event, `omp-gateway hooks run ${name} ${event} --capture`]),
    );
  });
});

describe('status', () => {
  it('is of every client what is installed and where, and what it leaves out without a word', async () => {
    const names = Object.keys(HOOK_CLIENTS);
    expect(CLIENTS.map(({ name }) => name).sort()).toEqual([...names].sort());
    const lines = async (...argv: string[]) => {
      const { status, stdout, stderr } = await hooks('status', ...argv);
      expect({ status, stderr }).toEqual({ status: 0, stderr: '' });
      return stdout.split('\n').filter((line) => line !== '');
    };
    const titles = (found: string[]) => found.filter((line) => !line.startsWith('  '));
    expect(titles(await lines())).toHaveLength(names.length);
    for (const { name, file, projectFile = file, events } of CLIENTS) {
      const { title, notes } = HOOK_CLIENTS[name as HookClientName];
      const before = `${title}: no hooks in ${join(home, file)}`;
      expect(await lines(name)).toEqual([before, ...notes.map((note) => `  ${note}`)]);
      await hooks('install', name, '--user', 'ana');
      expect(titles(await lines(name))).toEqual([`${title}: hooks for ${events.join(', ')} in ${join(home, file)}`]);
      if (projectFile === file) continue;
      expect(titles(await lines(name, '--project'))).toEqual([`${title}: no hooks in ${join(home, projectFile)}`]);
    }
    expect((await lines()).filter((line) => line.includes(': hooks for '))).toHaveLength(names.length);
  });

  it('of a file that is no JSON says so', async () => {
    mkdirSync(join(home, '.codex'));
    writeFileSync(join(home, '.codex/hooks.json'), '{ "hooks": {');
    const refused = await hooks('status');
    expect(refused.status).toBe(1);
    expect(refused.stderr).toMatch(/hooks.json is not valid JSON/);
  });
});

describe('the file', () => {
  it('keeps its mode, and a symbolic link stays one', async () => {
    const real = join(home, 'dotfiles.json');
    writeFileSync(real, '{}');
    chmodSync(real, 0o640);
    mkdirSync(join(home, '.claude'));
    symlinkSync(real, join(home, '.claude/settings.json'));
    await hooks('install', 'claude-code', '--user', 'ana');
    expect(lstatSync(join(home, '.claude/settings.json')).isSymbolicLink()).toBe(true);
    expect(statSync(real).mode & 0o777).toBe(0o640);
    expect(readFileSync(real, 'utf8')).toContain('hooks run');
  });

  it('a hook of ours in the group of another is removed without the group', async () => {
    const file = join(home, '.claude/settings.json');
    mkdirSync(dirname(file));
    const theirs = { matcher: 'startup', hooks: [{ type: 'command', command: 'date' }] };
    const ours = { type: 'command', command: 'omp-gateway hooks run claude-code SessionStart' };
    writeFileSync(file, JSON.stringify({ hooks: { SessionStart: [{ ...theirs, hooks: [ours, ...theirs.hooks] }] } }));
    await hooks('uninstall', 'claude-code');
    expect(JSON.parse(readFileSync(file, 'utf8'))).toEqual({ hooks: { SessionStart: [theirs] } });
  });
});

describe('arguments', () => {
  it.each([
    ['ftp://x', /must begin with http/],
    ['localhost', /must begin with http/],
    ['http://a:b@x', /use --key-file/],
  ])('the URL %s is refused', async (url, message) => {
    const refused = await hooks('install', 'codex', '--user', 'a', '--url', url);
    expect(refused).toMatchObject({ status: 1, stdout: '' });
    expect(refused.stderr).toMatch(message);
    expect(existsSync(join(home, '.codex'))).toBe(false);
  });

  it('a shell reads every value as one word', async () => {
    await hooks('install', 'codex', '--user', `o'neil $(id) "x"`, '--scope', 'a b');
    const [[, command] = ['', '']] = hooksIn(readFileSync(join(home, '.codex/hooks.json'), 'utf8'));
    expect(command).toContain(` --user 'o'\\''neil $(id) "x"' --scope 'a b'`);
  });

  it('a key file must exist, hold a key, and be readable by its owner only', async () => {
    const file = join(home, 'key');
    const install = () => hooks('install', 'codex', '--user', 'ana', '--key-file', 'key');
    expect((await install()).stderr).toContain('cannot be read: ENOENT');
    writeFileSync(file, 'omp_abc\n');
    chmodSync(file, 0o640);
    expect((await install()).stderr).toContain('chmod 600');
    chmodSync(file, 0o600);
    expect((await install()).status).toBe(0);
    const text = readFileSync(join(home, '.codex/hooks.json'), 'utf8');
    expect(text).toContain(`--key-file ${file}`);
    expect(text).not.toContain('omp_abc');
  });
});
