import { expect, it } from 'vitest';
import { openAuthenticator } from '../../src/auth/authenticator.ts';
import { recordingLog } from '../support/subject.ts';
import type { Bench } from './bench.ts';
import { bearer, clientWith, configure } from './callers.ts';
import { BINDINGS, GRANTS } from './cases.ts';
import { checkKey } from './matrix.ts';

/** Some grants, and who they are given to: keys bound to each of these. */
export interface Given {
  readonly grants: readonly string[];
  readonly bindings: typeof BINDINGS;
}
const EVERY: readonly Given[] = GRANTS.map((grants) => ({ grants, bindings: BINDINGS }));

/**
 * Every verb × grant × user binding × owner × scope neighbour, as configured keys. Each case is generated and judged by
 * the plain rule: status, error code, body, and the whole store afterwards.
 */
export function rightsSuite(bench: () => Bench, given = EVERY): void {
  it.for(given.map(({ grants, ...rest }) => ({ title: grants.join(' ') || 'nothing', grants, ...rest })))(
    '[Decision 14] [SPEC Authentication 5] [SPEC Errors scope_denied] [SPEC Errors not_found] a key granted $title',
    async ({ grants, bindings }) => {
      const keys = bindings.map((users) => ({ rights: { grants, users }, ...configure({ grants, users }) }));
      const configured = keys.map((key) => key.configured);
      const { door, subject } = bench();
      const options = { keys: configured, store: undefined, jwt: undefined, required: true, log: recordingLog() };
      door.front = await openAuthenticator(options);
      for (const { rights, key } of keys) await checkKey(rights, clientWith(subject, bearer(key)), bench());
    },
  );

  it('[Decision 14] [SPEC Errors message] every refusal of a kind says the same, and every kind came up', () => {
    const { tally, messages, expected } = bench();
    const codes = ['not_found', 'scope_denied', ...(expected.audit ? [] : ['unsupported_capability'])];
    expect([...tally.keys()].sort()).toEqual(['ok', ...codes].sort());
    expect(Math.min(...tally.values())).toBeGreaterThan(50);
    expect([...messages.keys()].sort()).toEqual(codes.sort());
    for (const [code, texts] of messages) expect([...texts], code).toHaveLength(1);
  });
}
