import type { Finding } from '#contract';
import type { Environment } from '../config/given.ts';
import { printable } from './printable.ts';

type Level = Finding['level'];

const MARKS: Record<Level, string> = { ok: '✓', warning: '!', problem: '✗' };
/** Of ANSI escape sequences: green, yellow, red. */
const COLOURS: Record<Level, number> = { ok: 32, warning: 33, problem: 31 };
const DIM = 2;
const BOLD = 1;
const AREA_COLUMN = 'configuration'.length;

/** One object, for scripts. */
export const findingsJson = (findings: readonly Finding[]): string =>
  `${JSON.stringify({ ok: !findings.some(isProblem), findings }, null, 2)}\n`;

/** A line each, what to run indented below, and how it stands in the last line. */
export function findingsText(findings: readonly Finding[], coloured: boolean): string {
  const paint = (code: number, text: string) => (coloured ? `\u001b[${code}m${text}\u001b[0m` : text);
  const indent = ' '.repeat(AREA_COLUMN + 4);
  const lines = findings.flatMap(({ area, level, message, remedies = [] }) => [
    `${paint(COLOURS[level], MARKS[level])} ${area.padEnd(AREA_COLUMN)}  ${printable(message)}`,
    ...remedies.flatMap(({ sql, reason }) => [
      `${indent}${paint(DIM, `-- ${printable(reason)}`)}`,
      `${indent}${paint(BOLD, printable(sql))}`,
    ]),
  ]);
  return `${[...lines, paint(COLOURS[worst(findings)], summary(findings))].join('\n')}\n`;
}

/** As Node itself has it: FORCE_COLOR wins over NO_COLOR, and both over what is written to. */
export function isColoured(env: Environment, isTerminal: boolean): boolean {
  const { FORCE_COLOR: force, NO_COLOR: no, TERM } = env;
  if (force !== undefined) return force !== '0' && force !== 'false';
  return !no && isTerminal && TERM !== 'dumb';
}

export const isProblem = ({ level }: Finding): boolean => level === 'problem';

const worst = (findings: readonly Finding[]): Level =>
  (['problem', 'warning'] as const).find((level) => findings.some((finding) => finding.level === level)) ?? 'ok';

function summary(findings: readonly Finding[]): string {
  const count = (level: Level, word: string) => {
    const number = findings.filter((finding) => finding.level === level).length;
    return number === 0 ? [] : [`${number} ${word}${number === 1 ? '' : 's'}`];
  };
  const told = [...count('problem', 'problem'), ...count('warning', 'warning')].join(', ');
  if (told === '') return 'Everything is as it should be.';
  return `${told}. ${findings.some(isProblem) ? 'The gateway cannot serve like this.' : 'The gateway can serve.'}`;
}
