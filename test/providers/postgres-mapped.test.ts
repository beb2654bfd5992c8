import { conformance } from '../conformance/index.ts';
import { BARE, COLUMNS, DOCUMENT, MIXED, openShape } from '../mapped/tables.ts';
import { FULL } from '../support/full.ts';

for (const shape of FULL ? [COLUMNS, DOCUMENT, MIXED, BARE] : [COLUMNS, DOCUMENT]) {
  conformance(`postgres, a table of others: ${shape.label}`, (options) => openShape(shape, options));
}
