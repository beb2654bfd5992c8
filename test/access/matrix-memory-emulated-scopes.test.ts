import { openSubject } from '../support/subject.ts';
import { accessMatrix } from './suite.ts';

accessMatrix('memory with emulated scopes', { audit: false, keys: false }, (options) =>
  openSubject({ provider: 'memory', options: { scopes: 'none' }, ...options }),
);
