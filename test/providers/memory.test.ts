import { conformance } from '../conformance/index.ts';
import { openSubject } from '../support/subject.ts';

conformance('memory, scopes native', (options) =>
  openSubject({ provider: 'memory', options: { scopes: 'native' }, ...options }),
);
