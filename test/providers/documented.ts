import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { CASES, PROFILES } from '../../src/conformance/cases/index.ts';
import { countsOf } from '../../src/conformance/report.ts';
import { PROTOCOL_RESULTS } from '../conformance/kit.suite.ts';

/** The rows of the table in docs/conformance.md, by label. */
const rows = new Map(
  readFileSync(join(import.meta.dirname, '../../docs/conformance.md'), 'utf8')
    .split('\n')
    .filter((line) => line.startsWith('| '))
    .map((line) => [line.split(' | ')[0]?.slice(2) ?? '', line]),
);

/** After `providerTests` with this label: the page has its result, if it has a row for it. */
export function documentedResult(label: string): void {
  const documented = rows.get(label);
  if (documented === undefined) return;
  it(`[SPEC Service capabilities] docs/conformance.md has the result of: ${label}`, ({ skip }) => {
    const results = PROTOCOL_RESULTS.get(label) ?? [];
    skip(
      results.length < PROFILES.flatMap((profile) => CASES[profile] as readonly unknown[]).length,
      'not every case ran',
    );
    const { passed, failed, warning, skipped } = countsOf(results);
    const why = new Set(results.flatMap(({ status, message = '' }) => (status === 'skipped' ? message : [])));
    expect(`| ${[label, passed, failed, warning, skipped, [...why].join('; ')].join(' | ')} |`).toBe(documented);
  });
}
