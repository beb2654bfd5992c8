import { appendFileSync } from 'node:fs';
import { inject } from 'vitest';
import { LedgerError } from '../support/ledger.ts';
import type { Load } from '../support/load.ts';
import { lineOf, type Row } from './report.ts';

export interface Fault {
  readonly name: string;
  /** Resolves when the fault is over. */
  strike(load: Load): Promise<void>;
  /** Before all is compared with the store. */
  settle?(): Promise<void>;
}

/** Acknowledged adds of each client between two faults. */
const CALM = 3;

/**
 * Under load, lets the fault strike, waits until adds succeed again, and compares every ledger with the store. A row of
 * the report is written in any case. Rejects when something is lost or wrong.
 */
export async function survive(load: Load, { name, strike, settle }: Fault): Promise<void> {
  let before = { ...load.count, codes: { ...load.codes } };
  const row = { fault: name, first_ms: Number.NaN, all_ms: Number.NaN, kept: 0 };
  const report = (more: Partial<Row>) => {
    const { requests, written } = load.count;
    const failures = Object.entries(load.codes).map(([code, n]) => [code, n - (before.codes[code] ?? 0)] as const);
    writeRow({
      ...row,
      requests: requests - before.requests,
      written: written - before.written,
      failed: Object.fromEntries(failures.filter(([, n]) => n > 0)),
      ...more,
    });
  };
  try {
    await load.more('added', CALM * load.lanes);
    before = { ...load.count, codes: { ...load.codes } };
    await strike(load);
    const over = performance.now();
    await load.more('added', 1);
    row.first_ms = performance.now() - over;
    await load.more('added', load.lanes);
    row.all_ms = performance.now() - over;
    await load.pause();
    await settle?.();
    row.kept = await load.check();
  } catch (error) {
    report({ broken: error instanceof LedgerError ? error.kind : 'failed' });
    throw new Error(`${name}: ${error instanceof Error ? error.message : error}`, { cause: error });
  }
  report({});
  load.resume();
}

/** Prints the row now, and again in the table at the end. */
export function writeRow(row: Row): void {
  console.log(lineOf(row));
  appendFileSync(inject('rows'), `${JSON.stringify(row)}\n`);
}
