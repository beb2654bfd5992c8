import { tmpdir } from 'node:os';
import { onTestFinished } from 'vitest';
import { compose } from '../../src/core/compose.ts';
import { type AppOptions, createApp } from '../../src/http/app.ts';
import { listen } from '../../src/http/listen.ts';
import { openProvider } from '../../src/registry.ts';
import { clientOf } from '../support/client.ts';
import { memoriesOf } from '../support/memories.ts';
import { APP_LIMITS, gateOn, RECORDED, recordingLog } from '../support/subject.ts';

/** Serves the memory provider behind a real socket; closed after the test. */
export async function startLimited(
  options: Pick<AppOptions, 'authenticator' | 'rate' | 'trusted_proxies'>,
  host = '127.0.0.1',
) {
  const log = recordingLog();
  const ranking = { mode: 'keyword', keyword_weight: 1 } as const;
  const context = { embedder: undefined, ranking, audit: RECORDED, data_dir: tmpdir(), log };
  const provider = memoriesOf(compose(await openProvider('memory', { scopes: 'native' }, context)));
  const { gate, trail } = gateOn(provider, log, options.rate?.requests?.limit);
  const { port, close } = await listen(createApp({ gate, log, ...APP_LIMITS, ...options }), { host, port: 0, log });
  onTestFinished(async () => {
    await close();
    await trail.close();
    await provider.close();
  });
  return { port, client: clientOf((path, init) => fetch(`http://127.0.0.1:${port}${path}`, init)) };
}
