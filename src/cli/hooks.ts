import { homedir } from 'node:os';
import { join, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import type { Environment } from '../config/mistakes.ts';
import type { Commands, CommandTerminal } from './command.ts';
import { HOOK_CLIENTS, type HookClient, hookClient } from './hook-clients.ts';
import type { HookCommands } from './hook-files.ts';
import {
  checkUrl,
  DEFAULT_BUDGET,
  DEFAULT_DEADLINE_MS,
  DEFAULT_URL,
  type HookOptions,
  readKey,
  runHook,
} from './hook-run.ts';
import { stateFolder } from './hook-session.ts';
import { Mistake, report, runCommand, type Terminal } from './terminal.ts';

const NAMES = Object.keys(HOOK_CLIENTS);

/** What `omp-gateway hooks --help` prints: at most 80 columns wide, ends with a newline. */
const HOOKS_USAGE = `Usage: omp-gateway hooks install CLIENT [options]
       omp-gateway hooks uninstall CLIENT [--project] [--dry-run]
       omp-gateway hooks status [CLIENT] [--project]
       omp-gateway hooks run CLIENT EVENT [options]

Hooks give an assistant the memories of its user: when a session starts and with
each prompt, the client runs a hook, which asks the gateway for context.
CLIENT: ${NAMES.join(', ')}. See
docs/integrations/hooks.md. status says what is installed, and what to know of
each client.

Options:
  --user USER         Whose memories (OMP_USER_ID; default: your user name here)
  --scope PREFIX      Only memories whose scope begins so; the scope of new ones
  --url URL           The gateway (OMP_URL; default ${DEFAULT_URL})
  --key-file FILE     A file of mode 0600 with an API key; otherwise the key is
                      in OMP_KEY. Keys are never written to a configuration.
  --budget TOKENS     The most tokens of one answer, 1 to 100000 (default ${DEFAULT_BUDGET})
  --deadline MS       The longest a hook waits, 50 to 10000 (default ${DEFAULT_DEADLINE_MS})
  --capture           Add what follows "remember:" in a line of a prompt
  --project           The configuration of the project in this folder
  --dry-run           Print what would be written
  -h, --help          Print this and exit

run never blocks a prompt: whatever fails is one line on standard error, and the
exit status is 0. Exit status of the others: 0; 1: failed; 2: wrong arguments.
`;

/** The command of a hook has these options, in this order. */
const HOOK_OPTIONS = {
  user: { type: 'string' },
  scope: { type: 'string' },
  url: { type: 'string' },
  'key-file': { type: 'string' },
  budget: { type: 'string' },
  deadline: { type: 'string' },
  capture: { type: 'boolean' },
} as const;
const FILE_OPTIONS = { project: { type: 'boolean' }, 'dry-run': { type: 'boolean' } } as const;
const HELP = { help: { type: 'boolean', short: 'h' } } as const;

/** `omp-gateway hooks`. Returns the exit status: 0; 1: failed; 2: wrong arguments; for `run` always 0. */
export async function runHooks([command, ...args]: readonly string[], terminal: CommandTerminal): Promise<number> {
  if (command === 'run') {
    await run(args, terminal);
    return 0;
  }
  return runCommand('hooks', HOOKS_USAGE, terminal, async () => {
    if (command === 'install') return install(args, terminal);
    if (command === 'uninstall') return uninstall(args, terminal);
    if (command === 'status') return status(args, terminal);
    if (command === '--help' || command === '-h') return 'help';
    throw new Mistake(command === undefined ? 'hooks needs a command' : `Unknown command 'hooks ${command}'`);
  });
}

/** A client takes status 2 for an order to block the prompt, so no mistake may end with it. */
async function run(args: readonly string[], terminal: CommandTerminal): Promise<void> {
  try {
    const options = { ...HOOK_OPTIONS, ...HELP };
    const { values, positionals } = parseArgs({ args: [...args], options, allowPositionals: true });
    if (values.help) return void terminal.stdout.write(HOOKS_USAGE);
    checkNumbers(values);
    const { output, failures } = await runHook(positionals, values, terminal.env, terminal.stdin);
    if (failures.length > 0) report(terminal, failures.join('; '));
    if (output !== '') terminal.stdout.write(output);
  } catch (error) {
    report(terminal, (error as Error).message.replaceAll('\n', ' '));
  } finally {
    // A client that keeps it open would keep this process alive.
    terminal.stdin.destroy();
  }
}

function checkNumbers(options: HookOptions): void {
  for (const [name, least, most] of [
    ['budget', 1, 100_000],
    ['deadline', 50, 10_000],
  ] as const) {
    const text = options[name];
    if (text !== undefined && !(/^\d{1,6}$/.test(text) && Number(text) >= least && Number(text) <= most)) {
      throw new Mistake(`--${name} must be a whole number from ${least} to ${most}`);
    }
  }
}

async function install(args: readonly string[], terminal: CommandTerminal): Promise<number> {
  const options = { ...HOOK_OPTIONS, ...FILE_OPTIONS, ...HELP };
  const { values, positionals } = parseArgs({ args: [...args], options, allowPositionals: true });
  if (values.help) return help(terminal);
  const { project, 'dry-run': dryRun, help: _, ...hook } = values;
  const target = targetOf(positionals, project, terminal);
  checkNumbers(hook);
  if (hook.url !== undefined) checkUrl(hook.url);
  if (hook['key-file'] !== undefined) {
    if (project) throw new Mistake('--project takes the key from OMP_KEY, not from a file of this machine');
    hook['key-file'] = resolve(terminal.cwd(), hook['key-file']);
    readKey(hook['key-file']);
  }
  const program = project ? ['omp-gateway'] : [process.execPath, MAIN];
  const commands = Object.fromEntries(
    Object.entries(target.client.events)
      .filter(([, { takesContext }]) => takesContext || hook.capture)
      .map(([event]) => [event, commandLine([...program, 'hooks', 'run', target.name, event, ...argumentsOf(hook)])]),
  );
  const deadlineMs = Number(hook.deadline ?? DEFAULT_DEADLINE_MS);
  return change({ target, dryRun, hooks: { commands, deadlineMs }, done: 'installed' }, terminal);
}

async function uninstall(args: readonly string[], terminal: CommandTerminal): Promise<number> {
  const options = { ...FILE_OPTIONS, ...HELP };
  const { values, positionals } = parseArgs({ args: [...args], options, allowPositionals: true });
  if (values.help) return help(terminal);
  const target = targetOf(positionals, values.project, terminal);
  return change({ target, dryRun: values['dry-run'], done: 'removed' }, terminal);
}

async function status(args: readonly string[], terminal: CommandTerminal): Promise<number> {
  const options = { project: FILE_OPTIONS.project, ...HELP };
  const { values, positionals } = parseArgs({ args: [...args], options, allowPositionals: true });
  if (values.help) return help(terminal);
  const { installedEvents } = await import('./hook-files.ts');
  for (const each of positionals.length > 0 ? [positionals] : NAMES.map((name) => [name])) {
    const { client, name, path } = targetOf(each, values.project, terminal);
    const events = installedEvents(path, name);
    const found = events.length === 0 ? 'no hooks' : `hooks for ${events.join(', ')}`;
    terminal.stdout.write([`${client.title}: ${found} in ${path}`, ...client.notes].join('\n  ').concat('\n'));
  }
  return 0;
}

interface Change {
  readonly target: Target;
  readonly dryRun: boolean | undefined;
  /** Undefined: no hooks. */
  readonly hooks?: { readonly commands: HookCommands; readonly deadlineMs: number };
  readonly done: string;
}

/** Writes the file of the client, or prints what it would become. */
async function change({ target, dryRun, hooks, done }: Change, terminal: CommandTerminal): Promise<number> {
  const { planChange, writeChange } = await import('./hook-files.ts');
  const plan = planChange(target, hooks);
  const { file, before, after } = plan;
  if (!dryRun) writeChange(plan, target.records);
  else if (after !== undefined) terminal.stdout.write(after);
  const fate = after === undefined ? 'would be deleted' : 'would become what is printed';
  const changed = dryRun ? fate : `hooks for ${target.client.title} ${done}`;
  report(terminal, `${file}: ${before === after ? 'is already as wanted, nothing was changed' : changed}`);
  return 0;
}

function help({ stdout }: Terminal): number {
  stdout.write(HOOKS_USAGE);
  return 0;
}

interface Target {
  readonly client: HookClient;
  readonly name: string;
  /** The configuration file of the client. */
  readonly path: string;
  /** The folder of what uninstalling needs. */
  readonly records: string;
}

function targetOf([name, extra]: readonly string[], project: boolean | undefined, terminal: CommandTerminal): Target {
  const client = name === undefined ? undefined : hookClient(name);
  if (!client || name === undefined) throw new Mistake(`the client must be one of ${NAMES.join(', ')}`);
  if (extra !== undefined) throw new Mistake(`Unexpected argument '${extra}'`);
  if (process.platform === 'win32') throw new Error('hooks are written for a POSIX shell: on Windows use WSL');
  const { env } = terminal;
  const home = env.HOME || homedir();
  const path = project
    ? join(terminal.cwd(), client.projectFile ?? join(client.folder, client.file))
    : join(userFolder(client, env, home), client.file);
  return { client, name, path, records: stateFolder(env) };
}

const userFolder = ({ folder, folderVariable }: HookClient, env: Environment, home: string): string =>
  (folderVariable && env[folderVariable]) || join(home, folder);

const MAIN = fileURLToPath(new URL('../main.js', import.meta.url));

/** The options as arguments, in a fixed order: installing twice must give the same text. */
const argumentsOf = (hook: HookOptions): string[] =>
  (Object.keys(HOOK_OPTIONS) as (keyof HookOptions)[]).flatMap((name) => {
    const value = hook[name];
    if (value === undefined) return [];
    return value === true ? [`--${name}`] : [`--${name}`, String(value)];
  });

/** For a POSIX shell. */
const commandLine = (words: readonly string[]): string =>
  words.map((word) => (/^[\w@%+=:,./-]+$/.test(word) ? word : `'${word.replaceAll("'", "'\\''")}'`)).join(' ');

export const commands: Commands = { hooks: runHooks };
