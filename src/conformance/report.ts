import type { Result, Run, Status } from './run.ts';

/** How many results have each status. */
export function countsOf(results: readonly Result[]): Record<Status, number> {
  const counts = { passed: 0, failed: 0, warning: 0, skipped: 0 };
  for (const { status } of results) counts[status]++;
  return counts;
}

/** What is the same for every result of a run. */
export interface Subject {
  readonly url: string;
  readonly read_only: boolean;
  /** Name and version of the kit. */
  readonly kit: string;
}

/** The whole run as JSON, ends with a newline. */
export const toJson = ({ results, left }: Run, subject: Subject): string =>
  `${JSON.stringify({ ...subject, counts: countsOf(results), left, results }, null, 2)}\n`;

/** The format of shields.io endpoint badges. */
export function toBadge({ results }: Run): string {
  const { passed, failed, warning } = countsOf(results);
  const message = failed > 0 ? `${failed} failed` : `${passed} passed${warning > 0 ? `, ${warning} warnings` : ''}`;
  const color = failed > 0 ? 'red' : warning > 0 ? 'yellow' : 'brightgreen';
  return `${JSON.stringify({ schemaVersion: 1, label: 'Open Memory Protocol', message, color })}\n`;
}

/** Characters that XML 1.0 cannot hold become `?`. */
const xml = (text: string): string =>
  text
    .toWellFormed()
    .replace(/[^\t\n\r\u0020-\uD7FF\uE000-\uFFFD\u{10000}-\u{10FFFF}]/gu, '?')
    .replaceAll('&', '&amp;')
    .replaceAll('<', '&lt;')
    .replaceAll('"', '&quot;');

/** JUnit's XML, as CI systems read it: a test suite for each profile. Warnings pass, and say so in `system-out`. */
export function toJunit({ results }: Run): string {
  const suites = [...new Set(results.map(({ profile }) => profile))].map((profile) => {
    const cases = results.filter((result) => result.profile === profile);
    const { failed, skipped } = countsOf(cases);
    const head = `name="${profile}" tests="${cases.length}" failures="${failed}" skipped="${skipped}"`;
    return `<testsuite ${head}>\n${cases.map(junitCase).join('')}</testsuite>\n`;
  });
  return `<?xml version="1.0" encoding="UTF-8"?>\n<testsuites name="omp-conformance">\n${suites.join('')}</testsuites>\n`;
}

function junitCase(result: Result): string {
  const { id, profile, title, status, message = '' } = result;
  const head = `<testcase classname="${profile}" name="${xml(`${id}: ${title}`)}"`;
  if (status === 'passed') return `${head}/>\n`;
  if (status === 'skipped') return `${head}><skipped message="${xml(message)}"/></testcase>\n`;
  const details = xml(explained(result).join('\n'));
  if (status === 'warning') return `${head}><system-out>${details}</system-out></testcase>\n`;
  return `${head}><failure message="${xml(message)}">${details}</failure></testcase>\n`;
}

const SIGNS: Readonly<Record<Status, string>> = {
  passed: 'ok',
  failed: 'FAILED',
  warning: 'warning',
  skipped: 'skipped',
};
const MAX_LINE = 400;
/** One line without control characters, which a terminal would interpret. */
const line = (text: string): string => {
  const plain = text.replace(/\p{Cc}/gu, ' ');
  return plain.length > MAX_LINE ? `${plain.slice(0, MAX_LINE)}…` : plain;
};

/** The clauses, the request and the answer of what is wrong, a line each. */
function explained({ clauses, request, answer }: Result): string[] {
  return [
    ...clauses.map(({ id, text }) => `${id}: ${text}`),
    ...(request ? [line(`${request.method} ${request.path} ${request.body ?? ''}`)] : []),
    ...(answer ? [line(`-> ${answer.status} ${answer.type} ${answer.text}`)] : []),
  ];
}

/** One result for a terminal, ends with a newline. */
export function toText(result: Result): string {
  const { id, title, status, message } = result;
  const head = `${SIGNS[status].padEnd(8)}${id}: ${title}`;
  if (status === 'passed') return `${head}\n`;
  const why = line(message ?? '');
  if (status === 'skipped') return `${head} (${why})\n`;
  return [head, ...[why, ...explained(result)].map((each) => `        ${each}`), ''].join('\n');
}
