import qdrant from '../../providers/collections/qdrant.ts';
import { providerTests } from '../conformance/provider-tests.ts';
import { qdrantBackend } from '../qdrant/server.ts';

providerTests(qdrant, () => qdrantBackend());
