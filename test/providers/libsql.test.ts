import libsql from '../../providers/collections/libsql.ts';
import { providerTests } from '../conformance/provider-tests.ts';
import { documentedResult } from './documented.ts';

const LABEL = 'libSQL, a file';
providerTests(libsql, () => ({ mode: 'vector' }), LABEL);
documentedResult(LABEL);
