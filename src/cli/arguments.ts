import { type ParseArgsConfig, parseArgs } from 'node:util';
import { settingsHelp, wrap } from '../config/documents.ts';
import { loadConfig } from '../config/load.ts';
import { didYouMean } from '../config/mistakes.ts';
import { CONFIG_FILE, SETTINGS } from '../config/schema-reader.ts';
import type { Config } from '../config/settings.ts';
import { report, type Terminal } from './terminal.ts';

/** Flags that set configuration, by name without dashes, as `loadConfig` takes them. */
export type Flags = Readonly<Record<string, string>>;

/** What the command line asks for. */
export type Arguments =
  | { readonly action: 'serve'; readonly flags: Flags }
  /** `argv` follows the command, which must come first. */
  | { readonly action: Command; readonly argv: readonly string[] }
  | { readonly action: 'help' }
  | { readonly action: 'version' }
  /** `message` goes to standard error; the process then ends with `status`. */
  | { readonly action: 'mistake'; readonly message: string; readonly status: 2 };

/** Commands with their own arguments. */
const COMMANDS = [
  'backup',
  'conformance',
  'doctor',
  'export',
  'freeze',
  'hooks',
  'import',
  'keys',
  'mcp',
  'migrate',
  'person',
  'reembed',
  'restore',
  'retention',
  'rollback',
  'unfreeze',
  'verify',
  'webhooks',
] as const;
type Command = (typeof COMMANDS)[number];
const isCommand = (word: string | undefined): word is Command => COMMANDS.some((command) => command === word);

type Options = NonNullable<ParseArgsConfig['options']>;
const textOptions = (flags: readonly string[]): Options =>
  Object.fromEntries(flags.map((flag) => [flag, { type: 'string' }]));

const OPTIONS: Options = {
  ...textOptions([CONFIG_FILE.flag, ...SETTINGS.flatMap(({ flag }) => flag ?? [])]),
  help: { type: 'boolean', short: 'h' },
  version: { type: 'boolean', short: 'v' },
};

/** Parses the arguments that follow the program's name. If a flag is given twice, the last one counts. */
export function parseArguments(argv: readonly string[]): Arguments {
  const [first, ...rest] = argv;
  if (isCommand(first)) return { action: first, argv: rest };
  try {
    const { values, positionals } = parseArgs({ args: [...argv], options: OPTIONS, allowPositionals: true });
    const [command = 'serve', extra] = positionals;
    if (isCommand(command)) return mistake(`'${command}' must be the first argument`);
    if (command !== 'serve') return mistake(`Unknown command '${command}'`);
    if (extra !== undefined) return mistake(`Unexpected argument '${extra}'`);
    if (values.help) return { action: 'help' };
    if (values.version) return { action: 'version' };
    return { action: 'serve', flags: values as Flags };
  } catch (error) {
    return mistake(explanation(error as NodeJS.ErrnoException));
  }
}

const mistake = (message: string): Arguments => ({
  action: 'mistake',
  message: `${message}\nTry 'omp-gateway --help'.`,
  status: 2,
});

const SPELLINGS = Object.keys(OPTIONS).map((flag) => [`--${flag}`, `--${flag}`] as const);

/** Node's message, without its advice on arguments that begin with a dash. */
function explanation({ code, message }: NodeJS.ErrnoException): string {
  if (code !== 'ERR_PARSE_ARGS_UNKNOWN_OPTION') return message.replaceAll('\n', ' ');
  const flag = /'(.*?)'/.exec(message)?.[1] ?? '';
  return `Unknown option '${flag}'${didYouMean(flag, SPELLINGS)}`;
}

/** Flags of every command that reads the configuration. */
const CONFIG_FLAGS = [CONFIG_FILE.flag, 'provider', 'data-dir'] as const;

/** Options of every command, in addition to its own. */
export const COMMON_OPTIONS = {
  ...textOptions(CONFIG_FLAGS),
  help: { type: 'boolean', short: 'h' },
} satisfies Options;

/** The usage of those options. */
export const COMMON_USAGE = `  --config FILE       As for the gateway; the environment counts too
  --provider NAME
  --data-dir FOLDER
  -h, --help          Print this and exit`;

/** Of commands for one store. */
export const STORE_OPTION = { store: { type: 'string' } } satisfies Options;

/** The usage of that option. */
export const STORE_USAGE = `  --store NAME        A mounted store of the configuration (default: root)`;

export const configFlags = (values: Readonly<Record<string, unknown>>): Flags =>
  Object.fromEntries(
    CONFIG_FLAGS.flatMap((flag) => (typeof values[flag] === 'string' ? [[flag, values[flag]] as const] : [])),
  );

const WIDTH = 80;
const FLAG_COLUMN = 22;

/** What `--help` prints: at most 80 columns wide, ends with a newline. */
export function helpText(): string {
  return `Usage: omp-gateway [serve] [options]
       omp-gateway keys create|list|revoke ...   manage API keys
       omp-gateway webhooks create|list|...      send changes to a URL
       omp-gateway doctor ...                    check the whole setup
       omp-gateway backup|restore FILE ...       save the embedded store
       omp-gateway conformance ...               check an implementation
       omp-gateway reembed ...                   switch to another embedder
       omp-gateway hooks install|status|...      give assistants their memories
       omp-gateway mcp ...                       tools for an agent over stdio
       omp-gateway export|import FILE ...        memories to a file and back
       omp-gateway migrate|verify ...            move, compare two stores
       omp-gateway freeze|unfreeze ...           stop changes, allow them again
       omp-gateway rollback USER ...             undo what a key has written
       omp-gateway person export|erase USER ...  all that is stored of a user
       omp-gateway retention ...                 delete what is old by rules

The Open Memory Protocol over HTTP in front of a vector store. Each command has
its own --help. Documentation: docs/getting-started.md, docs/configuration.md,
docs/operations.md.

Options:
${flagsHelp().join('\n')}

The command line wins over the environment, the environment over the file.
An empty variable counts as unset. The items of a list are separated by commas.

Environment (in parentheses the key in the file; * marks the ten that matter):
${settingsHelp(WIDTH)}
`;
}

function flagsHelp(): string[] {
  const settings = SETTINGS.flatMap(({ flag, description }) => (flag === undefined ? [] : [{ flag, description }]));
  return [
    ...[CONFIG_FILE, ...settings].map(({ flag, description }) => [`--${flag} VALUE`, description] as const),
    ['-h, --help', 'Print this and exit'] as const,
    ['-v, --version', 'Print the version and exit'] as const,
  ].flatMap(([flag, description]) =>
    wrap(description, WIDTH - FLAG_COLUMN - 2).map(
      (line, index) => `  ${(index === 0 ? flag : '').padEnd(FLAG_COLUMN)}${line}`,
    ),
  );
}

/** The configuration; its warnings are reported. Throws `ConfigError`. */
export function configOf(flags: Flags, terminal: Terminal): Config {
  const { config, warnings } = loadConfig({ flags, env: terminal.env });
  for (const warning of warnings) report(terminal, warning);
  return config;
}
