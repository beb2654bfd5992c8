import { describe, it } from 'vitest';
import { conformance } from '../conformance/index.ts';
import { NO_SERVER, openServerSubject, SERVER_URL } from '../support/postgres-server.ts';

if (SERVER_URL === '') {
  describe('postgres, on a server', () => {
    it('[SPEC Capabilities provider] a PostgreSQL server', ({ skip }) => skip(NO_SERVER));
  });
} else {
  conformance('postgres, on a server', (options) => openServerSubject({}, undefined, options));
  conformance('postgres, on a server, without prepared statements', (options) =>
    openServerSubject({ prepared_statements: 'off', connections: 1 }, undefined, options),
  );
}
