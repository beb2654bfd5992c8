import { openSubject } from '../support/subject.ts';
import { accessMatrix } from './suite.ts';

accessMatrix('memory', { audit: true, keys: false }, (options) =>
  openSubject({ provider: 'memory', options: { scopes: 'native' }, ...options }),
);
