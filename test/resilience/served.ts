import { onTestFinished } from 'vitest';
import type { Embedder } from '#contract';
import { compose } from '../../src/core/compose.ts';
import { OPEN } from '../../src/core/grants.ts';
import { NO_TELEMETRY } from '../../src/core/telemetry.ts';
import type { Protect } from '../../src/embedding/open.ts';
import { createApp } from '../../src/http/app.ts';
import { openProvider } from '../../src/registry.ts';
import type { ResilienceOptions } from '../../src/resilience/dependencies.ts';
import { createDependencies, type Dependencies } from '../../src/resilience/dependencies.ts';
import type { Client } from '../support/client.ts';
import { contextOf } from '../support/requests.ts';
import { APP_LIMITS, clientTo, gateOn, type LogLine, recordingLog } from '../support/subject.ts';
import { MAX_BODY_BYTES } from '../support/wire.ts';

export interface ResilientOptions extends Partial<ResilienceOptions> {
  /** What the Postgres provider is opened with. */
  readonly postgres: object;
  /** Opened with what is put around it. Defaults to none, and keyword search. */
  readonly openEmbedder?: (protect: Protect) => Promise<Embedder>;
  readonly request_timeout_ms?: number;
}

export interface Resilient {
  readonly client: Client;
  readonly states: Dependencies['states'];
  readonly lines: readonly LogLine[];
}

/** The gateway on Postgres with what it does about failures, as `serve` puts it together, spoken to in process. */
export async function serveResilient(options: ResilientOptions): Promise<Resilient> {
  const { postgres, openEmbedder, request_timeout_ms = APP_LIMITS.request_timeout_ms, ...resilience } = options;
  const log = recordingLog();
  const dependencies = createDependencies(
    { retries: 2, breaker_failures: 5, probe_ms: 500, ...resilience },
    NO_TELEMETRY,
    log,
  );
  const embedder = await openEmbedder?.(dependencies.protect);
  const ranking = { mode: embedder ? 'hybrid' : 'keyword', keyword_weight: 0.5 } as const;
  const opened = await openProvider('postgres', postgres, contextOf({ embedder, ranking, log }));
  const provider = compose(opened, { embedder, log, protection: dependencies.protect(opened.name, opened.ping) });
  const { gate, auditQueue } = gateOn(provider, log);
  const app = createApp({ gate, authenticator: OPEN, log, max_request_bytes: MAX_BODY_BYTES, request_timeout_ms });
  onTestFinished(async () => {
    await auditQueue.close();
    await provider.close();
    await embedder?.close();
    dependencies.close();
  });
  return { client: clientTo(app, {}), states: dependencies.states, lines: log.lines };
}
