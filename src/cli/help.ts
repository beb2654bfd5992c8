import { CONFIG_FILE, defaultText, explain, SETTINGS } from '../config/settings.ts';
import { wrap } from '../config/wrap.ts';

const WIDTH = 80;
const FLAG_COLUMN = 22;

/** What `--help` prints: at most 80 columns wide, ends with a newline. */
export function helpText(): string {
  return `Usage: omp-gateway [serve] [options]
       omp-gateway keys create|list|revoke ...   who may use it
       omp-gateway doctor ...                    is everything as it should be?
       omp-gateway reembed ...                   go over to another embedder

The Open Memory Protocol over HTTP in front of a vector store. Each of the
commands tells more with --help.

Options:
${flags().join('\n')}

The command line wins over the environment, the environment over the file.
An empty variable counts as unset. The items of a list are separated by commas.

Environment (in parentheses the key in the file):
${environment().join('\n')}
`;
}

function flags(): string[] {
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

function environment(): string[] {
  const settings = SETTINGS.flatMap((setting) => {
    const value = defaultText(setting);
    const head = `${setting.env} (${setting.key}${value === undefined ? '' : `, default ${value}`})`;
    return entry(head, explain(setting));
  });
  return [...entry(CONFIG_FILE.env, `${CONFIG_FILE.description}.`), ...settings];
}

const entry = (head: string, text: string): string[] => [
  `  ${head}`,
  ...wrap(text, WIDTH - 6).map((line) => `      ${line}`),
];
