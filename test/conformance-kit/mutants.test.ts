import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { OmpError } from '#contract';
import { CASES, PROFILES } from '../../src/conformance/cases/index.ts';
import { type Case, openRun, type Send } from '../../src/conformance/kit.ts';
import { readCapabilities, runCase } from '../../src/conformance/run.ts';
import { ANONYMOUS } from '../../src/core/grants.ts';
import { sendTo } from '../conformance/kit.suite.ts';
import { knownCallers } from '../support/known-callers.ts';
import { openSubject, type Subject } from '../support/subject.ts';
import { MUTANTS } from './mutants.ts';

const caseOf = (id: string) => {
  const all = PROFILES.flatMap((profile) => CASES[profile].map((one: Case) => ({ profile, one })));
  const found = all.find(({ one }) => one.id === id);
  if (found === undefined) throw new Error(`there is no case ${id}`);
  return found;
};

/** The gateway on the memory provider, where every request needs a key. */
describe('the conformance kit', () => {
  let subject: Subject;
  let reference: Send;
  beforeAll(async () => {
    const { authenticator, admit } = knownCallers();
    const closed = {
      async authenticate(...given: Parameters<typeof authenticator.authenticate>) {
        const principal = await authenticator.authenticate(...given);
        if (principal === ANONYMOUS) throw new OmpError('unauthorized', 'a key is required');
        return principal;
      },
    };
    subject = await openSubject({ provider: 'memory', options: {}, authenticator: closed });
    reference = sendTo(subject.app, {
      key: admit(),
      narrow: admit({ grants: ['*:elsewhere'] }),
      'wrong key': { authorization: 'Bearer wrong' },
    });
  });
  afterAll(() => subject?.close());

  const run = async (id: string, send: Send) => {
    const { profile, one } = caseOf(id);
    const capabilities = await readCapabilities(send);
    return runCase(openRun({ send, capabilities, keys: { key: true, narrow: true } }), profile, one);
  };

  it('every case has a mutant', () => {
    const ids = PROFILES.flatMap((profile) => CASES[profile].map(({ id }: Case) => id));
    expect([...new Set(MUTANTS.map(([, id]) => id))].sort()).toEqual(ids.sort());
  });

  it.for([...new Set(MUTANTS.map(([, id]) => id))])('%s passes on the reference', async (id) => {
    const { status, message } = await run(id, reference);
    // All verbs are declared, and no length.
    const isVacuous = ['capabilities.undeclared', 'add.max_content_length'].includes(id);
    expect([status, message]).toEqual(isVacuous ? ['skipped', expect.any(String)] : ['passed', undefined]);
  });

  it.for(MUTANTS)('%s: found by %s', async ([, id, mutant]) => {
    const { status, message, request } = await run(id, mutant(reference));
    expect([status, message]).toEqual([caseOf(id).one.should ? 'warning' : 'failed', expect.stringMatching(/\S/)]);
    if (!id.endsWith('-agrees')) expect(request).toBeDefined();
  });
});
