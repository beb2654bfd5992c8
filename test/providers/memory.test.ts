import { conformance } from '../conformance/index.ts';
import { FULL } from '../support/full.ts';
import { openSubject } from '../support/subject.ts';

const SUBJECTS = [
  { scopes: 'native', mode: 'hybrid' },
  { scopes: 'native', mode: 'keyword' },
  { scopes: 'none', mode: 'hybrid' },
  ...(FULL ? [{ scopes: 'native', mode: 'vector' } as const] : []),
] as const;

for (const { scopes, mode } of SUBJECTS) {
  conformance(`memory, ${mode} search, scopes ${scopes === 'none' ? 'emulated' : 'native'}`, (options) =>
    openSubject({ provider: 'memory', options: { scopes }, mode, ...options }),
  );
}
