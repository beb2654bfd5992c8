import { openSubject } from '../support/subject.ts';
import { accessMatrix } from './suite.ts';

accessMatrix('embedded postgres', { audit: true, keys: true }, (options) =>
  openSubject({ provider: 'postgres', options: { schema: 'omp' }, ...options }),
);
