import postgres from '../../providers/postgres/index.ts';
import { providerTests } from '../conformance/provider-tests.ts';
import { BARE, COLUMNS, DOCUMENT, MIXED, shapeBackend } from '../mapped/tables.ts';
import { FULL } from '../support/full.ts';
import { documentedResult } from './documented.ts';

for (const shape of FULL ? [COLUMNS, DOCUMENT, MIXED, BARE] : [COLUMNS, DOCUMENT]) {
  const label = `postgres, a table of others: ${shape.label}`;
  providerTests(postgres, () => shapeBackend(shape), label);
  documentedResult(label);
}
