import lancedb from '../../providers/collections/lancedb.ts';
import { providerTests } from '../conformance/provider-tests.ts';
import { documentedResult } from './documented.ts';

const LABEL = 'LanceDB, a folder';
providerTests(lancedb, () => ({ mode: 'vector' }), LABEL);
documentedResult(LABEL);
