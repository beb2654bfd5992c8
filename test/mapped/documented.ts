import { readFileSync } from 'node:fs';

/**
 * Settings of the first `sh` block of `docs/integrations/<page>.md`, or of the part of it under a heading, as somebody
 * would paste them into a shell.
 */
export function documentedEnvironment(page: string, heading?: string): Record<string, string> {
  const [block] = blocksOf(page, heading, 'sh');
  if (block === undefined) throw new Error(`${page}.md has no sh block${heading ? ` under "${heading}"` : ''}`);
  const lines = block.split('\n').filter((line) => line.trim() !== '' && !line.startsWith('#'));
  return Object.fromEntries(lines.map(settingIn));
}

/** Statements of all `sql` blocks, without their semicolons. */
export const documentedSql = (page: string, heading?: string): string[] =>
  blocksOf(page, heading, 'sql')
    .flatMap((block) => block.split(/;\s*$/m))
    .map((statement) => statement.trim())
    .filter((statement) => statement !== '');

function blocksOf(page: string, heading: string | undefined, language: string): string[] {
  const text = readFileSync(new URL(`../../docs/integrations/${page}.md`, import.meta.url), 'utf8');
  const part = heading === undefined ? text : text.split(/^## /m).find((each) => each.startsWith(`${heading}\n`));
  if (part === undefined) throw new Error(`${page}.md has no heading "${heading}"`);
  const blocks = part.matchAll(new RegExp(`\`\`\`${language}\\n([^\`]*)\`\`\``, 'g'));
  return [...blocks].map(([, block]) => (block as string).replaceAll('…', 'x'));
}

/** `NAME=value`, the value bare or in double quotes, as a shell and Docker's env files read it. */
function settingIn(line: string): [string, string] {
  const [, name, quoted, bare] = /^(\w+)=(?:"([^"\\$`]*)"|([^\s"'$`\\#]*))$/.exec(line) ?? [];
  if (name === undefined) throw new Error(`not a plain setting: ${line}`);
  return [name, quoted ?? bare ?? ''];
}
