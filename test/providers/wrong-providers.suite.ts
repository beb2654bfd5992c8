import { providerTests } from '../conformance/provider-tests.ts';
import { WRONG, wrongProvider } from './wrong-providers.ts';

for (const name of Object.keys(WRONG)) providerTests(wrongProvider(name), undefined, name);
