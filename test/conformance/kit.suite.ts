import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { CASES, PROFILES } from '../../src/conformance/cases/index.ts';
import { type Caller, openSession, type Send, type Session } from '../../src/conformance/kit.ts';
import { countsOf } from '../../src/conformance/report.ts';
import { type Result, runCase } from '../../src/conformance/run.ts';
import type { Subject } from '../support/subject.ts';
import type { GetSubject } from './subject.ts';

/** Speaks to an app in process; `headers` are those of a caller of the kit. */
export const sendTo =
  (app: Subject['app'], headers: Partial<Record<Caller, Record<string, string>>>): Send =>
  async (path, init, as) =>
    // The empty environment is what a server would fill in.
    app.request(path, { ...init, headers: { ...headers[as], ...init.headers } }, {});

/** The rows of the table in docs/conformance.md, by label. */
const rows = new Map(
  readFileSync(join(import.meta.dirname, '../../docs/conformance.md'), 'utf8')
    .split('\n')
    .filter((line) => line.startsWith('| '))
    .map((line) => [line.split(' | ')[0]?.slice(2) ?? '', line]),
);

/**
 * The cases of `omp-gateway conformance`. Every case of the kit checks what the specification says; a warning fails here,
 * and only a field that the subject is known not to have may be missing.
 */
export const kitSuite = (label: string, subject: GetSubject, narrow: Record<string, string>) =>
  describe('protocol', () => {
    const results: Result[] = [];
    let opened: Session | undefined;
    const session = (): Session => {
      const { app, capabilities } = subject();
      opened ??= openSession({ send: sendTo(app, { narrow }), capabilities, keys: { key: false, narrow: true } });
      return opened;
    };
    for (const profile of PROFILES) {
      for (const one of CASES[profile]) {
        const clauses = one.clauses.map((clause) => `[SPEC ${clause}]`).join(' ');
        const title = `${clauses} ${one.id}: ${one.title}`;
        it(title, async ({ skip }) => {
          const { without = [] } = subject();
          const hasNot = one.needs?.find((need) => need === 'created_at' && without.includes(need));
          skip(hasNot !== undefined, `has no ${hasNot}`);
          const result = await runCase(session(), profile, one);
          results.push(result);
          const { status, message = '', request, answer } = result;
          const isLost = / is answered with unsupported_capability$| is not stored$/.exec(message);
          const isKnown = isLost === null || without.includes(message.slice(0, isLost.index));
          if (status === 'skipped' && isKnown) return skip(message);
          if (status === 'passed') return;
          throw new Error(`${status}: ${message}\n${JSON.stringify({ request, answer }, null, 2)}`);
        });
      }
    }

    const documented = rows.get(label);
    if (documented === undefined) return;
    it('[SPEC Service capabilities] docs/conformance.md has the result', ({ skip }) => {
      skip(
        results.length < PROFILES.flatMap((profile) => CASES[profile] as readonly unknown[]).length,
        'not every case ran',
      );
      const { passed, failed, warning, skipped } = countsOf(results);
      const why = new Set(results.flatMap(({ status, message = '' }) => (status === 'skipped' ? message : [])));
      expect(`| ${[label, passed, failed, warning, skipped, [...why].join('; ')].join(' | ')} |`).toBe(documented);
    });
  });
