import { describe, it } from 'vitest';
import { NO_SERVER, openServerSubject, SERVER_URL } from '../support/postgres-server.ts';
import { accessMatrix } from './suite.ts';

if (SERVER_URL === '') {
  describe('access matrix, postgres on a server', () => {
    it('[Decision 14] a PostgreSQL server', ({ skip }) => skip(NO_SERVER));
  });
} else {
  accessMatrix('postgres on a server', { audit: true, keys: true }, (options) =>
    openServerSubject({}, undefined, options),
  );
}
