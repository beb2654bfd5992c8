import { CONFIG_FILE, defaultText, explain, SETTINGS } from './settings.ts';

const row = (...cells: readonly string[]): string =>
  `| ${cells.map((cell) => cell.replaceAll('|', '\\|')).join(' | ')} |`;
const code = (text: string): string => `\`${text}\``;

/** Markdown table of every setting, for the README. */
export function settingsTable(): string {
  const rows = SETTINGS.map((setting) => {
    const value = defaultText(setting);
    return row(code(setting.key), code(setting.env), value === undefined ? '' : code(value), explain(setting));
  });
  const head = [row('Key', 'Environment', 'Default', 'Description'), row('---', '---', '---', '---')];
  return [...head, row('', code(CONFIG_FILE.env), '', `${CONFIG_FILE.description}.`), ...rows].join('\n');
}
