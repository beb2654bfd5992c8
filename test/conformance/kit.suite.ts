import { describe, it } from 'vitest';
import { CASES, PROFILES } from '../../src/conformance/cases/index.ts';
import { type Caller, type KitRun, openRun, type Send } from '../../src/conformance/kit.ts';
import { type Result, runCase } from '../../src/conformance/run.ts';
import type { Subject } from '../support/gateway.ts';
import type { GetSubject } from './subject.ts';

/** Speaks to an app in process; `headers` are those of a caller of the kit. */
export const sendTo =
  (app: Subject['app'], headers: Partial<Record<Caller, Record<string, string>>>): Send =>
  async (path, init, as) =>
    // The empty environment is what a server would fill in.
    app.request(path, { ...init, headers: { ...headers[as], ...init.headers } }, {});

/** The results of the runs so far, by label. */
export const PROTOCOL_RESULTS = new Map<string, readonly Result[]>();

/**
 * The cases of `omp-gateway conformance`. Every case of the kit checks what the specification says; a warning fails here,
 * and only a field that the subject is known not to have may be missing.
 */
export const kitSuite = (label: string, subject: GetSubject, narrow: Record<string, string>) =>
  describe('protocol', () => {
    const results: Result[] = [];
    PROTOCOL_RESULTS.set(label, results);
    let opened: KitRun | undefined;
    const run = (): KitRun => {
      const { app, capabilities } = subject();
      opened ??= openRun({ send: sendTo(app, { narrow }), capabilities, keys: { key: false, narrow: true } });
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
          const result = await runCase(run(), profile, one);
          results.push(result);
          const { status, message = '' } = result;
          const isLost = / is answered with unsupported_capability$| is not stored$/.exec(message);
          const isKnown = isLost === null || without.includes(message.slice(0, isLost.index));
          if (status === 'skipped' && isKnown) return skip(message);
          if (status === 'passed') return;
          throw new Error(`${status}: ${message}`);
        });
      }
    }
  });
