import { afterAll, beforeAll, describe } from 'vitest';
import type { Subject } from '../support/subject.ts';
import { capabilitiesSuite } from './capabilities.suite.ts';
import { contextSuite } from './context.suite.ts';
import { deleteSuite } from './delete.suite.ts';
import { errorsSuite } from './errors.suite.ts';
import { listSuite } from './list.suite.ts';
import { recordsSuite } from './records.suite.ts';
import { scopesSuite } from './scopes.suite.ts';
import { searchSuite } from './search.suite.ts';
import type { GetSubject } from './subject.ts';
import { tagsSuite } from './tags.suite.ts';
import { timesSuite } from './times.suite.ts';
import { updateSuite } from './update.suite.ts';
import { validationSuite } from './validation.suite.ts';

const SUITES = [
  capabilitiesSuite,
  recordsSuite,
  updateSuite,
  deleteSuite,
  listSuite,
  timesSuite,
  scopesSuite,
  tagsSuite,
  searchSuite,
  contextSuite,
  validationSuite,
  errorsSuite,
];

/**
 * What every provider owes its clients, checked over HTTP. The provider's own `/capabilities` decide which
 * assertions apply. `peculiar` adds tests of this one provider on the same subject.
 */
export const conformance = (label: string, open: () => Promise<Subject>, peculiar?: (subject: GetSubject) => void) =>
  describe(label, () => {
    let opened: Subject | undefined;
    beforeAll(async () => {
      opened = await open();
    });
    afterAll(() => opened?.close());
    const subject: GetSubject = () => {
      if (opened === undefined) throw new Error(`${label} did not open`);
      return opened;
    };
    for (const suite of SUITES) suite(subject);
    peculiar?.(subject);
  });
