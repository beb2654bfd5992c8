import { openAuditTrail } from '../../src/core/audit-trail.ts';
import { createGate } from '../../src/core/gate.ts';
import type { Authenticator } from '../../src/core/principal.ts';
import { createApp } from '../../src/http/app.ts';
import type { Client } from '../support/client.ts';
import { APP_LIMITS, clientTo, recordingLog, type Subject } from '../support/subject.ts';

/** A second way into the same store, for looking without being entered in its audit log. */
export const unrecorded = ({ provider }: Subject, authenticator: Authenticator) => {
  const log = recordingLog();
  const trail = openAuditTrail({ audit: undefined, record: 'all', log });
  const gate = createGate({ provider, trail, rate_limit_per_minute: null });
  const app = createApp({ gate, authenticator, log, ...APP_LIMITS });
  return (headers: Record<string, string>): Client => clientTo(app, headers);
};
