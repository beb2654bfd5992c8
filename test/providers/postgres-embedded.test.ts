import { conformance } from '../conformance/index.ts';
import { openSubject } from '../support/subject.ts';

conformance('postgres, embedded', () => openSubject({ provider: 'postgres', options: { schema: 'omp' } }));
