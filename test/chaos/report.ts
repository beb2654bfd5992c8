import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { TestProject } from 'vitest/node';
import prepare from '../support/prepare.ts';

/** The result of one fault. */
export interface Row {
  readonly fault: string;
  readonly requests: number;
  /** Acknowledged writes. */
  readonly written: number;
  /** Requests that failed, by the code of the error. */
  readonly failed: Readonly<Record<string, number>>;
  /** From the end of the fault to the first acknowledged add, and until there were as many as clients. */
  readonly first_ms: number | null;
  readonly all_ms: number | null;
  readonly kept: number;
  /** Unset: survived. */
  readonly broken?: 'lost' | 'wrong' | 'hangs' | 'failed';
}

declare module 'vitest' {
  interface ProvidedContext {
    /** A file with one row per line. */
    rows: string;
  }
}

/** Builds, collects a row of each fault, and prints them all at the end. */
export default async function report(project: TestProject): Promise<() => void> {
  await prepare();
  const folder = mkdtempSync(join(tmpdir(), 'omp-chaos-'));
  const file = join(folder, 'rows');
  writeFileSync(file, '');
  project.provide('rows', file);
  return () => {
    const lines = readFileSync(file, 'utf8').split('\n').slice(0, -1);
    console.log(`\n${tableOf(lines.map((line) => JSON.parse(line) as Row))}\n`);
    rmSync(folder, { recursive: true });
  };
}

const HEADINGS = ['fault', 'requests', 'writes', 'failed', 'first add', 'all clients', 'kept', 'lost'];

const ms = (value: number | null) => (value === null || Number.isNaN(value) ? '' : `${value.toFixed(0)} ms`);

const cellsOf = ({ fault, requests, written, failed, first_ms, all_ms, kept, broken }: Row): string[] => [
  fault,
  String(requests),
  String(written),
  Object.entries(failed)
    .map(([code, n]) => `${n} ${code}`)
    .join(', ') || '0',
  ms(first_ms),
  ms(all_ms),
  String(kept),
  broken?.toUpperCase() ?? '0',
];

/** A row in words. */
export const lineOf = (row: Row): string =>
  cellsOf(row)
    .map((cell, i) => (i === 0 ? cell : `${HEADINGS[i]}: ${cell || 'none'}`))
    .join('; ');

function tableOf(rows: readonly Row[]): string {
  const cells = rows.map(cellsOf);
  const widths = HEADINGS.map((_, column) => Math.max(...[HEADINGS, ...cells].map((row) => row[column]?.length ?? 0)));
  const line = (row: readonly string[]) => `| ${row.map((cell, i) => cell.padEnd(widths[i] ?? 0)).join(' | ')} |`;
  const rule = `|${widths.map((width) => '-'.repeat(width + 2)).join('|')}|`;
  const count = (kind: Row['broken']) => rows.filter(({ broken }) => broken === kind).length;
  const sum = (of: 'requests' | 'written') => rows.reduce((total, row) => total + row[of], 0);
  const totals =
    `faults survived: ${count(undefined)} of ${rows.length}, requests: ${sum('requests')}, writes checked: ` +
    `${sum('written')}, lost: ${count('lost')}, wrong answers: ${count('wrong')}, hanging requests: ${count('hangs')}`;
  return [line(HEADINGS), rule, ...cells.map(line), '', totals].join('\n');
}
