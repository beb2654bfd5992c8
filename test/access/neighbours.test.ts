import { describe, it } from 'vitest';
import { NO_SERVER, openServerSubject, SERVER_URL } from '../support/postgres-server.ts';
import { openSubject } from '../support/subject.ts';
import { neighboursSuite } from './neighbours.suite.ts';

const PLAIN = { literals: 'a-/', longestScope: 4, longestPattern: 3 };
/** What SQL's own patterns would take for wildcards. */
const SQL = { literals: 'a%_\\/', longestScope: 3, longestPattern: 2 };

neighboursSuite(
  'memory',
  (options) => openSubject({ provider: 'memory', options: { scopes: 'native' }, ...options }),
  PLAIN,
);
neighboursSuite(
  'memory with emulated scopes',
  (options) => openSubject({ provider: 'memory', options: { scopes: 'none' }, ...options }),
  PLAIN,
);
neighboursSuite(
  'embedded postgres',
  (options) => openSubject({ provider: 'postgres', options: { schema: 'omp' }, ...options }),
  SQL,
);
if (SERVER_URL === '') {
  describe('neighbours, postgres on a server', () => {
    it('[Decision 14] a PostgreSQL server', ({ skip }) => skip(NO_SERVER));
  });
} else neighboursSuite('postgres on a server', (options) => openServerSubject({}, undefined, options), SQL);
