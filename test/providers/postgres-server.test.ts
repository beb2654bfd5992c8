import { describe, it } from 'vitest';
import postgres from '../../providers/postgres/index.ts';
import { providerTests } from '../conformance/provider-tests.ts';
import { FULL } from '../support/full.ts';
import { IS_CITUS, NO_SERVER, SERVER_URL, serverBackend } from '../support/postgres-server.ts';
import { documentedResult } from './documented.ts';

const LABEL = 'postgres, on a server';

if (SERVER_URL === '') {
  describe(LABEL, () => {
    it('[SPEC Capabilities provider] a PostgreSQL server', ({ skip }) => skip(NO_SERVER));
  });
} else {
  providerTests(postgres, () => serverBackend(), LABEL);
  documentedResult(LABEL);
  // On Citus, where each request takes longer, once in the quick run.
  if (FULL || !IS_CITUS) {
    providerTests(
      postgres,
      () => serverBackend({ prepared_statements: 'off', connections: 1 }),
      `${LABEL}, without prepared statements`,
    );
  }
}
