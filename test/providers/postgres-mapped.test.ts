import { conformance } from '../conformance/index.ts';
import { BARE, COLUMNS, DOCUMENT, MIXED, openShape } from '../mapped/tables.ts';

for (const shape of [COLUMNS, DOCUMENT, MIXED, BARE]) {
  conformance(`postgres, a table of others: ${shape.label}`, (options) => openShape(shape, options));
}
