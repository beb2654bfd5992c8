import { parseArgs } from 'node:util';
import { settingsHelp, wrap } from '../config/documents.ts';
import { didYouMean } from '../config/mistakes.ts';
import { CONFIG_FILE, SETTINGS } from '../config/schema-reader.ts';
import { commandsHelp, isCommand } from './commands.ts';
import { type Flags, type Options, textOptions } from './options.ts';

/** What the command line asks for. */
export type Arguments =
  | { readonly action: 'serve'; readonly flags: Flags }
  /** `argv` follows the command, which must come first. */
  | { readonly action: 'command'; readonly name: string; readonly argv: readonly string[] }
  | { readonly action: 'help' }
  | { readonly action: 'version' }
  /** `message` goes to standard error; the process then ends with `status`. */
  | { readonly action: 'mistake'; readonly message: string; readonly status: 2 };

const OPTIONS: Options = {
  ...textOptions([CONFIG_FILE.flag, ...SETTINGS.flatMap(({ flag }) => flag ?? [])]),
  help: { type: 'boolean', short: 'h' },
  version: { type: 'boolean', short: 'v' },
};

/** Parses the arguments that follow the program's name. If a flag is given twice, the last one counts. */
export function parseArguments(argv: readonly string[]): Arguments {
  const [first, ...rest] = argv;
  if (isCommand(first)) return { action: 'command', name: first, argv: rest };
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

const WIDTH = 80;
const FLAG_COLUMN = 22;

/** What `--help` prints: at most 80 columns wide, ends with a newline. */
export function helpText(): string {
  return `Usage: omp-gateway [serve] [options]
${commandsHelp().join('\n')}

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
