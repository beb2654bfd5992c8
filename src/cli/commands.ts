import type { Command, Commands } from './command.ts';

/** A line of `omp-gateway --help`, with the commands that it names. */
interface CommandLine {
  /** Such as `export|import FILE ...`. */
  readonly usage: string;
  readonly about: string;
  /** The file is loaded only if it is asked for. */
  readonly load: () => Promise<{ readonly commands: Commands }>;
}

const line = (usage: string, about: string, load: CommandLine['load']): CommandLine => ({ usage, about, load });

/** Every command, in the order of the help. */
const LINES: readonly CommandLine[] = [
  line('keys create|list|revoke ...', 'manage API keys', () => import('../features/keys/command.ts')),
  line('webhooks create|list|...', 'send changes to a URL', () => import('../features/webhooks/command.ts')),
  line('doctor ...', 'check the whole setup', () => import('./doctor.ts')),
  line('backup|restore FILE ...', 'save the embedded store', () => import('./backup.ts')),
  line('conformance ...', 'check an implementation', () => import('./conformance.ts')),
  line('reembed ...', 'switch to another embedder', () => import('./reembed.ts')),
  line('hooks install|status|...', 'give assistants their memories', () => import('./hooks.ts')),
  line('mcp ...', 'tools for an agent over stdio', () => import('./mcp.ts')),
  line('export|import FILE ...', 'memories to a file and back', () => import('./move.ts')),
  line('migrate|verify ...', 'move, compare two stores', () => import('./move.ts')),
  line('freeze|unfreeze ...', 'stop changes, allow them again', () => import('../features/freeze/command.ts')),
  line('rollback USER ...', 'undo what a key has written', () => import('../features/rollback/command.ts')),
  line('person export|erase USER ...', 'all that is stored of a user', () => import('../features/transfer/command.ts')),
  line('retention ...', 'delete what is old by rules', () => import('../features/retention/command.ts')),
];

const wordsOf = ({ usage }: CommandLine) => (usage.split(' ')[0] as string).split('|');

const LOADS = new Map(LINES.flatMap((one) => wordsOf(one).map((word) => [word, one.load] as const)));

/** The words of all commands. */
export const COMMAND_NAMES: readonly string[] = [...LOADS.keys()];
export const isCommand = (word: string | undefined): word is string => word !== undefined && LOADS.has(word);

/** Loads a command by its word. */
export async function loadCommand(name: string): Promise<Command> {
  const file = await LOADS.get(name)?.();
  return file?.commands[name] as Command;
}

/** The commands in `omp-gateway --help`. */
export const commandsHelp = (): string[] =>
  LINES.map(({ usage, about }) => `       omp-gateway ${usage.padEnd(30)}${about}`);
