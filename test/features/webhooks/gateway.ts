import { onTestFinished } from 'vitest';
import { backgroundCall, type StoredWebhook } from '#contract';
import type { NewWebhook } from '../../../src/features/webhooks/interface.ts';
import { openWebhooks } from '../../../src/features/webhooks/webhooks.ts';
import { createApp } from '../../../src/http/app.ts';
import { knownCallers } from '../../support/known-callers.ts';
import { openStoreOf, type WritableStore } from '../../support/stores.ts';
import { APP_LIMITS, clientTo, gateOn, RECORDED, recordingLog } from '../../support/subject.ts';

export const SECRET = 'a secret of the gateway, long enough';
export const call = backgroundCall('test', new AbortController().signal);

export const openMemoryStore = async (): Promise<WritableStore> =>
  (await openStoreOf(
    'memory',
    { scopes: 'native' },
    {
      ...{ embedder: undefined, ranking: { mode: 'keyword', keyword_weight: 0.5 }, audit: RECORDED },
      ...{ data_dir: '/nowhere', log: recordingLog() },
    },
  )) as WritableStore;

export interface GatewayOptions {
  readonly secret?: string;
  readonly allow_private?: boolean;
  /** Default: 20 ms. */
  readonly pause?: (lasting: number) => number;
}

/** A gateway on a store, which delivers until the test ends. */
export function openGateway(store: WritableStore, options: GatewayOptions = {}) {
  const log = recordingLog();
  const settings = { secret: SECRET, allow_private: true, pause: () => 20, ...options };
  const webhooks = openWebhooks(settings, store, log);
  if (!webhooks) throw new Error('the store has no webhooks');
  const { gate, auditQueue } = gateOn(store, log, { webhooks });
  const { authenticator, admit } = knownCallers();
  const app = createApp({ gate, authenticator, log, ...APP_LIMITS });
  const deliveries = webhooks.start(gate.feed);
  let closed = false;
  const close = async () => {
    if (closed) return;
    closed = true;
    await deliveries.close();
    await auditQueue.close();
  };
  onTestFinished(close);
  return {
    ...{ app, deliveries, log, manage: webhooks, close, flush: auditQueue.close },
    /** A caller with these grants; by default everything. */
    as: (...grants: string[]) => clientTo(app, admit(grants.length > 0 ? { grants } : {})),
    create: (input: Partial<NewWebhook> & Pick<NewWebhook, 'url'>) =>
      webhooks.create({ users: null, scope: null, actions: null, ...input }, call),
    find: async (id: string) => (await store.webhooks?.find(id, call)) as StoredWebhook,
  };
}
