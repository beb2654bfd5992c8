import { CONFIG_FILE, explain, SETTINGS } from './settings.ts';

const row = (...cells: readonly string[]): string =>
  `| ${cells.map((cell) => cell.replaceAll('|', '\\|')).join(' | ')} |`;
const code = (text: string): string => `\`${text}\``;

/** Markdown table of every setting, for the README. */
export function settingsTable(): string {
  const rows = SETTINGS.map((setting) =>
    row(
      code(setting.key),
      code(setting.env),
      setting.default === undefined ? '' : code(String(setting.default)),
      explain(setting),
    ),
  );
  const head = [row('Key', 'Environment', 'Default', 'Description'), row('---', '---', '---', '---')];
  return [...head, row('', code(CONFIG_FILE.env), '', `${CONFIG_FILE.description}.`), ...rows].join('\n');
}
