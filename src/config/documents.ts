import { stringify } from 'yaml';
import { CONFIG_FILE, defaultText, explain, MOUNT_SETTINGS, SETTINGS, type Setting } from './schema-reader.ts';
import { GROUPS } from './settings.ts';

const BY_GROUP = Object.keys(GROUPS).map((name) => ({
  name,
  settings: SETTINGS.filter(({ group }) => group === name),
}));

/** The words of a text in lines of at most `width` characters; a longer word gets a line of its own. */
export function wrap(text: string, width: number): string[] {
  const lines: string[] = [];
  for (const word of text.split(' ')) {
    const last = lines.at(-1);
    if (last !== undefined && last.length + 1 + word.length <= width) lines[lines.length - 1] = `${last} ${word}`;
    else lines.push(word);
  }
  return lines;
}

/** The key of a setting that only a mounted store has. */
const ofStore = ({ key }: Setting): string => `stores.NAME.${key}`;

/** The settings for `--help`, at most `width` columns wide. `*` marks the essential ones. */
export function settingsHelp(width: number): string {
  const entry = (head: string, text: string): string[] => [
    `  ${head}`,
    ...wrap(text, width - 6).map((line) => `      ${line}`),
  ];
  const lines = entry(CONFIG_FILE.env, `${CONFIG_FILE.description}.`);
  for (const { name: group, settings } of BY_GROUP) {
    lines.push('', `${group}:`);
    for (const setting of settings) {
      const value = defaultText(setting);
      const head = `${setting.env} (${setting.key}${value === undefined ? '' : `, default ${value}`})`;
      lines.push(...entry(`${head}${setting.essential ? ' *' : ''}`, explain(setting)));
    }
    for (const setting of group === 'Stores' ? MOUNT_SETTINGS : []) {
      const value = defaultText(setting);
      lines.push(...entry(`${ofStore(setting)}${value === undefined ? '' : ` (default ${value})`}`, explain(setting)));
    }
  }
  return lines.join('\n');
}

const row = (...cells: readonly string[]): string =>
  `| ${cells.map((cell) => cell.replaceAll('|', '\\|')).join(' | ')} |`;
const code = (text: string): string => `\`${text}\``;

/** Markdown for the documentation: a table for each group, the essential settings in bold. */
export function settingsTables(): string {
  const cells = (setting: Setting, name: string, key: string) => {
    const value = defaultText(setting);
    return row(name, code(key), value === undefined ? '' : code(value), explain(setting));
  };
  return BY_GROUP.map(({ name, settings }) =>
    [
      `### ${name}\n`,
      row('Environment', 'Key in the file', 'Default', ''),
      row('---', '---', '---', '---'),
      ...(name === 'Server' ? [row(code(CONFIG_FILE.env), '', '', `${CONFIG_FILE.description}.`)] : []),
      ...settings.map((each) => cells(each, each.essential ? `**${code(each.env)}**` : code(each.env), each.key)),
      ...(name === 'Stores' ? MOUNT_SETTINGS : []).map((each) => cells(each, '', ofStore(each))),
    ].join('\n'),
  ).join('\n\n');
}

const HEADER = `# Configuration of omp-gateway. Copy this file, change it, and start with
#   omp-gateway --config FILE
# docs/configuration.md lists the same settings in tables.
# The command line wins over the environment, the environment over this file.
# Every setting is here, by group; * marks the ten that matter. A line that begins
# with #, without a space after it, is a setting that is off: its default, which
# applies only to some choice of another setting, or an example if there is no
# default.
# In a value, \${NAME} and \${NAME:-default} stand for environment variables and
# $$ for one $.`;

/** Text of `omp-gateway.example.yaml`. */
export function exampleFile(): string {
  const lines = [HEADER];
  for (const { name: group, settings } of BY_GROUP) {
    lines.push('', `# ${`---- ${group} `.padEnd(76, '-')}`);
    let opened = '';
    for (const setting of settings) {
      const [section = '', name] = setting.key.split('.');
      lines.push('');
      if (name !== undefined && section !== opened) lines.push(`${section}:`);
      opened = section;
      lines.push(...(name === undefined ? exampleEntry(setting, section, '') : exampleEntry(setting, name, '  ')));
    }
  }
  return `${lines.join('\n')}\n`;
}

function exampleEntry(setting: Setting, name: string, indent: string): string[] {
  const text = `${setting.essential ? '* ' : ''}${explain(setting)}`;
  const comment = wrap(text, 78 - indent.length).map((line) => `${indent}# ${line}`);
  const off = setting.default === undefined || setting.only !== undefined;
  return [...comment, ...yaml(setting, name).map((line) => `${indent}${off ? '#' : ''}${line}`)];
}

/** On one line, except for a list of objects: one line for each, since a line that is off cannot begin with a space. */
function yaml({ type, default: value, example }: Setting, name: string): string[] {
  const shown = value ?? example;
  if (type === 'json') return [`${name}:`, ...(shown as unknown[]).map((item) => `- ${inline(item)}`)];
  return [type === 'list' || type === 'object' ? `${name}: ${inline(shown)}` : stringify({ [name]: shown }).trimEnd()];
}

const inline = (value: unknown): string =>
  stringify(value, { collectionStyle: 'flow', lineWidth: 0, flowCollectionPadding: false }).trimEnd();
