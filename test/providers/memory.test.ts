import memory from '../../providers/memory/index.ts';
import { providerTests } from '../conformance/provider-tests.ts';
import { FULL } from '../support/full.ts';
import { documentedResult } from './documented.ts';

const RUNS = [
  { scopes: 'native', mode: 'hybrid' },
  { scopes: 'native', mode: 'keyword' },
  { scopes: 'none', mode: 'hybrid' },
  ...(FULL ? [{ scopes: 'native', mode: 'vector' } as const] : []),
] as const;

for (const { scopes, mode } of RUNS) {
  const label = `memory, ${mode} search, scopes ${scopes === 'none' ? 'emulated' : 'native'}`;
  providerTests(memory, () => ({ options: { scopes }, mode, volatile: true }), label);
  documentedResult(label);
}
