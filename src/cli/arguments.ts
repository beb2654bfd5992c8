import { type ParseArgsConfig, parseArgs } from 'node:util';
import { didYouMean } from '../config/did-you-mean.ts';
import { CONFIG_FILE, SETTINGS } from '../config/settings.ts';

/** What the command line asks for. `flags` hold texts by name without dashes, as `loadConfig` takes them. */
export type Arguments =
  | { readonly action: 'serve'; readonly flags: Readonly<Record<string, string>> }
  /** What follows the command, which must come first. */
  | { readonly action: Command; readonly argv: readonly string[] }
  | { readonly action: 'help' }
  | { readonly action: 'version' }
  /** `message` goes to standard error; the process then ends with `status`. */
  | { readonly action: 'mistake'; readonly message: string; readonly status: 2 };

/** Commands with arguments of their own. */
const COMMANDS = ['doctor', 'keys', 'reembed'] as const;
type Command = (typeof COMMANDS)[number];
const isCommand = (word: string | undefined): word is Command => COMMANDS.some((command) => command === word);

const VALUES = [CONFIG_FILE.flag, ...SETTINGS.flatMap(({ flag }) => flag ?? [])];

const OPTIONS: NonNullable<ParseArgsConfig['options']> = {
  ...Object.fromEntries(VALUES.map((flag) => [flag, { type: 'string' as const }])),
  help: { type: 'boolean', short: 'h' },
  version: { type: 'boolean', short: 'v' },
};

/** Reads the arguments that follow the program's name. A flag given twice: the last one counts. */
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
    return { action: 'serve', flags: values as Record<string, string> };
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

/** Node's own words, without its advice on arguments that begin with a dash. */
function explanation({ code, message }: NodeJS.ErrnoException): string {
  if (code !== 'ERR_PARSE_ARGS_UNKNOWN_OPTION') return message.replaceAll('\n', ' ');
  const flag = /'(.*?)'/.exec(message)?.[1] ?? '';
  return `Unknown option '${flag}'${didYouMean(flag, SPELLINGS)}`;
}
