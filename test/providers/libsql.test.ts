import { describe } from 'vitest';
import libsql from '../../providers/collections/libsql.ts';
import { providerTests } from '../conformance/provider-tests.ts';
import { NO_SQLD, sqldBackend } from '../libsql/server.ts';
import { documentedResult } from './documented.ts';

const LABEL = 'libSQL, a file';
providerTests(libsql, () => ({ mode: 'vector' }), LABEL);
documentedResult(LABEL);

describe.skipIf(NO_SQLD !== '')(`a libSQL server${NO_SQLD && ` (${NO_SQLD})`}`, () => {
  providerTests(libsql, sqldBackend, 'libSQL, a server');
});
