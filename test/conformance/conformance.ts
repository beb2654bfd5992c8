import { afterAll, beforeAll, beforeEach, describe } from 'vitest';
import type { GatewayOptions, Subject } from '../support/gateway.ts';
import { knownCallers, type Rights } from '../support/known-callers.ts';
import { accessSuite } from './access.suite.ts';
import { auditSuite } from './audit.suite.ts';
import { batchSuite } from './batch.suite.ts';
import { capabilitiesSuite } from './capabilities.suite.ts';
import { changesSuite } from './changes.suite.ts';
import { consistencySuite } from './consistency.suite.ts';
import { contextSuite } from './context.suite.ts';
import { contractSuite } from './contract.suite.ts';
import { deleteSuite } from './delete.suite.ts';
import { etagsSuite } from './etags.suite.ts';
import { explainFailures } from './failures.ts';
import { freezeSuite } from './freeze.suite.ts';
import { idempotencySuite } from './idempotency.suite.ts';
import { kitSuite } from './kit.suite.ts';
import { limitsSuite } from './limits.suite.ts';
import { listSuite } from './list.suite.ts';
import { originsSuite } from './origins.suite.ts';
import { personSuite } from './person.suite.ts';
import { recordsSuite } from './records.suite.ts';
import { retentionSuite } from './retention.suite.ts';
import { rollbackSuite } from './rollback.suite.ts';
import { scopesSuite } from './scopes.suite.ts';
import { searchSuite } from './search.suite.ts';
import type { Admit, GetSubject } from './subject.ts';
import { tagsSuite } from './tags.suite.ts';
import { timesSuite } from './times.suite.ts';
import { transferSuite } from './transfer.suite.ts';
import { updateSuite } from './update.suite.ts';
import { usersSuite } from './users.suite.ts';
import { validationSuite } from './validation.suite.ts';
import { versionsSuite } from './versions.suite.ts';

const SUITES = [
  // Each pass reads the whole store, so it comes before the others fill that: on Pinecone it took half of the time of all suites.
  retentionSuite,
  capabilitiesSuite,
  recordsSuite,
  batchSuite,
  updateSuite,
  deleteSuite,
  etagsSuite,
  listSuite,
  timesSuite,
  scopesSuite,
  tagsSuite,
  searchSuite,
  contextSuite,
  validationSuite,
  accessSuite,
  auditSuite,
  changesSuite,
  usersSuite,
  limitsSuite,
  versionsSuite,
  rollbackSuite,
  personSuite,
  transferSuite,
  originsSuite,
  freezeSuite,
  idempotencySuite,
  consistencySuite,
  contractSuite,
];

/** Opens the subject of the tests; a caller without a token of `authenticator` may do everything. */
export type Open = (options: Pick<GatewayOptions, 'authenticator'>) => Promise<Subject>;

/** Declares the tests that every store must pass, checked over HTTP. What it does not declare is skipped. */
export const conformance = (label: string, open: Open): void => {
  describe(label, () => {
    const callers = knownCallers();
    let opened: Subject | undefined;
    beforeAll(async () => {
      opened = await open({ authenticator: callers.authenticator });
    });
    afterAll(() => opened?.close());
    const subject: GetSubject = () => {
      if (opened === undefined) throw new Error(`${label} did not open`);
      return opened;
    };
    const admit: Admit = (rights: Rights) => subject().as(callers.admit(rights));
    beforeEach(explainFailures(subject));
    kitSuite(label, subject, callers.admit({ grants: ['*:elsewhere'] }));
    for (const suite of SUITES) suite(subject, admit);
  });
};
